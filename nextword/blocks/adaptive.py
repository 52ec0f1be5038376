"""Adaptive softmax: frequent words are predicted at once, rare ones by their cluster and then within it.

Grave et al. 2017. p(word) = p(cluster) p(word | cluster): an exact distribution over all words. Most text
is written with a few thousand words, so that the large clusters are asked for in few places, and in fewer
dimensions. The biases, which the paper leaves out, begin at the words' frequencies.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nextword.blocks.losses import linear_cross_entropy, linear_log_probs

SHARES = (12, 3)  # the first 1/12 of the words are frequent, then come those up to 1/3, then the rest
NARROWER = 4  # each cluster has so many times fewer dimensions than the one before
NARROWEST = 16


def cutoffs_of(vocab_size: int) -> tuple[int, ...]:
    """Where the clusters begin, by rank."""
    first = max(1, vocab_size // SHARES[0])
    return first, max(first + 1, vocab_size // SHARES[1])


class OwnRows(nn.Module):
    """Weights of the frequent words, by rank."""

    def __init__(self, count: int, width: int) -> None:
        super().__init__()
        self.weight_VD = nn.Parameter(torch.empty(count, width))
        nn.init.uniform_(self.weight_VD, -0.1, 0.1)

    def forward(self, order_V: Tensor) -> Tensor:
        """As they are."""
        return self.weight_VD


class TiedRows(nn.Module):
    """The same, taken from the input embeddings: those of the words of some ranks, in their order."""

    def __init__(self, begin: int, end: int, embedding_VE: nn.Parameter) -> None:
        super().__init__()
        self.begin, self.end, self.embedding_VE = begin, end, embedding_VE

    def forward(self, order_V: Tensor) -> Tensor:
        """``order_V`` are the words by rank."""
        return F.embedding(order_V[self.begin : self.end], self.embedding_VE)


class Tail(nn.Module):
    """The words of one cluster, given that the word is among them: softmax(U x + b)."""

    closed_V: Tensor

    def __init__(self, words: int, forbidden: int) -> None:
        super().__init__()
        self.bias_V = nn.Parameter(torch.zeros(words))
        closed_V = torch.zeros(words)
        closed_V[words - forbidden :] = -torch.inf
        self.register_buffer("closed_V", closed_V, persistent=False)

    def layer(self, features_ND: Tensor, order_V: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Input, weights and bias of the last product."""
        raise NotImplementedError


