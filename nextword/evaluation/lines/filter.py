"""Keep the lines of a text that a model finds likely, or unlikely; or by the difference of two models.

CCNet keeps web text by perplexity (Wenzek et al. 2020), Moore & Lewis (2010) by H_in - H_out. Streaming, at
the speed of scoring; a job that was killed resumes where it stopped and writes the same bytes.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from itertools import tee
from pathlib import Path
from typing import IO, Any

import numpy as np
from pydantic import Field

from nextword.core.contracts import Block, LanguageModel, Tokenizer
from nextword.core.errors import DataError
from nextword.core.events import Done, Event, Note, Progress, Stage
from nextword.core.settings import Settings
from nextword.data.paths import STDIN, Source, read_bytes
from nextword.data.plain import TextChecker
from nextword.data.settings import DataSettings
from nextword.evaluation.lines.progress import (
    ScoreLog,
    blank_lines,
    count_lines,
    fingerprint,
    kept_bytes,
    whole_lines,
)
from nextword.evaluation.lines.rules import BUCKETS, KeepRule, Scores
from nextword.evaluation.lines.scores import counts_end, line_batches
from nextword.store.replace import locked
from nextword.system.disk import explaining, remove_leftovers, writing

Array = np.ndarray[Any, np.dtype[Any]]
PIECE = 1 << 20
GZIP = b"\x1f\x8b"


class FilterSettings(Settings):
    """What is kept, and how the input is split."""

    keep: str = Field(
        "best", description="best, worst, head:P, middle:P, tail:P (percent), below:X, buckets[:P]"
    )
    block: int = Field(16 << 20, ge=1 << 10, le=1 << 30, description="bytes scored at a time")
    save_every: float = Field(5.0, ge=0, le=3600, description="seconds between two saves of the progress")
    add_score: bool = Field(False, description="write the score beside each line or row")
    prefix: str = Field("", max_length=100, description="beginning of the names of added columns")
    longest_line: int = Field(256 << 20, ge=1 << 10, le=1 << 34, description="bytes that one line may have")


@dataclass(frozen=True)
class Filtered:
    """What was kept."""

    keep: str
    lines: int
    kept: int
    bytes: int
    kept_bytes: int
    resumed: int  # lines already scored in an earlier attempt
    seconds: float
    lowest: float | None = None  # scores of the kept lines, in nats per token
    highest: float | None = None


@dataclass(frozen=True)
class Scorer:
    """A model with its tokenizer, and a second pair if lines are scored by the difference."""

    model: LanguageModel
    tokenizer: Tokenizer
    against: tuple[LanguageModel, Tokenizer] | None = None
    identity: str = ""  # hashes of the runs: another run does not reuse these scores

    @property
    def end(self) -> bool:
        """Whether END is counted: only where it ends a line for both models."""
        pairs = (self.tokenizer,) if self.against is None else (self.tokenizer, self.against[1])
        return all(counts_end(tokenizer) for tokenizer in pairs)

    def scores(self, blocks: Iterator[Block]) -> Iterator[Scores]:
        """Yield nats per token of every line, or the difference; float32."""
        if self.against is None:
            for batch in line_batches(self.model, self.tokenizer, blocks, end=self.end):
                yield self._per_token(-batch.logprob, batch.tokens)
            return
        first, second = tee(blocks)
        ours = line_batches(self.model, self.tokenizer, first, end=self.end)
        theirs = line_batches(*self.against, second, end=self.end)
        waiting = np.empty(0)
        for batch in ours:
            while len(waiting) < len(batch):
                waiting = np.concatenate([waiting, next(theirs).logprob])
            with np.errstate(invalid="ignore"):
                difference = waiting[: len(batch)] - batch.logprob
            waiting = waiting[len(batch) :]
            difference = np.nan_to_num(difference, nan=np.inf, posinf=np.inf, neginf=-np.inf)
            yield self._per_token(difference, batch.tokens)

    def _per_token(self, nats: Array, tokens: Array) -> Scores:
        """Divide by the tokens; blank lines get NaN, since a line without words has no perplexity."""
        has_words = tokens > int(self.end)
        return np.where(has_words, nats / np.maximum(tokens, 1), np.nan).astype(np.float32)


def filter_lines(
    scorer: Scorer,
    source: str | os.PathLike[str],
    output: str | os.PathLike[str] | IO[bytes],
    settings: FilterSettings | None = None,
) -> Iterator[Event]:
    """Copy the lines that the rule keeps; the last event is ``Done(Filtered(...))``.

    `source` is a file (also gzip) or ``-`` for standard input. With a file as `output` the job can be
    resumed: its progress stands in ``OUTPUT.progress`` until the output is complete.
    """
    settings = settings or FilterSettings()
    rule = KeepRule.parse(settings.keep, scorer.against is not None)
    target = Path(output) if isinstance(output, str | os.PathLike) else None
    with ExitStack() as stack:
        if target is not None:
            stack.enter_context(explaining(target))
            target.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(target))
            remove_leftovers(target)
        job = _Job(scorer, rule, settings, os.fspath(source), target, stack)
        with _writer(output) as writer:
            yield from job.run(writer)
        job.log.remove()
        yield Done(job.result())


def _writer(output: str | os.PathLike[str] | IO[bytes]) -> AbstractContextManager[IO[bytes]]:
    """Open the output: a stream as it is, or a file that gets its name when it is complete."""
    return writing(output) if isinstance(output, str | os.PathLike) else nullcontext(output)


class _Job:
    """One run over the input."""

    def __init__(
        self,
        scorer: Scorer,
        rule: KeepRule,
        settings: FilterSettings,
        source: str,
        target: Path | None,
        stack: ExitStack,
    ) -> None:
        self.scorer, self.rule, self.settings, self.source = scorer, rule, settings, source
        self.began = time.monotonic()
        self.shown = "standard input" if source in STDIN else source
        self.spooled = False
        self.plain = self._plain_file(stack)
        where = target.with_name(target.name + ".progress") if target is not None else None
        self.task: dict[str, Any] = {}
        if self.plain is not None and not self.spooled:
            self.task = {"identity": scorer.identity, "input": fingerprint(self.plain)}
            if not scorer.end:
                self.task["end"] = False  # scores that counted END are not resumed
        self.log = ScoreLog(where if self.task else None, self.task)
        self.resumed, self.at = self.log.lines, 0
        self.kept = self.kept_bytes = self.bytes = 0
        self.lowest, self.highest = np.inf, -np.inf

    def _plain_file(self, stack: ExitStack) -> Path | None:
        """Return the input as a file that can be read twice; None where once is enough."""
        if self.source not in STDIN and os.path.isfile(self.source):
            with open(self.source, "rb") as file:
                if file.read(2) != GZIP:
                    return Path(self.source)
        if not self.rule.needs_all:
            return None
        self.spooled = True
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nextword-filter-")))
        with open(folder / "input", "wb") as spool:
            for piece in read_bytes(Source(self.source)):
                spool.write(piece)
        return folder / "input"

    def run(self, writer: IO[bytes]) -> Iterator[Event]:
        """Score what is not scored yet; write as soon as the rule allows it."""
        total = self.plain.stat().st_size if self.plain is not None else None
        if self.resumed:
            yield Note(f"{self.shown}: resuming after {self.resumed:,} lines that are already scored")
        yield Stage("score", total, "bytes")
        at_once = not self.rule.needs_all
        if at_once and self.resumed:
            self._copy(writer, self.rule.mask(self.log.scores), self.log.offset)
        for data, scores in self._score():
            if at_once:
                self._write(writer, data, self.rule.mask(scores), scores)
            yield Progress(self.at)
        if not self.log.lines:
            raise DataError("the file is empty and has no tokens", self.shown)
        if np.isnan(self.log.scores).all():
            message = f"the file is blank ({self.log.lines:,} blank lines) and has no tokens"
            raise DataError(message, self.shown)
        self._check_unchanged()
        if not at_once:
            yield Stage("write", total, "bytes")
            self._copy(writer, self.rule.mask(self.log.scores), self.at)

    def _score(self) -> Iterator[tuple[bytes, Scores]]:
        """Yield blocks of whole lines with the scores of their lines, saving progress on the way."""
        waiting: deque[bytes] = deque()
        self.at = self.log.offset
        found: Scores = np.empty(0, np.float32)
        unsaved: list[Scores] = []
        saved = time.monotonic()
        for scores in self.scorer.scores(self._blocks(waiting)):
            found = np.concatenate([found, scores])
            while waiting and len(found) >= (count := count_lines(waiting[0])):
                data, mine, found = waiting.popleft(), found[:count], found[count:]
                self.at += len(data)
                mine = np.where(blank_lines(data), np.float32(np.nan), mine)
                unsaved.append(mine)
                yield data, mine
            if unsaved and time.monotonic() - saved >= self.settings.save_every:
                self.log.append(np.concatenate(unsaved), self.at)
                unsaved, saved = [], time.monotonic()
        if unsaved:
            self.log.append(np.concatenate(unsaved), self.at)

    def _blocks(self, waiting: deque[bytes]) -> Iterator[Block]:
        """Yield the input from where it continues, checked; blocks wait for their scores."""
        checker = TextChecker(self.shown, DataSettings(), raw=True, is_set=False)
        checker.line, checker.size = self.log.lines + 1, self.log.offset
        for data in whole_lines(self._bounded(self._pieces()), self.settings.block):
            waiting.append(data)
            yield Block(checker.check(data), False, self.shown)

    def _pieces(self) -> Iterator[bytes]:
        if self.plain is None:
            yield from read_bytes(Source(self.source))
            return
        with open(self.plain, "rb") as file:
            file.seek(self.log.offset)
            # Pieces end at fixed offsets, so that a resumed job makes the same blocks as one not stopped.
            size = min(PIECE, self.settings.block)
            while piece := file.read(size - file.tell() % size):
                yield piece

    def _bounded(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the same pieces; a line that would not fit into memory is an error."""
        line, length = self.log.lines + 1, 0
        for piece in pieces:
            head = piece.find(b"\n")
            if length + (len(piece) if head < 0 else head) > self.settings.longest_line:
                raise DataError(
                    f"this line has more than {self.settings.longest_line:,} bytes, the most one line may "
                    "have here; cut the text into lines",
                    self.shown,
                    line,
                )
            length = length + len(piece) if head < 0 else len(piece) - piece.rfind(b"\n") - 1
            line += piece.count(b"\n")
            yield piece

    def _copy(self, writer: IO[bytes], mask: np.ndarray[Any, np.dtype[np.bool_]], end: int) -> None:
        """Write the kept lines of the input up to a byte, whose scores are known."""
        assert self.plain is not None
        first, buckets = 0, self.rule.buckets(self.log.scores)
        with open(self.plain, "rb") as file:
            for data in whole_lines(_upto(file, end), self.settings.block):
                part = slice(first, first + count_lines(data))
                own = None if buckets is None else buckets[part]
                self._write(writer, data, mask[part], self.log.scores[part], own)
                first = part.stop

    def _write(
        self,
        writer: IO[bytes],
        data: bytes,
        mask: np.ndarray[Any, np.dtype[np.bool_]],
        scores: Scores,
        buckets: Array | None = None,
    ) -> None:
        if buckets is None and not self.settings.add_score:
            found = kept_bytes(data, mask)
        else:
            found = b"".join(_labelled(data, mask, scores if self.settings.add_score else None, buckets))
        writer.write(found)
        self.bytes += len(data)
        self.kept_bytes += len(found)
        self.kept += int(mask.sum())
        if (known := scores[mask & ~np.isnan(scores)]).size:
            self.lowest = min(self.lowest, float(known.min()))
            self.highest = max(self.highest, float(known.max()))

    def _check_unchanged(self) -> None:
        if self.task and self.plain is not None and fingerprint(self.plain) != self.task["input"]:
            raise DataError("the file changed while it was read; run the command again", self.shown)

    def result(self) -> Filtered:
        """Return the numbers of the whole job."""
        return Filtered(
            self.rule.text, self.log.lines, self.kept, self.bytes, self.kept_bytes, self.resumed,
            time.monotonic() - self.began,
            *((self.lowest, self.highest) if self.lowest <= self.highest else (None, None)),
        )  # fmt: skip


def _labelled(data: bytes, mask: Array, scores: Scores | None, buckets: Array | None) -> Iterator[bytes]:
    """Yield the kept lines with bucket and score before them, tabs between, as the line may have tabs."""
    for number, line in enumerate(re.findall(rb"[^\n]*\n|[^\n]+", data)):
        if mask[number]:
            cells = [] if buckets is None else [BUCKETS[buckets[number]] if buckets[number] >= 0 else ""]
            if scores is not None:
                cells.append("" if np.isnan(scores[number]) else f"{scores[number]:.6f}")
            yield "\t".join([*cells, ""]).encode() + line


def _upto(file: IO[bytes], end: int) -> Iterator[bytes]:
    while end > 0 and (piece := file.read(min(PIECE, end))):
        yield piece
        end -= len(piece)
