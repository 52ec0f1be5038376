"""Adaptive softmax: frequent tokens are predicted directly, rare ones by cluster and then within it.

Grave et al. 2017. p(token) = p(cluster) p(token | cluster): an exact distribution over all tokens. A few
thousand tokens make up most of a text, so the large clusters are needed at few positions, and have fewer
dimensions. The biases, which the paper leaves out, are initialized with the frequencies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Protocol, cast, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nextword.blocks.cost import Cost
from nextword.blocks.losses import linear_cross_entropy, linear_log_probs
from nextword.blocks.roles import Role, Roles

SHARES = (12, 3)  # the first 1/12 of the tokens are frequent, then come those up to 1/3, then the rest
NARROWER = 4  # each cluster has this many times fewer dimensions than the one before
NARROWEST = 16

Layer = tuple[Tensor | None, Tensor]


def cutoffs_of(vocab_size: int) -> tuple[int, ...]:
    """Return the ranks at which the clusters begin."""
    first = max(1, vocab_size // SHARES[0])
    return first, max(first + 1, vocab_size // SHARES[1])


def narrower(width: int, cluster: int) -> int:
    """Return the dimensions of a cluster; those of the first are all."""
    return min(width, max(NARROWEST, width // NARROWER**cluster))


def ranked(counts_V: Tensor, forbidden: tuple[int, ...]) -> Tensor:
    """Return the rank of every token: most frequent first, ties by id, forbidden ones last."""
    counts_V = counts_V.clone()
    counts_V[list(forbidden)] = -1.0
    order_V = torch.argsort(counts_V, descending=True, stable=True)
    rank_V = torch.empty_like(order_V)
    rank_V[order_V] = torch.arange(len(order_V))
    return rank_V


class _ByRank(torch.autograd.Function):
    """Reorder the rows of a matrix; backward is one copy, whereas indexing clears a matrix first."""

    @staticmethod
    def forward(ctx: Any, weight_VD: Tensor, order_V: Tensor, rank_V: Tensor) -> Tensor:
        """Return a matrix whose row i is row ``order_V[i]``; rows after the tokens are left out."""
        ctx.save_for_backward(rank_V)
        ctx.behind = len(weight_VD) - len(order_V)
        return weight_VD.index_select(0, order_V)

    @staticmethod
    def backward(ctx: Any, grad_VD: Tensor) -> tuple[Tensor, None, None]:
        """Return every row to its place."""
        (rank_V,) = ctx.saved_tensors
        grad_VD = grad_VD.index_select(0, rank_V)
        return F.pad(grad_VD, (0, 0, 0, ctx.behind)) if ctx.behind else grad_VD, None, None


class Words(Protocol):
    """The vectors by which tokens are predicted, cluster by cluster; frequent tokens come first."""

    def layers(self, order_V: Tensor, rank_V: Tensor) -> list[Layer]:
        """Return for each cluster the projection of the features (None: none) and the tokens' vectors."""
        ...

    def scores(self, features_BD: Tensor, order_V: Tensor) -> Sequence[Tensor]:
        """Return the score of every token of each cluster, without its bias."""
        ...


@runtime_checkable
class Ordered(Protocol):
    """Vectors that are in order of rank themselves: those of an adaptive input."""

    def prepare(self, counts_V: Tensor, forbidden: tuple[int, ...] = ()) -> None:
        """Order the tokens by frequency."""
        ...


class OwnWords(nn.Module):
    """Vectors of their own: as wide as the features for frequent tokens, narrower for rare ones: U P x."""

    roles: ClassVar[Roles] = {"frequent_VD": Role.HEAD, "projects": Role.HEAD, "weights": Role.HEAD}

    def __init__(self, width: int, sizes: Sequence[int]) -> None:
        super().__init__()
        self.frequent_VD = nn.Parameter(torch.empty(sizes[0], width))
        self.projects = nn.ParameterList()
        self.weights = nn.ParameterList()
        nn.init.uniform_(self.frequent_VD, -0.1, 0.1)
        for i, words in enumerate(sizes[1:], start=1):
            inner = narrower(width, i)
            self.projects.append(nn.Parameter(torch.empty(inner, width)))
            self.weights.append(nn.Parameter(torch.empty(words, inner)))
            nn.init.uniform_(self.projects[-1], -(width**-0.5), width**-0.5)
            nn.init.uniform_(self.weights[-1], -(inner**-0.5), inner**-0.5)

    def layers(self, order_V: Tensor, rank_V: Tensor) -> list[Layer]:
        """Return the weights as they are, since they are in order of rank."""
        return [(None, self.frequent_VD), *zip(self.projects, self.weights, strict=True)]

    def scores(self, features_BD: Tensor, order_V: Tensor) -> Sequence[Tensor]:
        """Compute U P x, cluster by cluster."""
        tails = zip(self.projects, self.weights, strict=True)
        first = F.linear(features_BD, self.frequent_VD)
        return [first, *(F.linear(F.linear(features_BD, p_DD), w_VD) for p_DD, w_VD in tails)]


