"""``score``: the log-probability of every line or token of a text, as rows for other programs."""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from nextword.api.arguments import checked
from nextword.api.opened import Name, Opened, language_model, opened
from nextword.api.results import Score, Token
from nextword.api.tables import check_output, table_settings
from nextword.core import config
from nextword.core.contracts import START, UNKNOWN, BlankFiller, Block, bits_per_byte
from nextword.core.errors import ConfigError, DataError
from nextword.data.paired import PairVocabulary
from nextword.data.pairs import PairDataSettings, PairedText
from nextword.data.paths import ENDINGS, resolve
from nextword.data.paths import Source as InputFile
from nextword.data.rows import open_table
from nextword.data.source import Source
from nextword.evaluation.lines.pseudo import PseudoScore, pseudo_lines
from nextword.evaluation.lines.records import RecordScores, groups, score_records
from nextword.evaluation.lines.scores import NO_END, LineScore, counts_end, score_lines
from nextword.evaluation.lm.evidence import TokenEvidence, each_evidence
from nextword.evaluation.lm.pseudo import PSEUDO
from nextword.evaluation.lm.streams import ScoreStream
from nextword.system.disk import writing
from nextword.tasks.translation import score_pairs
from nextword.text.unknown import UnknownWords

_log = logging.getLogger("nextword")
_COLUMNS = {"logprob": float, "tokens": int, "perplexity": float}
_GROUP_BYTES = 4 << 20  # of text scored at a time


@dataclass(frozen=True)
class ScoreOptions:
    """What is scored, and how the rows are written."""

    by: str = "line"
    log10: bool = False
    begin: bool = True
    end: bool | None = None  # whether END is counted; None: where it ends a line, not a document
    format: str = "tsv"
    sets: tuple[str, ...] = ()
    prefix: str = ""  # of the names of added columns


def scores(run: Opened | Name, file: str, options: ScoreOptions) -> Iterator[LineScore]:
    """Score every line of a file; of pairs, every target after its source."""
    trained = scorable(run)
    if isinstance(vocabulary := trained.trained.vocabulary, PairVocabulary):
        given = {f"data.{name}": value for name, value in trained.settings.data}
        built = config.build({"data": PairDataSettings}, given, config.parse_sets(options.sets))
        text = PairedText([file], cast(PairDataSettings, built["data"]))
        return score_pairs(trained.model, vocabulary, text, options.by == "token", options.log10)
    blocks = Source.for_reading([file], trained.settings.data, config.parse_sets(options.sets)).blocks()
    if isinstance(trained.trained.model, BlankFiller):
        return pseudo_lines(
            trained.trained.model, trained.tokenizer, blocks, options.by == "token", options.log10
        )
    return score_lines(
        trained.model, trained.tokenizer, blocks,
        tokens=options.by == "token", log10=options.log10, begin=options.begin, end=options.end,
    )  # fmt: skip


def scorable(run: Opened | Name) -> Opened:
    """Open a run that scores text: a language model, one of pairs, or one of blanks."""
    found = opened(run)
    scores_otherwise = isinstance(found.trained.vocabulary, PairVocabulary) or isinstance(
        found.trained.model, BlankFiller
    )
    return found if scores_otherwise else language_model(found)


def notes(run: Opened, options: ScoreOptions) -> list[str]:
    """Say what is left out of the scores of lines without having been asked for."""
    if isinstance(run.trained.vocabulary, PairVocabulary):
        return []
    if isinstance(run.trained.model, BlankFiller):
        return [PSEUDO]
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
    trained, unknown = scorable(run), UnknownWords()
    own: Any = trained.trained.vocabulary
    tokenizer = own.target if isinstance(own, PairVocabulary) else own
    for score in scores(trained, file, options):
        if score.unknown:
            unknown.add(tokenizer, score.text)
        yield "".join(row + "\n" for row in show(score, options)).encode("utf-8", "surrogateescape")
    if said := unknown.note():
        _log.warning(said)


