"""Batches of text of which a part is hidden: blanks (masked), lost spans (span), what follows a prefix.

BERT (Devlin et al. 2019), T5 and prefix language models (Raffel et al. 2020) [MAUSAM "Transformers": BERT,
T5]. What is hidden is drawn from (seed, epoch, index of the batch), so that training can stop and resume
anywhere, and another epoch hides something else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from pydantic import Field

from nextword.core.contracts import END, SPECIALS, START
from nextword.core.settings import Settings
from nextword.data.batches.batch import NOT_COUNTED, Ints, Rows
from nextword.data.batches.windows import Windows

FIRST = len(SPECIALS)  # the first token that a text may have


class MaskSettings(Settings):
    """Blanks in a text (objective = masked)."""

    share: float = Field(0.15, gt=0, lt=1, description="share of the tokens that are predicted")
    blank: float = Field(0.8, ge=0, le=1, description="of these: replaced by the blank")
    other: float = Field(0.1, ge=0, le=1, description="of these: replaced by any token; the rest stays")


class SpanSettings(Settings):
    """Spans that a text has lost (objective = span)."""

    share: float = Field(0.15, gt=0, lt=1, description="share of the tokens that are lost")
    length: float = Field(3.0, ge=1, le=1000, description="mean tokens of a span")
    sentinels: int = Field(32, ge=1, le=10_000, description="marks for spans: the most that a text may lose")


@dataclass(frozen=True)
class Corrupted(Rows):
    """``targets_BT[b, t]`` is predicted from the feature at t; `NOT_COUNTED` where nothing is.

    ``ahead_B``: so many of the first tokens are seen by all, also by those before them.
    """

    inputs_BT: Ints
    targets_BT: Ints
    lengths_B: Ints
    ahead_B: Ints | None = None

    @property
    def tokens(self) -> int:
        """Number of predictions in the loss."""
        return int(np.count_nonzero(self.targets_BT != NOT_COUNTED))

    def blank(self) -> Self:
        """Return one row of which nothing is learned."""
        row = self.cut(slice(0, 1))
        return replace(row, targets_BT=np.full_like(row.targets_BT, NOT_COUNTED))


class CorruptedBatches:
    """Blocks of a text, each changed by `corrupt`; documents follow each other with END between them."""

    share: float  # of the tokens: those that are predicted

    def __init__(self, windows: Windows, vocab_size: int) -> None:
        self.windows, self.vocab_size = windows, vocab_size
        self.per_epoch = windows.per_epoch
        self.tokens = max(1, round(windows.tokens * self.share))

    def batches(self, epoch: int, start: int = 0) -> Iterator[Any]:
        """Yield the batches of an epoch, from the one of this index on."""
        for index, places_BT, real_BT in self.windows.places(epoch, start):
            random = np.random.default_rng((self.windows.seed, epoch, index))
            yield self.corrupt(np.where(real_BT, places_BT, 0), real_BT.sum(axis=1), random)

    def corrupt(self, places_BT: Ints, lengths_B: Ints, random: np.random.Generator) -> Any:
        """Return the text at these places with something hidden in each row."""
        raise NotImplementedError


class MaskedBatches(CorruptedBatches):
    """A share of the tokens is predicted: 80 % of these are a blank, 10 % any token, 10 % as they are."""

    def __init__(self, windows: Windows, vocab_size: int, settings: MaskSettings) -> None:
        self.settings, self.share = settings, settings.share
        super().__init__(windows, vocab_size)

    def corrupt(self, places_BT: Ints, lengths_B: Ints, random: np.random.Generator) -> Corrupted:
        """Choose the tokens of each row: exactly the share of them, END never; the blank is token V."""
        ids_BT, V = self.windows.stream.at(places_BT), self.vocab_size
        may_BT = (np.arange(ids_BT.shape[1]) < lengths_B[:, None]) & (ids_BT != END)
        keys_BT = np.where(may_BT, random.random(ids_BT.shape), 2.0)
        count_B = np.rint(self.share * may_BT.sum(axis=1)).astype(np.int64).clip(1)
        rank_BT = keys_BT.argsort(axis=1).argsort(axis=1)
        chosen_BT = may_BT & (rank_BT < count_B[:, None])
        kind_BT = random.random(ids_BT.shape)
        others_BT = random.integers(FIRST, max(V, FIRST + 1), ids_BT.shape)
        blank, other = self.settings.blank, self.settings.other
        is_other_BT = chosen_BT & (kind_BT >= blank) & (kind_BT < blank + other)
        inputs_BT = np.where(is_other_BT, others_BT, np.where(chosen_BT & (kind_BT < blank), V, ids_BT))
        return Corrupted(inputs_BT, np.where(chosen_BT, ids_BT, NOT_COUNTED), lengths_B)


class PrefixBatches(CorruptedBatches):
    """A prefix of each row, of any length, is seen as a whole; what follows it is predicted."""

    share = 0.5

    def corrupt(self, places_BT: Ints, lengths_B: Ints, random: np.random.Generator) -> Corrupted:
        """Draw the lengths of the prefixes: from one token to all but the last."""
        stream = self.windows.stream
        ids_BT, next_BT = stream.at(places_BT), stream.at(places_BT + 1)
        ahead_B = random.integers(1, lengths_B + 1)
        t_T = np.arange(ids_BT.shape[1])
        counted_BT = (t_T >= ahead_B[:, None] - 1) & (t_T < lengths_B[:, None]) & (next_BT != START)
        return Corrupted(ids_BT, np.where(counted_BT, next_BT, NOT_COUNTED), lengths_B, ahead_B)