class TiedWords(nn.Module):
    """The input embeddings in all their dimensions: a rare token needs no second vector."""

    def __init__(self, embedding_VE: nn.Parameter, sizes: Sequence[int]) -> None:
        super().__init__()
        self.embedding_VE, self.sizes = embedding_VE, list(sizes)

    def layers(self, order_V: Tensor, rank_V: Tensor) -> list[Layer]:
        """Sort all vectors by rank at once."""
        by_rank_VD: Tensor = _ByRank.apply(self.embedding_VE, order_V, rank_V)  # type: ignore[no-untyped-call]
        return [(None, rows_VD) for rows_VD in torch.split(by_rank_VD, self.sizes)]

    def scores(self, features_BD: Tensor, order_V: Tensor) -> Sequence[Tensor]:
        """Sort the scores by rank: with few rows that moves less than sorting the vectors."""
        scores_BV = F.linear(features_BD, self.embedding_VE[: len(order_V)])
        return torch.split(scores_BV.index_select(-1, order_V), self.sizes, dim=-1)


class AdaptiveHead(nn.Module):
    """Clusters by frequency; ``rank_V`` holds the rank of every token.

    Tied weights: all tokens are predicted by their input embeddings, which costs few operations, since rare
    tokens are rare. Label smoothing spreads evenly over what each softmax chooses from. Forbidden tokens come
    last.
    """

    roles: ClassVar[Roles] = {"cluster_CD": Role.HEAD, "bias_V": Role.BIAS, "tail_bias_V": Role.BIAS}
    bias_V: Tensor
    no_bias_V: Tensor
    rank_V: Tensor
    order_V: Tensor  # the tokens by rank: the inverse of rank_V
    closed_V: Tensor

    def __init__(
        self,
        width: int,
        vocab_size: int,
        forbidden: tuple[int, ...] = (),
        embedding_VE: nn.Parameter | None = None,
        cutoffs: tuple[int, ...] | None = None,
        words: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.vocab_size, self.forbidden = vocab_size, forbidden
        self.cutoffs = cutoffs or cutoffs_of(vocab_size)
        edges = (0, *self.cutoffs, vocab_size)
        sizes = [end - begin for begin, end in pairwise(edges)]
        assert embedding_VE is None or embedding_VE.shape[1] == width
        assert sizes[-1] > len(forbidden)
        own = OwnWords(width, sizes) if embedding_VE is None else TiedWords(embedding_VE, sizes)
        self.words = own if words is None else words
        self.cluster_CD = nn.Parameter(torch.zeros(len(self.cutoffs), width))
        self._make_biases(sizes, has_own=words is None)
        closed_V = torch.zeros(sizes[-1])
        closed_V[sizes[-1] - len(forbidden) :] = -torch.inf
        self.register_buffer("closed_V", closed_V, persistent=False)
        self.register_buffer("rank_V", ranked(torch.zeros(vocab_size), forbidden))
        self.register_buffer("order_V", torch.argsort(self.rank_V))

    def _make_biases(self, sizes: Sequence[int], has_own: bool) -> None:
        """Make the biases; clusters that are shared with an adaptive input have none, as in the paper."""
        first = torch.zeros(sizes[0] + len(self.cutoffs))
        if has_own:
            self.bias_V = nn.Parameter(first)
            self.tail_bias_V = nn.ParameterList(nn.Parameter(torch.zeros(words)) for words in sizes[1:])
        else:
            self.register_buffer("bias_V", first, persistent=False)
            self.register_buffer("no_bias_V", torch.zeros(sum(sizes[1:])), persistent=False)
        self.tail_sizes = list(sizes[1:])

    def prepare(self, counts_V: Tensor) -> None:
        """Order the tokens by frequency and initialize the biases with the frequencies of the text."""
        device = self.rank_V.device
        counts_V = counts_V.to("cpu", torch.float64) + 0.5
        counts_V[list(self.forbidden)] = 0.0
        rank_V = ranked(counts_V, self.forbidden)
        order_V = torch.argsort(rank_V)
        parts = counts_V[order_V].tensor_split(self.cutoffs)
        sums = torch.stack([part.sum() for part in parts[1:]])
        if isinstance(self.words, Ordered):
            self.words.prepare(counts_V, self.forbidden)
        with torch.no_grad():
            self.rank_V.copy_(rank_V)
            self.order_V.copy_(order_V)
            if not self.has_biases:
                return
            self.bias_V.copy_(_log_shares(torch.cat([parts[0], sums])).to(device))
            for bias_V, part in zip(self.tail_bias_V, parts[1:], strict=True):
                bias_V.copy_(_log_shares(part).to(device))

    @classmethod
    def cost(cls, width: int, vocab_size: int, tokens: int, tied: bool, settings: Any = None) -> Cost:
        """Count vectors, clusters and biases; a quarter of the tokens is taken to be rare."""
        first, second = cutoffs_of(vocab_size)
        sizes = [first, second - first, vocab_size - second]
        own = [n * width if tied or not i else narrower(width, i) * (n + width) for i, n in enumerate(sizes)]
        clusters = 2 * width
        learned = clusters + vocab_size + 2 + (0 if tied else sum(own))
        return Cost(learned, tokens * (own[0] + clusters) + tokens // 4 * sum(own[1:]))

    def log_probs(self, features_BD: Tensor) -> Tensor:
        """Return log p of every token: log p(cluster) + log p(token | cluster)."""
        frequent_BV, *tails = self._words.scores(features_BD, self.order_V)
        head_BV = torch.cat([frequent_BV, F.linear(features_BD, self.cluster_CD)], dim=-1) + self.bias_V
        head_BV = head_BV.float().log_softmax(dim=-1)
        first = self.cutoffs[0]
        parts = [head_BV[:, :first]]
        for i, (scores_BV, bias_V) in enumerate(zip(tails, self._tail_biases(), strict=True)):
            within_BV = (scores_BV + bias_V).float().log_softmax(dim=-1)
            parts.append(head_BV[:, first + i, None] + within_BV)
        return torch.cat(parts, dim=-1)[:, self.rank_V]

    def score(self, features_ND: Tensor, ids_N: Tensor) -> Tensor:
        """Return log p of these tokens, a few rows at a time."""
        (_, frequent_VD), *tails = self._words.layers(self.order_V, self.rank_V)
        rank_N, cluster_N = self._places(ids_N)
        weight_VD = torch.cat([frequent_VD, self.cluster_CD])
        logp_N = linear_log_probs(features_ND, weight_VD, self.bias_V, self._first(rank_N, cluster_N))
        for rows_M, i, within_M in self._within(rank_N, cluster_N):
            logp_N[rows_M] += linear_log_probs(*self._inside(tails, i, features_ND[rows_M]), within_M)
        return logp_N

    def loss(self, features_ND: Tensor, targets_N: Tensor, smoothing: float = 0.0) -> Tensor:
        """Compute Σ -log p(target): all rows in the first softmax, each rare token in its cluster's."""
        (_, frequent_VD), *tails = self._words.layers(self.order_V, self.rank_V)
        rank_N, cluster_N = self._places(targets_N)
        weight_VD, first_N = torch.cat([frequent_VD, self.cluster_CD]), self._first(rank_N, cluster_N)
        loss = linear_cross_entropy(features_ND, weight_VD, self.bias_V, first_N, smoothing)
        for rows_M, i, within_M in self._within(rank_N, cluster_N):
            features_MD = features_ND.index_select(0, rows_M)
            loss = loss + linear_cross_entropy(*self._inside(tails, i, features_MD), within_M, smoothing)
        return loss

    @property
    def has_biases(self) -> bool:
        """Tell whether there are learned biases."""
        return isinstance(self.bias_V, nn.Parameter)

    @property
    def _words(self) -> Words:
        return cast(Words, self.words)

    def _tail_biases(self) -> list[Tensor]:
        """Return the biases of each cluster; a token that never occurs has -inf."""
        *most, last_V = self.tail_bias_V if self.has_biases else torch.split(self.no_bias_V, self.tail_sizes)
        return [*most, last_V + self.closed_V]

    def _inside(self, tails: list[Layer], i: int, features_MD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return input, weights and bias of the product within a cluster."""
        project_DD, weight_VD = tails[i]
        x_MD = features_MD if project_DD is None else F.linear(features_MD, project_DD)
        return x_MD, weight_VD, self._tail_biases()[i]

    def _places(self, ids_N: Tensor) -> tuple[Tensor, Tensor]:
        """Return the rank of each token, and its cluster; 0 means the frequent tokens."""
        rank_N = self.rank_V[ids_N]
        edges = torch.tensor(self.cutoffs, device=rank_N.device)
        return rank_N, torch.bucketize(rank_N, edges, right=True)

    def _first(self, rank_N: Tensor, cluster_N: Tensor) -> Tensor:
        """Return the target of the first softmax: the token, or its cluster."""
        return torch.where(cluster_N == 0, rank_N, self.cutoffs[0] - 1 + cluster_N)

    def _within(self, rank_N: Tensor, cluster_N: Tensor) -> Iterator[tuple[Tensor, int, Tensor]]:
        """Yield for each cluster that occurs its rows, its number and the tokens' places in it."""
        for i, begin in enumerate(self.cutoffs):
            rows_M = (cluster_N == i + 1).nonzero()[:, 0]
            if len(rows_M):
                yield rows_M, i, rank_N[rows_M] - begin


def _log_shares(counts_V: Tensor) -> Tensor:
    """Return the log of each share; 0 where nothing was counted."""
    shares_V = counts_V / counts_V.sum()
    return torch.where(shares_V > 0, torch.log(shares_V), 0.0)
