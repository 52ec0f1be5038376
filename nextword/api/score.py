"""``score``: the log-probability of every line or token of a text, as rows for other programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nextword.api.arguments import checked
from nextword.api.opened import Name, Opened, language_model
from nextword.api.results import Score, Token
from nextword.core import config
from nextword.core.contracts import START, UNKNOWN, Block, bits_per_byte
from nextword.core.errors import DataError
from nextword.data.source import Source
from nextword.evaluation.lines.scores import NO_END, LineScore, counts_end, score_lines
from nextword.evaluation.lm.evidence import TokenEvidence, each_evidence
from nextword.evaluation.lm.streams import ScoreStream


@dataclass(frozen=True)
class ScoreOptions:
    """What is scored, and how the rows are written."""

    by: str = "line"
    log10: bool = False
    begin: bool = True
    end: bool | None = None  # whether END is counted; None: where it ends a line, not a document
    format: str = "tsv"
    sets: tuple[str, ...] = ()


def scores(run: Opened | Name, file: str, options: ScoreOptions) -> Iterator[LineScore]:
    """Score every line of a file."""
    trained = language_model(run)
    blocks = Source.for_reading([file], trained.settings.data, config.parse_sets(options.sets)).blocks()
    return score_lines(
        trained.model, trained.tokenizer, blocks,
        tokens=options.by == "token", log10=options.log10, begin=options.begin, end=options.end,
    )  # fmt: skip


def notes(run: Opened, options: ScoreOptions) -> list[str]:
    """Say what is left out of the scores of lines without having been asked for."""
    return [NO_END] if options.end is None and not counts_end(run.tokenizer) else []


@checked
def score(run: Opened | Name, text: str) -> Score:
    """Measure how well a run predicts a text, its end included; `evaluate` takes files.

    The text is a whole document, or whole lines where the run's unit is the line.

    >>> nextword.score("runs/tiny", "the cat sat").tokens[0]
    Token('the', -...)
    """
    found = language_model(run)
    data = text.encode("utf-8", "surrogatepass")
    stream, tokens, nats, side = ScoreStream(found.model, carry=True), [], 0.0, 0.0
    for piece in found.tokenizer.encode_blocks([Block(data, True, "the text")], costs=True):
        logp = stream.push(piece.ids, piece.documents)
        side += piece.side_nats
        nats -= float(np.sum(logp, dtype=np.float64))
        tokens += [
            Token(found.tokenizer.piece(int(i)), float(p), int(i) != UNKNOWN)
            for i, p in zip(piece.ids, logp, strict=True)
            if i != START
        ]
    if not tokens:
        raise DataError("the text is empty, so there is nothing to score; give at least one word")
    nll = nats / len(tokens)
    bits = bits_per_byte(nats + side, len(data))
    perplexity = math.exp(nll) if nll < 700 else math.inf
    return Score(nll, perplexity, bits, tuple(tokens), found.is_probability)


def rows(run: Opened | Name, file: str, options: ScoreOptions) -> Iterator[bytes]:
    """Yield the rows as bytes, newlines included."""
    show = _json_rows if options.format == "jsonl" else _tsv_rows
    for score in scores(run, file, options):
        yield "".join(row + "\n" for row in show(score, options)).encode("utf-8", "surrogateescape")


def evidence_rows(run: Opened | Name, file: str, options: ScoreOptions) -> Iterator[bytes]:
    """Yield one row per token, as `rows` does by token, followed by what its probability is made of.

    The text is read as a whole, as `eval` reads it, so that memories carry over from line to line.
    """
    scale = 1 / math.log(10) if options.log10 else 1.0
    for number, found in _numbered_evidence(run, file, options):
        if options.format == "jsonl":
            row = json.dumps(found.to_json() | {"number": number}, ensure_ascii=False)
        else:
            value = found.logprob * scale
            row = f"{found.line}\t{number}\t{value:.6f}\t{_cell(found.text)}\t{_cell(found.brief())}"
        yield (row + "\n").encode("utf-8", "surrogateescape")


def whole_evidence(run: Opened | Name, file: str, options: ScoreOptions) -> dict[str, Any]:
    """Collect the evidence of all tokens in one object."""
    rows = _numbered_evidence(run, file, options)
    return {"tokens": [found.to_json() | {"number": number} for number, found in rows]}


def _numbered_evidence(
    run: Opened | Name, file: str, options: ScoreOptions
) -> Iterator[tuple[int, TokenEvidence]]:
    """Yield the evidence of every token with its number in the line."""
    trained = language_model(run)
    blocks = Source.for_reading([file], trained.settings.data, config.parse_sets(options.sets)).blocks()
    text = b"".join(block.data for block in blocks).decode("utf-8", "surrogateescape")
    number = line = 0
    for found in each_evidence(trained.model, trained.tokenizer, text, names=trained.members):
        number, line = (number + 1 if found.line == line else 1), found.line
        yield number, found


def whole(run: Opened | Name, file: str, options: ScoreOptions) -> dict[str, Any]:
    """Collect all scores in one object."""
    trained = language_model(run)
    found = list(scores(trained, file, options))
    return {
        "logprob": sum(score.logprob for score in found),
        "tokens": sum(score.count for score in found),
        "base": "10" if options.log10 else "e",
        "is_probability": trained.is_probability,
        "lines": [_values(score, options) for score in found],
    }


def _values(score: LineScore, options: ScoreOptions) -> dict[str, Any]:
    values: dict[str, Any] = {
        "line": score.line, "logprob": score.logprob, "tokens": score.count, "unknown": score.unknown,
        "perplexity": score.perplexity, "text": score.text,
    }  # fmt: skip
    if options.by == "token":
        values["scores"] = [{"text": t.text, "logprob": t.logprob, "known": t.known} for t in score.tokens]
    return values


def _tsv_rows(score: LineScore, options: ScoreOptions) -> Iterator[str]:
    if options.by == "line":  # the text comes last, so that a tab in it does no harm
        yield f"{score.logprob:.6f}\t{score.count}\t{score.unknown}\t{score.text}"
        return
    for number, token in enumerate(score.tokens, start=1):
        yield f"{score.line}\t{number}\t{token.logprob:.6f}\t{int(not token.known)}\t{_cell(token.text)}"


def _json_rows(score: LineScore, options: ScoreOptions) -> Iterator[str]:
    yield json.dumps(_null(_values(score, options)), ensure_ascii=False, allow_nan=False)


def _null(values: dict[str, Any]) -> dict[str, Any]:
    """Replace infinity, which JSON lacks: the logarithm of a probability of 0 is null."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, list):
            found[key] = [_null(each) for each in value]
        else:
            found[key] = None if isinstance(value, float) and not math.isfinite(value) else value
    return found


def _cell(text: str) -> str:
    """Escape a token that contains a tab or a newline."""
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
