"""Product key memory: a feed-forward part that looks up a few of very many learned vectors (slot "ffn").

Lample et al. 2019, a row of the table [MAUSAM "Do Transformer Modifications Transfer Across Implementations
and Applications?"]. n² values are found by two lists of n keys: the best pair of keys is among the pairs of
the best keys of each list, so that 2 n products find the best of n² sums exactly.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from nextword.blocks.autocast import exact
from nextword.blocks.cache import Reading
from nextword.blocks.cost import Cost, Load, linear, weights
from nextword.blocks.roles import Role, Roles
from nextword.blocks.shape import Shape
from nextword.core.settings import Settings


class MemorySettings(Settings):
    """Product key memory (ffn = memory)."""

    keys: int = Field(64, ge=1, le=2**14, description="keys n of each half; there are n x n values")
    heads: int = Field(4, ge=1, le=1024, description="queries of a token, each with keys of its own")
    size: int = Field(64, ge=2, le=2**14, multiple_of=2, description="features of a query, both halves")
    found: int = Field(16, ge=1, le=4096, description="values that a query sums")


class ProductKeyMemory(nn.Module):
    """y = Σ over heads and found values of w V[i n + j], w = softmax of the found pairs' scores."""

    ratio: ClassVar[float] = 4.0
    options: ClassVar[type[Settings]] = MemorySettings
    roles: ClassVar[Roles] = {"keys_HPNC": Role.MATRIX, "values_VD": Role.EMBEDDING, "gain_C": Role.NORM}

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        settings = shape.of(MemorySettings)
        self.keys, self.heads, self.narrow = settings.keys, settings.heads, settings.size // 2
        self.found = min(settings.found, self.keys)
        self.query = nn.Linear(shape.width, settings.heads * settings.size)
        self.gain_C = nn.Parameter(torch.ones(self.narrow))
        self.bias_C = nn.Parameter(torch.zeros(self.narrow))
        bound = self.narrow**-0.5
        self.keys_HPNC = nn.Parameter(
            torch.empty(self.heads, 2, self.keys, self.narrow).uniform_(-bound, bound)
        )
        self.values_VD = nn.Parameter(torch.empty(self.keys**2, shape.width).normal_(std=shape.width**-0.5))

    def forward(self, x_BTD: Tensor, reading: Reading | None = None) -> Tensor:
        """Look up the values and sum them."""
        indices_MX, weights_MX = self.search(x_BTD.flatten(0, 1))
        y_ND = F.embedding_bag(indices_MX, self.values_VD, mode="sum", per_sample_weights=weights_MX)
        return y_ND.view(x_BTD.shape)

    def search(self, x_ND: Tensor) -> tuple[Tensor, Tensor]:
        """Return the values of each token, of all heads, and their weights: of a head they sum to 1."""
        q_NHPC = self.query(x_ND).view(len(x_ND), self.heads, 2, self.narrow).float()
        q_NHPC = F.layer_norm(q_NHPC, (self.narrow,), self.gain_C, self.bias_C, 1e-6)
        with exact(x_ND):
            scores_XNK = torch.bmm(
                q_NHPC.flatten(1, 2).transpose(0, 1), self.keys_HPNC.flatten(0, 1).transpose(1, 2)
            )
        top = scores_XNK.topk(self.found, dim=-1)
        best_HPNK, places_HPNK = (torch.unflatten(each, 0, (self.heads, 2)) for each in top)
        sums_HNKK = best_HPNK[:, 0, :, :, None] + best_HPNK[:, 1, :, None]
        pairs_HNKK = places_HPNK[:, 0, :, :, None] * self.keys + places_HPNK[:, 1, :, None]
        top_HNK, at_HNK = sums_HNKK.flatten(2).topk(self.found, dim=-1)
        weights_NHK = top_HNK.softmax(dim=-1).transpose(0, 1)
        return pairs_HNKK.flatten(2).gather(2, at_HNK).transpose(0, 1).flatten(1), weights_NHK.flatten(1)

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count queries, keys and values; a value is looked up by its index."""
        own = shape.of(MemorySettings)
        query = linear(shape.width, own.heads * own.size, load.tokens, bias=True)
        keys = own.heads * own.size * own.keys
        return query + weights(own.size + shape.width * own.keys**2) + Cost(keys, keys * load.tokens)
