"""Dropout as language models use it: plain, locked (the slot "dropout"), of weights and of whole words.

Dropout: Srivastava et al. 2014. Locked: one mask for all positions of a row (Gal & Ghahramani 2016).
Weight drop (DropConnect, Wan et al. 2013) and embedding drop as in the AWD-LSTM (Merity et al. 2017).
Random numbers are the cost: 16 bits decide on a number, four of them from each random integer of 64.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

LEVELS = 1 << 16


def mask(shape: tuple[int, ...], share: float, like: Tensor) -> Tensor:
    """0 with probability ``share``, else 1 / (1 - share), independently; the mean is 1."""
    numbers = torch.Size(shape).numel()
    threshold = min(round(share * LEVELS), LEVELS - 1)
    bits = torch.empty((numbers + 3) // 4, dtype=torch.int64, device=like.device)
    bits.random_(torch.iinfo(torch.int64).min, None)  # all 64 bits are random
    drawn = bits.view(torch.int16)[:numbers].view(shape)
    kept = drawn >= threshold - LEVELS // 2
    return kept.to(like.dtype).mul_(LEVELS / (LEVELS - threshold))


def drop_weight(weight: Tensor, share: float) -> Tensor:
    """A weight with some of its numbers dropped, the same for all rows and positions of a batch."""
    return weight * mask(tuple(weight.shape), share, weight) if share > 0 else weight


class Dropout(nn.Module):
    """Plain: every number of every position has its own chance."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def shape(self, x: Tensor) -> tuple[int, ...]:
        """Of the mask."""
        return tuple(x.shape)

    def forward(self, x_TBH: Tensor) -> Tensor:
        """Some numbers dropped, in training alone."""
        if not self.training or self.share == 0:
            return x_TBH
        return x_TBH * mask(self.shape(x_TBH), self.share, x_TBH)


class LockedDropout(Dropout):
    """One mask for a row, the same at all its positions; positions come first."""

    def shape(self, x: Tensor) -> tuple[int, ...]:
        """One position."""
        return (1, *x.shape[1:])


class WordDropout(nn.Module):
    """Whole words: what is dropped of the vocabulary is dropped wherever it stands in the batch."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, x_TBE: Tensor, ids_TB: Tensor, vocab_size: int) -> Tensor:
        """The embeddings of these words, some words all 0."""
        if not self.training or self.share == 0:
            return x_TBE
        return x_TBE * mask((vocab_size,), self.share, x_TBE)[ids_TB][..., None]
