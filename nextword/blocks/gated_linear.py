"""Gated linear attention (slot "mixer"): every feature of a key fades at a speed that the token decides.

Yang et al. 2024, "GLA": S = Diag(α) S + k vᵀ, o = S q, α = σ(x A B + b)^(1/16), then the norm of each head
times SiLU of the input.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from nextword.blocks.cost import Cost, Load
from nextword.blocks.linear_mixers import LinearMixer
from nextword.blocks.low_rank import LowRank
from nextword.blocks.shape import Shape

_RANK, _ROOT = 16, 16  # of the published model
_LEAST = -4.0  # of log α: a chunk divides by e^(16 * 4) at most, which float32 holds


class GatedLinearAttention(LinearMixer):
    """A decay for each feature, each head and each token."""

    name = "gla"
    together = 16

    def make_decay(self, shape: Shape) -> None:
        """Make the two matrices of the decays."""
        self.decay = LowRank(shape, _RANK, torch.zeros(shape.heads * shape.head_size))

    def decays(self, x_BTD: Tensor) -> tuple[Tensor, Tensor]:
        """Return log α of all features, of which there are as many as in all heads."""
        log_BTX = F.logsigmoid(self.decay.up(self.decay.down(x_BTD)).float()) / _ROOT
        return log_BTX.clamp(min=_LEAST), log_BTX.new_ones(*x_BTD.shape[:2], self.heads)

    def chunk(
        self, q: Tensor, k: Tensor, v: Tensor, decay_BXT: Tensor, share_BNT: Tensor, sum_BNKV: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Compute o = S q for all tokens of a chunk, and S after it."""
        since_BNTK = torch.unflatten(decay_BXT, 1, (self.heads, self.size)).transpose(2, 3).cumsum(dim=2)
        v = v * share_BNT[..., None]
        q, k = q * since_BNTK.exp(), k * (-since_BNTK).exp()
        y_BNTV = (q @ k.transpose(-2, -1)).tril() @ v + q @ sum_BNKV
        return y_BNTV, (sum_BNKV + k.transpose(-2, -1) @ v) * since_BNTK[:, :, -1, :, None].exp()

    @classmethod
    def decay_cost(cls, shape: Shape, load: Load) -> Cost:
        """Count the two matrices."""
        return LowRank.cost(shape, load, _RANK)
