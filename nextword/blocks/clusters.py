"""Adaptive input: frequent tokens have wide vectors, rare ones narrow vectors and a matrix that widens them.

Baevski & Auli 2019, a row of the table [MAUSAM "Do Transformer Modifications Transfer Across Implementations
and Applications?"]. A head may share the vectors: a softmax over the scores of all clusters, or an adaptive
softmax (`blocks.adaptive`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from nextword.blocks.adaptive import AdaptiveHead, Layer, cutoffs_of, narrower, ranked
from nextword.blocks.cost import Cost, weights
from nextword.blocks.embeddings import STD
from nextword.blocks.heads import LogitsHead, SoftmaxHead
from nextword.blocks.roles import Role, Roles
from nextword.core.errors import ConfigError
from nextword.core.settings import Settings


class ClusterSettings(Settings):
    """Adaptive input embeddings (embedding_kind = adaptive)."""

    starts: tuple[int, ...] = Field(
        (), description="ranks at which further clusters begin; []: 1/12 and 1/3 of all"
    )
    widths: tuple[int, ...] = Field(
        (), description="width of each cluster's vectors; []: each 4 times narrower"
    )

    def edges(self, vocab_size: int) -> tuple[int, ...]:
        """Return the ranks at which clusters begin and end."""
        return 0, *(self.starts or cutoffs_of(vocab_size)), vocab_size

    def sizes(self, vocab_size: int, width: int) -> list[tuple[int, int]]:
        """Return tokens and width of each cluster."""
        counts = [end - begin for begin, end in pairwise(self.edges(vocab_size))]
        if min(counts) < 1 or (self.widths and len(self.widths) != len(counts)):
            raise ConfigError(
                f"'model.clusters' has {len(self.widths)} widths for {len(counts)} clusters of {counts} "
                "tokens; give rising starts within the vocabulary, and one width for each cluster"
            )
        widths = self.widths or [narrower(width, i) for i in range(len(counts))]
        return list(zip(counts, widths, strict=True))


class ClusterEmbedding(nn.Module):
    """e = a B of the token's cluster; without B where a is as wide as the features.

    ``rank_V`` holds the rank of every token, most frequent first, as `prepare` finds it.
    """

    options: ClassVar[type[Settings]] = ClusterSettings
    roles: ClassVar[Roles] = {"vectors": Role.EMBEDDING, "projects": Role.MATRIX}
    rank_V: Tensor
    order_V: Tensor

    def __init__(
        self, vocab_size: int, width: int, extra: int = 0, settings: ClusterSettings | None = None
    ) -> None:
        super().__init__()
        settings = settings or ClusterSettings()
        self.vocab_size, self.width = vocab_size + extra, width
        self.edges, sizes = settings.edges(self.vocab_size), settings.sizes(self.vocab_size, width)
        self.sizes = [count for count, _ in sizes]
        self.vectors, self.projects = nn.ParameterList(), nn.ParameterList()
        for count, narrow in sizes:
            self.vectors.append(nn.Parameter(torch.empty(count, narrow)))
            if narrow != width:
                self.projects.append(nn.Parameter(torch.empty(narrow, width)))
        self.draw(STD)
        self.register_buffer("rank_V", torch.arange(self.vocab_size))
        self.register_buffer("order_V", torch.arange(self.vocab_size))

    def draw(self, std: float) -> None:
        """Draw all so that the elements of a token's vector have this standard deviation."""
        for project_MD, vectors_NM in self.clusters():
            factor = vectors_NM.shape[1] ** -0.25
            nn.init.normal_(vectors_NM, std=std if project_MD is None else factor)
            if project_MD is not None:
                nn.init.normal_(project_MD, std=factor * std)

    def prepare(self, counts_V: Tensor, forbidden: tuple[int, ...] = ()) -> None:
        """Order the tokens by frequency."""
        counts_V = F.pad(counts_V.to("cpu", torch.float64), (0, self.vocab_size - len(counts_V)))
        rank_V = ranked(counts_V, forbidden)
        with torch.no_grad():
            self.rank_V.copy_(rank_V)
            self.order_V.copy_(torch.argsort(rank_V))

    def clusters(self) -> list[Layer]:
        """Return for each cluster the matrix that widens its vectors (None: none), and the vectors."""
        projects = iter(self.projects)
        return [(None if a.shape[1] == self.width else next(projects), a) for a in self.vectors]

    def forward(self, ids_BT: Tensor) -> Tensor:
        """Look up every token in its cluster; shapes do not depend on the text."""
        rank_BT, x_BTD = self.rank_V[ids_BT], torch.zeros((), device=ids_BT.device)
        for begin, (project_MD, vectors_NM) in zip(self.edges, self.clusters(), strict=False):
            is_here_BT = (rank_BT >= begin) & (rank_BT < begin + len(vectors_NM))
            own_BTM = F.embedding((rank_BT - begin).clamp(0, len(vectors_NM) - 1), vectors_NM)
            own_BTM = own_BTM * is_here_BT[..., None]
            x_BTD = x_BTD + (own_BTM if project_MD is None else own_BTM @ project_MD)
        return x_BTD

    def layers(self, order_V: Tensor, rank_V: Tensor) -> list[Layer]:
        """Return the clusters as an adaptive softmax reads them: they are in order of rank."""
        return self.clusters()

    def scores(self, features_BD: Tensor, order_V: Tensor) -> Sequence[Tensor]:
        """Return the scores of every cluster's tokens: (h Bᵀ) Aᵀ."""
        found = []
        for project_MD, vectors_NM in self.clusters():
            x_BM = features_BD if project_MD is None else F.linear(features_BD, project_MD)
            found.append(F.linear(x_BM, vectors_NM))
        return found

    def tie(self, kind: Any, vocab_size: int, forbidden: tuple[int, ...], more: Mapping[str, Any]) -> Any:
        """Make a head that shares the vectors."""
        if issubclass(kind, AdaptiveHead):
            return AdaptiveHead(self.width, vocab_size, forbidden, words=self, cutoffs=self.edges[1:-1])
        if kind is SoftmaxHead:
            return ClusterSoftmax(self, vocab_size, forbidden)
        raise ConfigError(
            "'model.embedding_kind' is 'adaptive', and this head cannot share its vectors; set 'model.tied' "
            "to false, or 'model.head' to 'softmax' or 'adaptive'"
        )

    @classmethod
    def cost(cls, vocab_size: int, width: int, tokens: int, settings: Any = None) -> Cost:
        """Count vectors and matrices; every matrix is applied to all tokens."""
        sizes = (settings or ClusterSettings()).sizes(vocab_size, width)
        narrow = [m for _, m in sizes if m != width]
        return weights(sum(n * m for n, m in sizes)) + Cost(width * sum(narrow), width * sum(narrow) * tokens)

    @classmethod
    def tied_cost(cls, head: Any, width: int, vocab_size: int, tokens: int, own: Any, settings: Any) -> Cost:
        """Count a softmax over all clusters; of an adaptive one, the first and a quarter of the others."""
        sizes = (settings or ClusterSettings()).sizes(vocab_size, width)
        each = [n * m + (0 if m == width else m * width) for n, m in sizes]
        if not issubclass(head, AdaptiveHead):
            return Cost(0, tokens * sum(each))
        clusters = (len(sizes) - 1) * width
        return Cost(clusters, tokens * (each[0] + clusters) + tokens // 4 * sum(each[1:]))


class ClusterSoftmax(LogitsHead):
    """One softmax over the scores of all tokens, cluster by cluster."""

    def __init__(self, words: ClusterEmbedding, vocab_size: int, forbidden: tuple[int, ...]) -> None:
        super().__init__(vocab_size, forbidden, bias=False)
        self.words, self.forbidden = words, forbidden

    def prepare(self, counts_V: Tensor) -> None:
        """Order the tokens by frequency."""
        self.words.prepare(counts_V, self.forbidden)

    def log_probs(self, features_BD: Tensor) -> Tensor:
        """Return log p of every token."""
        by_rank_BV = torch.cat(list(self.words.scores(features_BD, self.words.order_V)), dim=-1)
        logits_BV = by_rank_BV.index_select(-1, self.words.rank_V[: self.vocab_size])
        return torch.log_softmax(logits_BV.float() + self.closed_V, dim=-1)
