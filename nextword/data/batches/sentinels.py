"""Text that has lost spans: marks stand in their places, and the spans are written after their marks.

T5's span corruption (Raffel et al. 2020): "Thank you <X> me to your party <Y> week" and "<X> for inviting <Y>
last". An encoder reads the first and a decoder writes the second; or one stack reads the first as a prefix.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from nextword.core.contracts import END, START
from nextword.data.batches.batch import NOT_COUNTED, Ints
from nextword.data.batches.corrupted import Corrupted, CorruptedBatches, SpanSettings
from nextword.data.batches.pairs import PairRows
from nextword.data.batches.windows import Windows


class SpanBatches(CorruptedBatches):
    """The text with marks as a prefix, then the spans; only the spans are predicted."""

    def __init__(self, windows: Windows, vocab_size: int, settings: SpanSettings) -> None:
        self.settings, self.share = settings, settings.share + settings.share / settings.length
        super().__init__(windows, vocab_size)

    def corrupt(self, places_BT: Ints, lengths_B: Ints, random: np.random.Generator) -> Corrupted:
        """Put what is left and what is lost one after the other."""
        pairs = self.split(places_BT, lengths_B, random)
        rows = [(left + lost[:-1], len(left), lost) for left, lost in pairs]
        T = max(len(inputs) for inputs, _, _ in rows)
        inputs_BT = np.full((len(rows), T), END, np.int64)
        targets_BT = np.full((len(rows), T), NOT_COUNTED, np.int64)
        for row, (inputs, ahead, lost) in enumerate(rows):
            inputs_BT[row, : len(inputs)] = inputs
            targets_BT[row, ahead - 1 : ahead - 1 + len(lost)] = lost
        lengths_B = np.array([len(inputs) for inputs, _, _ in rows], np.int64)
        ahead_B = np.array([ahead for _, ahead, _ in rows], np.int64)
        return Corrupted(inputs_BT, targets_BT, lengths_B, ahead_B)

    def split(
        self, places_BT: Ints, lengths_B: Ints, random: np.random.Generator
    ) -> list[tuple[list[int], list[int]]]:
        """Return for each row what is left, with marks, and what is lost, after marks and before END."""
        ids_BT = self.windows.stream.at(places_BT)
        pairs = zip(ids_BT, lengths_B.tolist(), strict=True)
        return [lose(ids_T[:length], self.vocab_size, self.settings, random) for ids_T, length in pairs]


class SpanPairs(SpanBatches):
    """The text with marks as a source, the spans as a target."""

    def corrupt(self, places_BT: Ints, lengths_B: Ints, random: np.random.Generator) -> PairRows:  # type: ignore[override]
        """Return sources and targets, as a translation has them."""
        rows = self.split(places_BT, lengths_B, random)
        source_BS, lengths_B = _filled([left for left, _ in rows], END)
        targets_BT, counts_B = _filled([lost for _, lost in rows], NOT_COUNTED)
        inputs_BT, _ = _filled([[START, *lost[:-1]] for _, lost in rows], END)
        return PairRows(source_BS, lengths_B, inputs_BT, targets_BT, counts_B)


def lose(
    ids_T: Ints, vocab_size: int, settings: SpanSettings, random: np.random.Generator
) -> tuple[list[int], list[int]]:
    """Take spans out of a text, each at least a token from the next; the last one ends the text.

    A text of one token is lost as a whole.
    """
    kept, lost = lengths_of(len(ids_T), settings, random)
    left: list[int] = []
    spans: list[int] = []
    at = 0
    for mark, (keep, lose_) in enumerate(zip(kept, lost, strict=True)):
        left += [*ids_T[at : at + keep].tolist(), vocab_size + mark]
        spans += [vocab_size + mark, *ids_T[at + keep : at + keep + lose_].tolist()]
        at += keep + lose_
    return left, [*spans, END]


def lengths_of(
    length: int, settings: SpanSettings, random: np.random.Generator
) -> tuple[list[int], list[int]]:
    """Draw how many tokens are kept and lost in turn, beginning with kept ones."""
    if length < 2:
        return [0], [length]
    lost, spans = counts_of(length, settings)
    return _parts(length - lost, spans, random), _parts(lost, spans, random)


def counts_of(length: int, settings: SpanSettings) -> tuple[int, int]:
    """Return how many tokens of a text are lost, in how many spans."""
    lost = min(max(1, round(settings.share * length)), length - 1)
    spans = min(max(1, round(lost / settings.length)), lost, length - lost, settings.sentinels)
    return lost, spans


def longest(positions: int, settings: SpanSettings) -> int:
    """Return the longest text that is still at most so many positions with its spans behind it."""
    for length in range(positions, 1, -1):
        if length + 2 * counts_of(length, settings)[1] <= positions:
            return length
    return 1


def _parts(total: int, count: int, random: np.random.Generator) -> list[int]:
    """Draw a division of a number into so many parts, each at least 1; all divisions are equally likely."""
    cuts = sorted(random.choice(total - 1, count - 1, replace=False).tolist()) if count > 1 else []
    return [last - first for first, last in pairwise([0, *(cut + 1 for cut in cuts), total])]


def _filled(rows: list[list[int]], fill: int) -> tuple[Ints, Ints]:
    """Return rows as one array, filled up, and their lengths."""
    lengths_B = np.array([len(row) for row in rows], np.int64)
    ids_BT = np.full((len(rows), int(lengths_B.max())), fill, np.int64)
    for ids_T, row in zip(ids_BT, rows, strict=True):
        ids_T[: len(row)] = row
    return ids_BT, lengths_B
