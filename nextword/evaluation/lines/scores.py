"""The score of every line of a text, in bulk: arrays, block by block, without a loop over tokens.

`score`, `filter` and `rescore` are built on this. A line is one sequence whatever the tokenizer's unit. Where
the unit is the document, END means the end of a document, which few lines are: it is left out by default.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from nextword.core.contracts import END, START, UNKNOWN, Block, LanguageModel, Tokenizer
from nextword.evaluation.lm.streams import Array, ScoreStream, gathered

LN10 = math.log(10)
NO_END = (
    "the unit of this run is the document, so each line is scored as the beginning of one, and the end of "
    "the document is left out"
)


@dataclass(frozen=True)
class LineBatch:
    """The lines of one piece: arrays of one length, and the packed ids and scores behind them."""

    first: int  # the number of the first line, from 1
    logprob: Array  # float64: log p of each line, natural
    tokens: Array  # int64: how many predictions that is
    unknown: Array  # int64: how many of them are unknown words
    ids: Array  # packed: START w … END
    logp: Array  # of each id
    starts: Array  # where each line begins in them

    def __len__(self) -> int:
        return len(self.starts)


@dataclass(frozen=True)
class TokenScore:
    """One token of a line as it is shown, and its log-probability."""

    text: str
    logprob: float
    known: bool = True


@dataclass(frozen=True)
class LineScore:
    """One line: its log-probability (natural, or to base 10) and its tokens if asked for."""

    line: int
    text: str
    logprob: float
    count: int  # predictions: tokens, plus END unless it was left out
    unknown: int
    log10: bool = False
    tokens: tuple[TokenScore, ...] = ()

    @property
    def perplexity(self) -> float:
        """Perplexity per token; infinite where a token has probability 0, 1 where there is no token."""
        nats = -self.logprob * (LN10 if self.log10 else 1.0) / max(1, self.count)
        return math.exp(nats) if nats < 700 else math.inf


def counts_end(tokenizer: Tokenizer) -> bool:
    """Tell whether END is a part of a line's score by default: where it is the end of a line."""
    return tokenizer.unit == "line"


def line_batches(
    model: LanguageModel,
    tokenizer: Tokenizer,
    blocks: Iterable[Block],
    begin: bool = True,
    end: bool | None = None,
) -> Iterator[LineBatch]:
    """Score all lines in order. ``begin=False``: START is not read; ``end``: whether END is counted.

    By default END is counted where it ends a line (`counts_end`).
    """
    end = counts_end(tokenizer) if end is None else end
    lines = blocks if tokenizer.unit == "line" else _as_documents(blocks)
    stream = ScoreStream(model, begin)
    number = 1
    kept: tuple[Array, Array] = (np.empty(0, np.int32), np.empty(0))
    for piece in gathered(tokenizer.encode_blocks(lines)):
        logp = stream.push(piece.ids)
        ids = np.asarray(piece.ids)
        if len(kept[0]):  # the first line of this piece began in the one before
            ids, logp = np.concatenate([kept[0], ids]), np.concatenate([kept[1], logp])
        starts = np.flatnonzero(ids == START)
        whole = len(ids) if len(ids) == 0 or ids[-1] == END else int(starts[-1])
        kept = ids[whole:], logp[whole:]
        if whole:
            batch = _summed(number, ids[:whole], logp[:whole], starts[starts < whole], end)
            yield batch
            number += len(batch)


def score_lines(
    model: LanguageModel,
    tokenizer: Tokenizer,
    blocks: Iterable[Block],
    *,
    tokens: bool = False,
    log10: bool = False,
    begin: bool = True,
    end: bool | None = None,
) -> Iterator[LineScore]:
    """Yield every line with its score, as the verb `score` prints it; `tokens` lists each token's, too."""
    end = counts_end(tokenizer) if end is None else end
    texts: deque[list[bytes]] = deque()
    scale = 1 / LN10 if log10 else 1.0
    for batch in line_batches(model, tokenizer, _remembered(blocks, texts), begin, end):
        lines = iter(_take(texts, len(batch)))
        values = zip(batch.logprob * scale, batch.tokens.tolist(), batch.unknown.tolist(), strict=True)
        for row, (logprob, count, unknown) in enumerate(values):
            text = next(lines).removesuffix(b"\r").decode("utf-8", "replace")
            parts = _tokens(batch, row, tokenizer, scale, end) if tokens else ()
            yield LineScore(batch.first + row, text, float(logprob), count, unknown, log10, parts)


class LineCutter:
    """Blocks to lines without their ends; a line split between two blocks waits for the next one."""

    def __init__(self) -> None:
        self.rest = b""

    def push(self, block: Block) -> list[bytes]:
        """Return the lines that end in this block; the last line of a document needs no line end."""
        lines = (self.rest + block.data if self.rest else block.data).split(b"\n")
        self.rest = lines.pop()
        return [*lines, *self.flush()] if block.ends_document else lines

    def flush(self) -> list[bytes]:
        """Return the last line, if one is waiting."""
        rest, self.rest = self.rest, b""
        return [rest] if rest else []


def _as_documents(blocks: Iterable[Block]) -> Iterator[Block]:
    """Make every line a document, for a tokenizer whose unit is the document."""
    cutter, number = LineCutter(), 1
    for block in blocks:
        for line in cutter.push(block):
            yield Block(line, True, block.source, number)
            number += 1
    for line in cutter.flush():
        yield Block(line, True, "", number)


def _remembered(blocks: Iterable[Block], texts: deque[list[bytes]]) -> Iterator[Block]:
    """Yield the same blocks; their lines are kept until they are asked for."""
    cutter = LineCutter()
    for block in blocks:
        texts.append(cutter.push(block))
        yield block
    texts.append(cutter.flush())


def _take(texts: deque[list[bytes]], count: int) -> Iterator[bytes]:
    """Yield the next lines, in order."""
    while count:
        lines = texts.popleft()
        if len(lines) > count:
            texts.appendleft(lines[count:])
            lines = lines[:count]
        yield from lines
        count -= len(lines)


def _summed(first: int, ids: Array, logp: Array, starts: Array, end: bool) -> LineBatch:
    counted = logp if end else np.where(ids == END, 0.0, logp)
    lengths = np.diff(np.append(starts, len(ids))) - (1 if end else 2)
    return LineBatch(
        first,
        np.add.reduceat(counted, starts, dtype=np.float64),
        lengths,
        np.add.reduceat(ids == UNKNOWN, starts, dtype=np.int64),
        ids,
        logp,
        starts,
    )


def _tokens(
    batch: LineBatch, row: int, tokenizer: Tokenizer, scale: float, end: bool
) -> tuple[TokenScore, ...]:
    first = int(batch.starts[row]) + 1
    last = int(batch.starts[row + 1]) if row + 1 < len(batch) else len(batch.ids)
    places = range(first, last if end else last - 1)
    return tuple(
        TokenScore(tokenizer.piece(index), float(batch.logp[place]) * scale, index != UNKNOWN)
        for place, index in zip(places, batch.ids[places.start : places.stop].tolist(), strict=True)
    )
