"""Dropout for language models: plain, locked (the slot "dropout"), of weights and of whole tokens.

Dropout: Srivastava et al. 2014. Locked: one mask for all positions of a row (Gal & Ghahramani 2016).
Weight drop (DropConnect, Wan et al. 2013) and embedding drop as in the AWD-LSTM (Merity et al. 2017).
The cost is in the random numbers: 16 bits decide on an element, four of them from each 64-bit integer.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

LEVELS = 1 << 16


def mask(shape: tuple[int, ...], share: float, like: Tensor) -> Tensor:
    """Draw 0 with probability ``share``, else 1 / (1 - share), independently; the mean is 1."""
    numbers = torch.Size(shape).numel()
    threshold = min(round(share * LEVELS), LEVELS - 1)
    bits = torch.empty((numbers + 3) // 4, dtype=torch.int64, device=like.device)
    bits.random_(torch.iinfo(torch.int64).min, None)  # all 64 bits are random
    drawn = bits.view(torch.int16)[:numbers].view(shape)
    kept = drawn >= threshold - LEVELS // 2
    return kept.to(like.dtype).mul_(LEVELS / (LEVELS - threshold))


def drop_weight(weight: Tensor, share: float) -> Tensor:
    """Drop elements of a weight, the same for all rows and positions of a batch."""
    return weight * mask(tuple(weight.shape), share, weight) if share > 0 else weight


class Dropout(nn.Module):
    """Plain: every element of every position is dropped independently."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def shape(self, x: Tensor) -> tuple[int, ...]:
        """Return the shape of the mask."""
        return tuple(x.shape)

    def forward(self, x_TBH: Tensor) -> Tensor:
        """Drop some elements, in training only."""
        if not self.training or self.share == 0:
            return x_TBH
        return x_TBH * mask(self.shape(x_TBH), self.share, x_TBH)


class LockedDropout(Dropout):
    """One mask for a row, the same at all its positions; positions come first."""

    def shape(self, x: Tensor) -> tuple[int, ...]:
        """Return the shape of a mask for one position."""
        return (1, *x.shape[1:])


class WordDropout(nn.Module):
    """Whole tokens: what is dropped of the vocabulary is dropped wherever it occurs in the batch."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, x_TBE: Tensor, ids_TB: Tensor, vocab_size: int) -> Tensor:
        """Return the embeddings of these tokens, some tokens all 0."""
        if not self.training or self.share == 0:
            return x_TBE
        return x_TBE * mask((vocab_size,), self.share, x_TBE)[ids_TB][..., None]