def write(run: Opened | Name, file: str, out: str | IO[bytes], options: ScoreOptions) -> None:
    """Write the rows of `rows` to a file, or the rows of the table itself with the scores as columns."""
    if options.format == "rows":
        _write_table(language_model(run), file, out, options)
    else:
        with writing(out) if isinstance(out, str) else nullcontext(out) as target:
            target.writelines(rows(run, file, options))


def format_for(file: str, out: str | None, given: str | None) -> str:
    """Return the format that was given, else that of the file to write: a table's own rows, or TSV."""
    if given is not None:
        return given
    is_table = (
        out is not None and Path(out).suffix in ENDINGS and InputFile(out).format == InputFile(file).format
    )
    return "rows" if is_table and InputFile(file).format != "text" else "tsv"


def _write_table(trained: Opened, file: str, out: str | IO[bytes], options: ScoreOptions) -> None:
    """Copy a table, group by group, with log-probability, tokens and perplexity of every record."""
    if options.by == "token":
        raise ConfigError("--format rows adds one score to each row; use --by line, or --format jsonl")
    source = resolve([file])
    with ExitStack() as stack:
        settings = table_settings(trained, config.parse_sets(options.sets))
        table = open_table(source[0], settings, stack) if len(source) == 1 else None
        if table is None:
            raise DataError(
                "--format rows copies one table: a file that ends in .jsonl, .csv, .tsv or .parquet, or "
                "--set data.format=jsonl",
                file,
            )
        check_output(table, out)
        if isinstance(out, str) and os.path.exists(out) and os.path.samefile(table.source.path, out):
            raise ConfigError(f"--out is '{out}', which is also the input; choose another file")
        target = stack.enter_context(writing(out)) if isinstance(out, str) else out
        writer = table.writer(target, {options.prefix + name: kind for name, kind in _COLUMNS.items()})
        for group in groups(table.rows(), _GROUP_BYTES):
            texts = [row.text for row in group]
            found = score_records(trained.model, trained.tokenizer, texts, options.begin, options.end)
            writer.write(group, [True] * len(group), _columns(found, options))
        writer.close()


def _columns(found: RecordScores, options: ScoreOptions) -> dict[str, list[Any]]:
    """Return the values of the new columns; a record without a word has none."""
    scale = 1 / math.log(10) if options.log10 else 1.0
    lines: list[tuple[Any, ...]] = []
    for logprob, tokens in zip(found.logprob.tolist(), found.tokens.tolist(), strict=True):
        known = (round(logprob * scale, 6), tokens, round(_perplexity(logprob / max(1, tokens)), 6))
        lines.append(known if tokens else (None, 0, None))
    return {options.prefix + name: [line[at] for line in lines] for at, name in enumerate(_COLUMNS)}


def _perplexity(logp: float) -> float:
    return math.exp(-logp) if -logp < 700 else math.inf


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
    trained = scorable(run)
    found = list(scores(trained, file, options))
    pseudo = "pseudo_" if isinstance(trained.trained.model, BlankFiller) else ""
    return {
        f"{pseudo}logprob": sum(score.logprob for score in found),
        "tokens": sum(score.count for score in found),
        "base": "10" if options.log10 else "e",
        "is_probability": trained.is_probability,
        "lines": [_values(score, options) for score in found],
    }


def _values(score: LineScore, options: ScoreOptions) -> dict[str, Any]:
    pseudo = "pseudo_" if isinstance(score, PseudoScore) else ""
    values: dict[str, Any] = {
        "line": score.line, f"{pseudo}logprob": score.logprob, "tokens": score.count,
        "unknown": score.unknown, f"{pseudo}perplexity": score.perplexity, "text": score.text,
    }  # fmt: skip
    if options.by == "token":
        values["scores"] = [
            {"text": t.text, f"{pseudo}logprob": t.logprob, "known": t.known} for t in score.tokens
        ]
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
