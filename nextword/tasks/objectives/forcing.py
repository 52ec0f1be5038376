"""What the model reads while it learns: the text, its own words, or a mixture that changes over the training.

Vanilla (free-running) training reads its own words, teacher forcing the text; scheduled sampling goes from
one to the other [MAUSAM "Teacher Forcing", "Scheduled Sampling"; Bengio et al. 2015]. A Transformer reads a
row at once, so it reads twice: the text, then the text mixed with what it said [Mihaylova & Martins 2019].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from nextword.core.contracts import START
from nextword.models.choices import Forcing
from nextword.models.network import Head, Network

_ROWS = 512  # distributions held at once


def truth_share(forcing: Forcing, progress: float) -> float:
    """The probability that the true word is read; i counts hundredths of the training."""
    i, k = 100 * progress, forcing.value
    if forcing.kind == "teacher":
        return 1.0
    if forcing.kind == "free":
        return 0.0
    if forcing.schedule == "linear":
        return 1 - (1 - k) * progress
    if forcing.schedule == "exponential":
        return float(k**i)
    return k / (k + math.exp(min(i / k, 700.0)))


@dataclass(frozen=True)
class OwnWords:
    """Chooses the words a model would write, and mixes them into what it reads."""

    truth: float  # the share of true words
    feed: str  # sample or greedy

    @torch.no_grad()
    def choose(self, network: Network, features_ND: Tensor) -> Tensor:
        """One word after each feature."""
        head = cast(Head, network.head)
        parts = torch.split(features_ND, _ROWS)
        return torch.cat([self._pick(head.log_probs(part_ND)) for part_ND in parts])

    def mix(self, true_N: Tensor, own_N: Tensor) -> Tensor:
        """The true word with probability ``truth``; where a document begins, it is always START."""
        keep_N = torch.rand(true_N.shape, device=true_N.device) < self.truth
        return torch.where(keep_N | (true_N == START), true_N, own_N)

    def _pick(self, logp_NV: Tensor) -> Tensor:
        if self.feed == "greedy":
            return logp_NV.argmax(dim=-1)
        return torch.multinomial(logp_NV.float().exp(), 1)[:, 0]
