"""Tokens as vectors: the slot "embedding"; the rows of one matrix, looked up by id.

[IITD-1 "A fixed-window neural Language Model": word embeddings e = E x, x one-hot; Bengio et al. 2003]
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nextword.blocks.roles import Role, Roles

STD = 0.05  # of new vectors: small compared to the weights, so that the first features are small too


class Embedding(nn.Module):
    """``weight_VE``: a vector for each token, and ``extra`` rows behind them for a family's own symbols."""

    roles: ClassVar[Roles] = {"weight_VE": Role.EMBEDDING}

    def __init__(self, vocab_size: int, width: int, extra: int = 0, std: float = STD) -> None:
        super().__init__()
        self.std = std
        self.weight_VE = nn.Parameter(torch.empty(vocab_size + extra, width))
        self.reset()

    def reset(self) -> None:
        """Draw new random vectors."""
        nn.init.normal_(self.weight_VE, std=self.std)

    def forward(self, ids_BT: Tensor) -> Tensor:
        """Return ``x_BTE``, the vector of each token."""
        return F.embedding(ids_BT, self.weight_VE)


class ScaledEmbedding(Embedding):
    """The same, times √E: as large as what positions add and layers write (Vaswani et al. 2017)."""

    def forward(self, ids_BT: Tensor) -> Tensor:
        """Return ``x_BTE``, the scaled vector of each token."""
        return super().forward(ids_BT) * self.weight_VE.shape[1] ** 0.5
