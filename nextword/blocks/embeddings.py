"""Tokens as vectors: the slot "embedding"; the rows of one matrix, looked up by id, or of a narrower one.

[IITD-1 "A fixed-window neural Language Model": word embeddings e = E x, x one-hot; Bengio et al. 2003]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from nextword.blocks.cost import Cost, linear, weights
from nextword.blocks.heads import ProjectedHead
from nextword.blocks.roles import Role, Roles
from nextword.core.catalog import find
from nextword.core.settings import Settings

STD = 0.05  # of new vectors: small compared to the weights, so that the first features are small too


def make_embedding(
    name: str, vocab_size: int, width: int, options: Sequence[Settings] = (), extra: int = 0
) -> nn.Module:
    """Make the embedding of this name; one that has ``options`` is given its own of these settings."""
    kind = find("embedding", name)
    own: Any = getattr(kind, "options", None)
    more = (
        {} if own is None else {"settings": next((each for each in options if isinstance(each, own)), own())}
    )
    embedding: nn.Module = kind(vocab_size, width, extra, **more)
    return embedding


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
        self.draw(self.std)

    def draw(self, std: float) -> None:
        """Draw new random vectors with this standard deviation."""
        nn.init.normal_(self.weight_VE, std=std)

    def tie(self, kind: Any, vocab_size: int, forbidden: tuple[int, ...], more: Mapping[str, Any]) -> Any:
        """Make a head that shares these vectors."""
        return kind(self.weight_VE.shape[1], vocab_size, forbidden, self.weight_VE, **more)

    @classmethod
    def cost(cls, vocab_size: int, width: int, tokens: int, settings: Any = None) -> Cost:
        """Count the vectors; one is looked up by its index."""
        return weights(vocab_size * width)

    @classmethod
    def tied_cost(cls, head: Any, width: int, vocab_size: int, tokens: int, own: Any, settings: Any) -> Cost:
        """Count a head that shares the vectors, without them; ``own``: the head's settings."""
        cost: Cost = head.cost(width, vocab_size, tokens, True, own)
        return cost

    def forward(self, ids_BT: Tensor) -> Tensor:
        """Return ``x_BTE``, the vector of each token."""
        return F.embedding(ids_BT, self.weight_VE)


class FactorSettings(Settings):
    """Factorized embeddings (embedding_kind = factorized)."""

    size: int = Field(32, ge=1, le=2**16, description="width of a token's own vector")


class Factorized(nn.Module):
    """e = a B: a narrow vector for each token, and one matrix for all (Lan et al. 2020, "ALBERT").

    Tied, the scores of tokens are (h Bᵀ) Aᵀ; the product A B is never made.
    """

    roles: ClassVar[Roles] = {"weight_VE": Role.EMBEDDING, "project_MD": Role.MATRIX}
    options: ClassVar[type[Settings]] = FactorSettings

    def __init__(
        self, vocab_size: int, width: int, extra: int = 0, settings: FactorSettings | None = None
    ) -> None:
        super().__init__()
        size = (settings or FactorSettings()).size
        self.weight_VE = nn.Parameter(torch.empty(vocab_size + extra, size))
        self.project_MD = nn.Parameter(torch.empty(size, width))
        self.draw(STD)

    def draw(self, std: float) -> None:
        """Draw both factors so that the elements of their product have this standard deviation."""
        factor = self.weight_VE.shape[1] ** -0.25
        nn.init.normal_(self.weight_VE, std=factor)
        nn.init.normal_(self.project_MD, std=factor * std)

    def forward(self, ids_BT: Tensor) -> Tensor:
        """Look up, then widen."""
        return F.embedding(ids_BT, self.weight_VE) @ self.project_MD

    def tie(self, kind: Any, vocab_size: int, forbidden: tuple[int, ...], more: Mapping[str, Any]) -> Any:
        """Make a head over the narrow vectors, behind the matrix in reverse."""
        head = kind(self.weight_VE.shape[1], vocab_size, forbidden, self.weight_VE, **more)
        return ProjectedHead(head, self.project_MD)

    @classmethod
    def cost(cls, vocab_size: int, width: int, tokens: int, settings: Any = None) -> Cost:
        """Count the narrow vectors, and the matrix, which is applied to every token."""
        size = (settings or FactorSettings()).size
        return weights(vocab_size * size) + linear(size, width, tokens)

    @classmethod
    def tied_cost(cls, head: Any, width: int, vocab_size: int, tokens: int, own: Any, settings: Any) -> Cost:
        """Count a head of the narrow vectors, and the matrix in reverse, whose weights are shared."""
        size = (settings or FactorSettings()).size
        cost: Cost = head.cost(size, vocab_size, tokens, True, own)
        return cost + Cost(0, width * size * tokens)


class ScaledEmbedding(Embedding):
    """The table, times √E: as large as what positions add and layers write (Vaswani et al. 2017)."""

    def forward(self, ids_BT: Tensor) -> Tensor:
        """Return ``x_BTE``, the scaled vector of each token."""
        return super().forward(ids_BT) * self.weight_VE.shape[1] ** 0.5