class NarrowTail(Tail):
    """Weights of its own in fewer dimensions: softmax(U P x + b)."""

    def __init__(self, width: int, inner: int, words: int, forbidden: int) -> None:
        super().__init__(words, forbidden)
        self.project_DD = nn.Parameter(torch.empty(inner, width))
        self.weight_VD = nn.Parameter(torch.empty(words, inner))
        nn.init.uniform_(self.project_DD, -(width**-0.5), width**-0.5)
        nn.init.uniform_(self.weight_VD, -(inner**-0.5), inner**-0.5)

    def layer(self, features_ND: Tensor, order_V: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The features in fewer dimensions."""
        return F.linear(features_ND, self.project_DD), self.weight_VD, self.bias_V + self.closed_V


class TiedTail(Tail):
    """The words' input embeddings in all their dimensions: rare words need no second vector to be learnt."""

    def __init__(self, rows: TiedRows, forbidden: int) -> None:
        super().__init__(rows.end - rows.begin, forbidden)
        self.rows = rows

    def layer(self, features_ND: Tensor, order_V: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The features as they are."""
        return features_ND, self.rows(order_V), self.bias_V + self.closed_V


class AdaptiveHead(nn.Module):
    """Clusters by frequency; ``rank_V`` says which place a word has among them.

    Tied weights: all words are predicted by their input embeddings, which costs few operations, since rare
    words are rare. Label smoothing spreads evenly over what each softmax chooses from. Forbidden words come
    last.
    """

    rank_V: Tensor
    order_V: Tensor  # the words by rank: the inverse of rank_V

    def __init__(
        self,
        width: int,
        vocab_size: int,
        forbidden: tuple[int, ...] = (),
        embedding_VE: nn.Parameter | None = None,
        cutoffs: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__()
        self.vocab_size, self.forbidden = vocab_size, forbidden
        self.cutoffs = cutoffs or cutoffs_of(vocab_size)
        first, ends = self.cutoffs[0], (*self.cutoffs[1:], vocab_size)
        assert embedding_VE is None or embedding_VE.shape[1] == width
        self.frequent = OwnRows(first, width) if embedding_VE is None else TiedRows(0, first, embedding_VE)
        self.cluster_CD = nn.Parameter(torch.zeros(len(ends), width))
        self.bias_V = nn.Parameter(torch.zeros(first + len(ends)))
        self.tails = nn.ModuleList()
        for i, (begin, end) in enumerate(zip(self.cutoffs, ends, strict=True), start=1):
            closed = len(forbidden) if end == vocab_size else 0
            inner = min(width, max(NARROWEST, width // NARROWER**i))
            self.tails.append(
                NarrowTail(width, inner, end - begin, closed)
                if embedding_VE is None
                else TiedTail(TiedRows(begin, end, embedding_VE), closed)
            )
        self.register_buffer("rank_V", self._ranked(torch.zeros(vocab_size)))
        self.register_buffer("order_V", torch.argsort(self.rank_V))
        assert ends[-1] - self.cutoffs[-1] > len(forbidden)

    def prepare(self, counts_V: Tensor) -> None:
        """Order the words by frequency, and let every softmax begin at the frequencies in the text."""
        device = self.rank_V.device
        counts_V = counts_V.to("cpu", torch.float64) + 0.5
        counts_V[list(self.forbidden)] = 0.0
        rank_V = self._ranked(counts_V)
        by_rank_V = torch.empty_like(counts_V)
        by_rank_V[rank_V] = counts_V
        parts = by_rank_V.tensor_split(self.cutoffs)
        sums = torch.stack([part.sum() for part in parts[1:]])
        with torch.no_grad():
            self.rank_V.copy_(rank_V)
            self.order_V.copy_(torch.argsort(rank_V))
            self.bias_V.copy_(_log_shares(torch.cat([parts[0], sums])).to(device))
            for tail, part in zip(self._tails(), parts[1:], strict=True):
                tail.bias_V.copy_(_log_shares(part).to(device))

    def log_probs(self, features_BD: Tensor) -> Tensor:
        """log p of every word: log p(cluster) + log p(word | cluster)."""
        first = self.cutoffs[0]
        head_BV = F.linear(features_BD, self._head_weight(), self.bias_V).float().log_softmax(dim=-1)
        parts = [head_BV[:, :first]]
        for i, tail in enumerate(self._tails()):
            x_BD, weight_VD, bias_V = tail.layer(features_BD, self.order_V)
            within_BV = F.linear(x_BD, weight_VD, bias_V).float().log_softmax(dim=-1)
            parts.append(head_BV[:, first + i, None] + within_BV)
        return torch.cat(parts, dim=-1)[:, self.rank_V]

    def score(self, features_ND: Tensor, ids_N: Tensor) -> Tensor:
        """log p of these words, some rows at a time."""
        rank_N, cluster_N = self._places(ids_N)
        head_N = torch.where(cluster_N == 0, rank_N, self.cutoffs[0] - 1 + cluster_N)
        logp_N = linear_log_probs(features_ND, self._head_weight(), self.bias_V, head_N)
        for rows_M, tail, within_M in self._within(rank_N, cluster_N):
            logp_N[rows_M] += linear_log_probs(*tail.layer(features_ND[rows_M], self.order_V), within_M)
        return logp_N

    def loss(self, features_ND: Tensor, targets_N: Tensor, smoothing: float = 0.0) -> Tensor:
        """Σ -log p(target): all rows in the first softmax, and each rare word in its cluster's."""
        rank_N, cluster_N = self._places(targets_N)
        head_N = torch.where(cluster_N == 0, rank_N, self.cutoffs[0] - 1 + cluster_N)
        loss = linear_cross_entropy(features_ND, self._head_weight(), self.bias_V, head_N, smoothing)
        for rows_M, tail, within_M in self._within(rank_N, cluster_N):
            features_MD = features_ND.index_select(0, rows_M)
            loss = loss + linear_cross_entropy(*tail.layer(features_MD, self.order_V), within_M, smoothing)
        return loss

    def _head_weight(self) -> Tensor:
        """Of the frequent words, by rank, and of the clusters."""
        return torch.cat([self.frequent(self.order_V), self.cluster_CD])

    def _places(self, ids_N: Tensor) -> tuple[Tensor, Tensor]:
        """The rank of each word, and its cluster; 0 is the frequent ones."""
        rank_N = self.rank_V[ids_N]
        edges = torch.tensor(self.cutoffs, device=rank_N.device)
        return rank_N, torch.bucketize(rank_N, edges, right=True)

    def _within(self, rank_N: Tensor, cluster_N: Tensor) -> Iterator[tuple[Tensor, Tail, Tensor]]:
        """The rows of each cluster that has some, and their words' places in it."""
        for i, tail in enumerate(self._tails()):
            rows_M = (cluster_N == i + 1).nonzero()[:, 0]
            if len(rows_M):
                yield rows_M, tail, rank_N[rows_M] - self.cutoffs[i]

    def _tails(self) -> Iterator[Tail]:
        for tail in self.tails:
            assert isinstance(tail, Tail)
            yield tail

    def _ranked(self, counts_V: Tensor) -> Tensor:
        """The rank of every word: most frequent first, equal ones by number, forbidden ones last."""
        counts_V = counts_V.clone()
        counts_V[list(self.forbidden)] = -1.0
        order_V = torch.argsort(counts_V, descending=True, stable=True)
        rank_V = torch.empty_like(order_V)
        rank_V[order_V] = torch.arange(len(order_V))
        return rank_V


def _log_shares(counts_V: Tensor) -> Tensor:
    """log of each one's share; 0 where nothing was counted."""
    shares_V = counts_V / counts_V.sum()
    return torch.where(shares_V > 0, torch.log(shares_V), 0.0)
