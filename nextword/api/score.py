"""``score``: a number for every line or token of a text, as rows that other programs read."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nextword.api.results import Score
from nextword.api.run import load
from nextword.core import config
from nextword.data.source import Source
from nextword.evaluation.lines.scores import LineScore, score_lines
from nextword.evaluation.lm.evidence import each_evidence

if TYPE_CHECKING:
    from nextword.api.run import Run


@dataclass(frozen=True)
class Style:
    """What is scored, and how it is written."""

    by: str = "line"
    log10: bool = False
    begin: bool = True
    end: bool = True
    format: str = "tsv"
    sets: tuple[str, ...] = ()


def scores(run: Run | str, file: str, style: Style) -> Iterator[LineScore]:
    """Every line of a file with its score."""
    opened = load(run)
    blocks = Source.for_reading([file], opened.settings.data, config.parse_sets(style.sets)).blocks()
    return score_lines(
        opened.model, opened.tokenizer, blocks,
        tokens=style.by == "token", log10=style.log10, begin=style.begin, end=style.end,
    )  # fmt: skip


def score(run: Run | str, text: str) -> Score:
    """How well a run predicts a text; `scores` takes files."""
    return load(run).score(text)


def rows(run: Run | str, file: str, style: Style) -> Iterator[bytes]:
    """The rows as bytes, line ends included."""
    show = _json_rows if style.format == "jsonl" else _tsv_rows
    for score in scores(run, file, style):
        yield "".join(row + "\n" for row in show(score, style)).encode("utf-8", "surrogateescape")


def evidence_rows(run: Run | str, file: str, style: Style) -> Iterator[bytes]:
    """A row a token, as `rows` has them by token, and behind it what its probability is made of.

    The text is read as a whole, as `eval` reads it, so that a memory goes on from line to line.
    """
    opened = load(run)
    blocks = Source.for_reading([file], opened.settings.data, config.parse_sets(style.sets)).blocks()
    text = b"".join(block.data for block in blocks).decode("utf-8", "surrogateescape")
    scale, number, line = (1 / math.log(10) if style.log10 else 1.0), 0, 0
    for found in each_evidence(opened.model, opened.tokenizer, text, names=opened.members):
        number, line = (number + 1 if found.line == line else 1), found.line
        if style.format == "jsonl":
            row = json.dumps(found.to_json() | {"number": number}, ensure_ascii=False)
        else:
            value = found.logprob * scale
            row = f"{line}\t{number}\t{value:.6f}\t{_cell(found.text)}\t{_cell(found.brief())}"
        yield (row + "\n").encode("utf-8", "surrogateescape")


def whole(run: Run | str, file: str, style: Style) -> dict[str, Any]:
    """Everything as one object."""
    opened = load(run)
    found = list(scores(opened, file, style))
    return {
        "logprob": sum(score.logprob for score in found),
        "tokens": sum(score.count for score in found),
        "base": "10" if style.log10 else "e",
        "is_probability": opened.is_probability,
        "lines": [_values(score, style) for score in found],
    }


def _values(score: LineScore, style: Style) -> dict[str, Any]:
    values: dict[str, Any] = {
        "line": score.line, "logprob": score.logprob, "tokens": score.count, "unknown": score.unknown,
        "perplexity": score.perplexity, "text": score.text,
    }  # fmt: skip
    if style.by == "token":
        values["scores"] = [{"text": t.text, "logprob": t.logprob, "known": t.known} for t in score.tokens]
    return values


def _tsv_rows(score: LineScore, style: Style) -> Iterator[str]:
    if style.by == "line":  # the text stands last, so that tabs in it do no harm
        yield f"{score.logprob:.6f}\t{score.count}\t{score.unknown}\t{score.text}"
        return
    for number, token in enumerate(score.tokens, start=1):
        yield f"{score.line}\t{number}\t{token.logprob:.6f}\t{int(not token.known)}\t{_cell(token.text)}"


def _json_rows(score: LineScore, style: Style) -> Iterator[str]:
    yield json.dumps(_null(_values(score, style)), ensure_ascii=False, allow_nan=False)


def _null(values: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinity: a probability of 0 is null there."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, list):
            found[key] = [_null(each) for each in value]
        else:
            found[key] = None if isinstance(value, float) and not math.isfinite(value) else value
    return found


def _cell(text: str) -> str:
    """A token on one line; a character may itself be a tab or a newline."""
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
