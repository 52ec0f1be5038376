"""Perplexity and bits per byte of a text: one pass, bounded memory, for every family.

nll = -(1/T) Σ log p(w_t | before), perplexity = exp(nll) [XMU "Perplexity", which shows the nll under that
name]; bits per byte = all nats that code the file, side costs included, / ln 2 / bytes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from nextword.core.contracts import (
    START,
    Array,
    Block,
    Encoded,
    LanguageModel,
    Tokenizer,
    bits_per_byte,
    context_of,
    is_probability,
)
from nextword.core.errors import DataError
from nextword.evaluation.lm.dynamic import DynamicStream
from nextword.evaluation.lm.report import Report
from nextword.evaluation.lm.signature import signature
from nextword.evaluation.lm.streams import ScoreStream, gathered


@dataclass
class Totals:
    """Sums over the pieces of a text."""

    tokens: int = 0
    sequences: int = 0
    words: int = 0
    bytes: int = 0
    unknown: int = 0
    literal: int = 0  # of them: ``<unk>`` in the text
    nats: float = 0.0  # of tokens that are possible
    side_nats: float = 0.0
    zeros: int = 0
    first_zero: str | None = None

    def add(self, piece: Encoded, logp: Array, tokenizer: Tokenizer) -> None:
        """Add one piece."""
        zero = np.isneginf(logp)
        if zero.any():
            if self.first_zero is None:
                self.first_zero = self._place(piece.ids, int(np.argmax(zero)), tokenizer)
            self.zeros += int(zero.sum())
            logp = logp[~zero]
        self.nats -= float(np.sum(logp, dtype=np.float64))
        self.tokens += piece.tokens
        self.sequences += piece.sequences
        self.words += piece.words
        self.bytes += piece.bytes
        self.unknown += piece.unknown
        self.literal += piece.literal
        self.side_nats += piece.side_nats

    def _place(self, ids: Array, at: int, tokenizer: Tokenizer) -> str:
        """Name the token of probability 0 and its place."""
        starts = np.flatnonzero(np.asarray(ids[:at]) == START)
        number = self.sequences + len(starts)
        where = f"{tokenizer.unit} {number}"
        if len(starts):
            where += f", token {at - int(starts[-1])}"
        return f"'{tokenizer.piece(int(ids[at]))}' ({where})"


def evaluate(
    model: LanguageModel, tokenizer: Tokenizer, blocks: Iterable[Block], dynamic: DynamicStream | None = None
) -> Report:
    """Score a text and report all its numbers; ``dynamic``: the model learns as it reads."""
    began = time.perf_counter()
    totals, stream = Totals(), dynamic or ScoreStream(model, carry=True)
    for piece in gathered(tokenizer.encode_blocks(blocks, costs=True)):
        totals.add(piece, stream.push(piece.ids, piece.documents), tokenizer)
    adapted = None if dynamic is None else dynamic.description
    return report(totals, model, tokenizer, time.perf_counter() - began, adapted)


def report(
    totals: Totals, model: LanguageModel, tokenizer: Tokenizer, seconds: float, dynamic: str | None = None
) -> Report:
    """Report all numbers from the sums over a text; ``dynamic``: how the model adapted."""
    ends = totals.sequences if tokenizer.unit == "line" else 0
    if totals.words - ends <= 0:
        raise DataError("the text has no words, so there is nothing to measure; give a text with words")
    nats = math.inf if totals.zeros else totals.nats
    return Report(
        tokens=totals.tokens,
        words=totals.words,
        bytes=totals.bytes,
        nll=nats / totals.tokens,
        perplexity=_exp(nats / totals.tokens),
        word_perplexity=_exp((nats + totals.side_nats) / totals.words),
        bits_per_byte=bits_per_byte(nats + totals.side_nats, totals.bytes),
        unknown_rate=totals.unknown / max(1, totals.tokens - totals.sequences),
        literal_rate=totals.literal / max(1, totals.tokens - totals.sequences),
        side_bits_per_byte=bits_per_byte(totals.side_nats, totals.bytes),
        seconds=seconds,
        signature=signature(model, tokenizer, dynamic),
        lossless=tokenizer.lossless,
        context=context_of(model),
        zero_tokens=totals.zeros,
        first_zero=totals.first_zero,
        is_probability=is_probability(model),
        dynamic=dynamic,
    )


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf
