"""Score and filter the records of a table: a record is one text, and its row is copied whole.

A record of a model whose unit is the line has the sum of its lines; otherwise it is one document. Records are
scored in groups that depend only on the file, so that a job that was killed resumes with the same numbers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from nextword.core.contracts import END, START, UNKNOWN, Block, LanguageModel, Tokenizer
from nextword.core.errors import DataError
from nextword.core.events import Done, Event, Note, Progress, Stage
from nextword.data.rows import Row, Table
from nextword.evaluation.lines.filter import Filtered, FilterSettings, Scorer
from nextword.evaluation.lines.progress import ScoreLog, count_lines, fingerprint
from nextword.evaluation.lines.rules import BUCKETS, KeepRule, Scores
from nextword.evaluation.lines.scores import counts_end
from nextword.evaluation.lm.streams import Array, ScoreStream, gathered
from nextword.store.replace import locked
from nextword.system.disk import remove_leftovers, writing

GROUP = 4096  # records scored at a time, if they are short


@dataclass(frozen=True)
class RecordScores:
    """Of each record: log p (natural), predictions, unknown words; without a word there are 0 predictions."""

    logprob: Array
    tokens: Array
    unknown: Array


def score_records(
    model: LanguageModel,
    tokenizer: Tokenizer,
    texts: Sequence[bytes],
    begin: bool = True,
    end: bool | None = None,
) -> RecordScores:
    """Score some records together; ``end=None``: END counts where it ends a line, as in `score_lines`."""
    end = counts_end(tokenizer) if end is None else end
    is_line, spoken = tokenizer.unit == "line", [number for number, text in enumerate(texts) if text.strip()]
    owners = np.repeat(spoken, [count_lines(texts[number]) if is_line else 1 for number in spoken])
    logprob, tokens, unknown = np.zeros(len(texts)), np.zeros(len(texts), int), np.zeros(len(texts), int)
    stream, number = ScoreStream(model, begin), -1
    blocks = (Block(texts[number], True, "", 1) for number in spoken)
    for piece in gathered(tokenizer.encode_blocks(blocks)):
        logp, ids = stream.push(piece.ids), np.asarray(piece.ids)
        sequence = number + np.cumsum(ids == START)
        number = int(sequence[-1]) if len(sequence) else number
        counted = (ids != START) & ((ids != END) | end)
        owner = owners[sequence]
        np.add.at(logprob, owner[counted], np.asarray(logp, np.float64)[counted])
        np.add.at(tokens, owner[counted], 1)
        np.add.at(unknown, owner[ids == UNKNOWN], 1)
    return RecordScores(logprob, tokens, unknown)


def groups(rows: Iterator[Row], size: int) -> Iterator[list[Row]]:
    """Yield rows in groups of at most `GROUP` and about ``size`` bytes of text."""
    group: list[Row] = []
    total = 0
    for row in rows:
        group.append(row)
        total += len(row.text)
        if len(group) >= GROUP or total >= size:
            yield group
            group, total = [], 0
    if group:
        yield group


def filter_records(
    scorer: Scorer,
    table: Table,
    output: str | IO[bytes],
    settings: FilterSettings,
) -> Iterator[Event]:
    """Copy the rows that the rule keeps; the last event is ``Done(Filtered(...))``.

    Two passes over the file: scores, then rows. With a file as output the scores so far are kept beside it
    until it is complete, and the same call resumes.
    """
    rule = KeepRule.parse(settings.keep, scorer.against is not None)
    target = Path(output) if isinstance(output, str) else None
    with ExitStack() as stack:
        if target is not None:
            target.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(target))
            remove_leftovers(target)
        job = _Job(scorer, table, rule, settings, target)
        yield from job.score()
        writer = stack.enter_context(writing(output)) if isinstance(output, str) else output
        yield from job.write(writer)
    job.log.remove()
    yield Done(job.result())


class _Job:
    """One run over a table."""

    def __init__(
        self, scorer: Scorer, table: Table, rule: KeepRule, settings: FilterSettings, target: Path | None
    ) -> None:
        self.scorer, self.table, self.rule, self.settings = scorer, table, rule, settings
        self.began = time.monotonic()
        self.input, self.shown = Path(table.source.path), table.source.shown
        columns = table.settings.model_dump(include={"text_column", "columns", "format"})
        self.task = {"identity": scorer.identity, "input": fingerprint(self.input), "data": columns,
                     "block": settings.block}  # fmt: skip
        self.log = ScoreLog(
            None if target is None else target.with_name(target.name + ".progress"), self.task
        )
        self.resumed, self.kept, self.bytes, self.kept_bytes = self.log.lines, 0, 0, 0
        self.lowest, self.highest = np.inf, -np.inf

    def score(self) -> Iterator[Event]:
        """Score the records that are not scored yet, saving progress on the way."""
        if self.resumed:
            yield Note(f"{self.shown}: resuming after {self.resumed:,} records already scored")
        yield Stage("score", None, "records")
        done, saved = 0, time.monotonic()
        unsaved: list[Scores] = []
        for group in self._groups():
            done += len(group)
            if done <= self.resumed:
                continue
            unsaved.append(self._scores([row.text for row in group]))
            yield Progress(done)
            if time.monotonic() - saved >= self.settings.save_every:
                self.log.append(np.concatenate(unsaved), done)
                unsaved, saved = [], time.monotonic()
        if unsaved:
            self.log.append(np.concatenate(unsaved), done)
        if not done:
            raise DataError("there are no records in it, so there is nothing to filter", self.shown)
        if fingerprint(self.input) != self.task["input"]:
            raise DataError("the file changed while it was read; run the command again", self.shown)

    def write(self, target: IO[bytes]) -> Iterator[Event]:
        """Copy the rows that are kept."""
        prefix, add_score = self.settings.prefix, self.settings.add_score
        yield Stage("write", self.log.lines, "records")
        scores = self.log.scores
        mask, buckets = self.rule.mask(scores), self.rule.buckets(scores)
        kinds: dict[str, type] = {prefix + "score": float} if add_score else {}
        kinds |= {} if buckets is None else {prefix + "bucket": str}
        counting = _Counting(target)
        writer, done = self.table.writer(counting, kinds), 0  # type: ignore[arg-type]
        for group in self._groups():
            part = slice(done, done + len(group))
            columns: list[list[Any]] = [[_number(score) for score in scores[part]]] if add_score else []
            if buckets is not None:
                columns.append([BUCKETS[place] if place >= 0 else None for place in buckets[part]])
            writer.write(group, mask[part].tolist(), dict(zip(kinds, columns, strict=True)))
            self._count(group, mask[part], scores[part])
            done += len(group)
            yield Progress(done)
        writer.close()
        self.kept_bytes = counting.bytes

    def _groups(self) -> Iterator[list[Row]]:
        return groups(self.table.rows(), self.settings.block)

    def _scores(self, texts: list[bytes]) -> Scores:
        """Return nats per token of each record, or the difference; NaN without a word."""
        own = score_records(self.scorer.model, self.scorer.tokenizer, texts, end=self.scorer.end)
        logprob = -own.logprob
        if self.scorer.against is not None:
            logprob = logprob + score_records(*self.scorer.against, texts, end=self.scorer.end).logprob
        with np.errstate(invalid="ignore", divide="ignore"):
            scores = np.where(own.tokens > 1, logprob / own.tokens, np.nan)
        known = own.tokens > 1
        scores[known] = np.nan_to_num(scores[known], nan=np.inf, posinf=np.inf, neginf=-np.inf)
        return scores.astype(np.float32)

    def _count(self, group: list[Row], mask: Array, scores: Scores) -> None:
        self.bytes += sum(len(row.data or row.text) for row in group)
        self.kept += int(mask.sum())
        if (known := scores[mask & ~np.isnan(scores)]).size:
            self.lowest = min(self.lowest, float(known.min()))
            self.highest = max(self.highest, float(known.max()))

    def result(self) -> Filtered:
        """Return the numbers of the whole job."""
        return Filtered(
            self.rule.text, self.log.lines, self.kept, self.bytes, self.kept_bytes, self.resumed,
            time.monotonic() - self.began,
            *((self.lowest, self.highest) if self.lowest <= self.highest else (None, None)),
        )  # fmt: skip


class _Counting:
    """A stream that counts what is written to it."""

    def __init__(self, target: IO[bytes]) -> None:
        self._target, self.bytes, self.closed = target, 0, False

    def write(self, data: Any) -> int:
        """Write and count."""
        self.bytes += len(data)
        self._target.write(data)
        return len(data)

    def tell(self) -> int:
        """Return the bytes written so far: a Parquet file notes its places."""
        return self.bytes

    def flush(self) -> None:
        """Write what is held back."""
        self._target.flush()


def _number(score: Any) -> float | None:
    return None if np.isnan(score) else round(float(score), 6)
