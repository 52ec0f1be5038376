"""A chain of tags: scores of tags and of transitions between them; partition, marginals, the best sequence.

s(x, y) = Σ_t emission(t, y_t) + transition(y_{t-1}, y_t), p(y | x) = exp s(x, y) / Z(x) (Lafferty et al.
2001). Z by the forward algorithm, as shifted exponentials times exp(transition): one small product for all
rows at each position. Past a row's length nothing is read.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from nextword.blocks.roles import Role, Roles

FORBIDDEN = -1e4  # the score of a transition that is not legal: exp of it is 0, and sums stay finite


class Chain(NamedTuple):
    """Scores: of each tag at each position, of each tag after another, of the first and the last tag."""

    emissions_BTK: Tensor
    transitions_KK: Tensor  # from, to
    first_K: Tensor
    last_K: Tensor
    lengths_B: Tensor
    decided_BT: Tensor | None = None  # tags that a search has found, where a tag depends on all before it

    @property
    def real_BT(self) -> Tensor:  # noqa: N802 - a name ends in its shape
        """Return which positions are words."""
        T = self.emissions_BTK.shape[1]
        return torch.arange(T, device=self.lengths_B.device) < self.lengths_B[:, None]


def sequence_score(chain: Chain, tags_BT: Tensor) -> Tensor:
    """Return s(x, y) of one sequence of tags in each row."""
    real_BT = chain.real_BT
    tags_BT = tags_BT.masked_fill(~real_BT, 0)
    own_BT = chain.emissions_BTK.gather(2, tags_BT[..., None])[..., 0]
    steps_BS = chain.transitions_KK[tags_BT[:, :-1], tags_BT[:, 1:]]
    last_B1 = (chain.lengths_B - 1).clamp(min=0)[:, None]
    ends_B = chain.first_K[tags_BT[:, 0]] + chain.last_K[tags_BT.gather(1, last_B1)[:, 0]]
    total_B = (own_BT * real_BT).sum(1) + (steps_BS * real_BT[:, 1:]).sum(1) + ends_B
    return torch.where(chain.lengths_B > 0, total_B, 0.0)


def forward_scores(chain: Chain) -> list[Tensor]:
    """Return ``alpha_BK`` at each position: the log of the sum over all sequences that end there in a tag.

    In rows that have ended it stays as it was.
    """
    exp_KK = chain.transitions_KK.exp()
    emissions_TBK, real_TB = chain.emissions_BTK.transpose(0, 1), chain.real_BT.T
    alpha_BK = chain.first_K + emissions_TBK[0]
    alphas = [alpha_BK]
    for t in range(1, len(emissions_TBK)):
        top_B1 = alpha_BK.max(dim=1, keepdim=True).values.detach()
        after_BK = ((alpha_BK - top_B1).exp() @ exp_KK).clamp_min(1e-37).log() + top_B1 + emissions_TBK[t]
        alpha_BK = torch.where(real_TB[t][:, None], after_BK, alpha_BK)
        alphas.append(alpha_BK)
    return alphas


def log_partition(chain: Chain) -> Tensor:
    """Return log Z(x) of each row; 0 for an empty one."""
    total_B = (forward_scores(chain)[-1] + chain.last_K).logsumexp(dim=1)
    return torch.where(chain.lengths_B > 0, total_B, 0.0)


def log_likelihood(chain: Chain, tags_BT: Tensor) -> Tensor:
    """Return log p(y | x) of each row."""
    return sequence_score(chain, tags_BT) - log_partition(chain)


def backward_scores(chain: Chain) -> Tensor:
    """Return ``beta_BTK``: the log of the sum over all ways to go on after a tag."""
    exp_KK = chain.transitions_KK.exp()
    emissions_TBK = chain.emissions_BTK.transpose(0, 1)
    T = len(emissions_TBK)
    ends_TB = torch.arange(T, device=chain.lengths_B.device)[:, None] == chain.lengths_B - 1
    beta_BK = chain.last_K.expand_as(emissions_TBK[0])
    betas = [beta_BK]
    for t in range(T - 2, -1, -1):
        inner_BK = beta_BK + emissions_TBK[t + 1]
        top_B1 = inner_BK.max(dim=1, keepdim=True).values
        before_BK = ((inner_BK - top_B1).exp() @ exp_KK.T).clamp_min(1e-37).log() + top_B1
        beta_BK = torch.where(ends_TB[t][:, None], chain.last_K, before_BK)
        betas.append(beta_BK)
    return torch.stack(betas[::-1], dim=1)


class Lattice(NamedTuple):
    """Both passes over a chain: what comes before a tag (with it), and what comes after."""

    alpha_BTK: Tensor
    beta_BTK: Tensor


def lattice(chain: Chain) -> Lattice:
    """Run the forward and the backward algorithm."""
    return Lattice(torch.stack(forward_scores(chain), dim=1), backward_scores(chain))


def marginals(chain: Chain, passes: Lattice | None = None) -> Tensor:
    """Return ``p_BTK``, the probability of each tag at each position, by forward-backward; 0 past the end."""
    alpha_BTK, beta_BTK = passes or lattice(chain)
    p_BTK = torch.softmax(alpha_BTK + beta_BTK, dim=-1)
    return p_BTK * chain.real_BT[..., None]


class TagRuns(NamedTuple):
    """Tags of some neighbouring words each, and which tags may stand before and behind them."""

    row_N: Tensor
    start_N: Tensor
    tags_NM: Tensor  # padded with anything
    lengths_N: Tensor
    before_NK: Tensor  # bool; at the start of a sentence anything may be before
    after_NK: Tensor  # bool; at its end likewise


def run_probabilities(chain: Chain, passes: Lattice, runs: TagRuns) -> Tensor:
    """Return ``p_N``: that exactly these tags stand there, between tags that are allowed.

    Σ over tags before of alpha, times the scores of the run, times Σ over tags behind of beta, over Z.
    """
    row_N, start_N, lengths_N = runs.row_N, runs.start_N, runs.lengths_N
    emissions_BTK, pairs_KK = chain.emissions_BTK, chain.transitions_KK
    at_N, T = torch.arange(len(row_N), device=row_N.device), emissions_BTK.shape[1]
    first_N, last_N = runs.tags_NM[:, 0], runs.tags_NM[at_N, lengths_N - 1]

    steps_M = torch.arange(runs.tags_NM.shape[1], device=row_N.device)
    inside_NM = steps_M < lengths_N[:, None]
    tags_NM = runs.tags_NM.masked_fill(~inside_NM, 0)
    places_NM = (start_N[:, None] + steps_M).clamp(max=T - 1)
    own_N = (emissions_BTK[row_N[:, None], places_NM, tags_NM] * inside_NM).sum(1)
    own_N = own_N + (pairs_KK[tags_NM[:, :-1], tags_NM[:, 1:]] * inside_NM[:, 1:]).sum(1)

    alpha_NK = passes.alpha_BTK[row_N, (start_N - 1).clamp(min=0)] + pairs_KK[:, first_N].T
    come_N = alpha_NK.masked_fill(~runs.before_NK, -torch.inf).logsumexp(1)
    come_N = torch.where(start_N == 0, chain.first_K[first_N], come_N)

    end_N = start_N + lengths_N
    next_N = end_N.clamp(max=T - 1)
    beta_NK = pairs_KK[last_N] + emissions_BTK[row_N, next_N] + passes.beta_BTK[row_N, next_N]
    go_N = beta_NK.masked_fill(~runs.after_NK, -torch.inf).logsumexp(1)
    go_N = torch.where(end_N == chain.lengths_B[row_N], chain.last_K[last_N], go_N)

    total_N = (passes.alpha_BTK[:, -1] + chain.last_K).logsumexp(dim=1)[row_N]
    return (come_N + own_N + go_N - total_N).exp().clamp(max=1.0)


def viterbi(chain: Chain) -> tuple[Tensor, Tensor]:
    """Return the best sequence of each row (0 past its end) and its score (Viterbi 1967)."""
    if chain.decided_BT is not None:
        decided_BT = chain.decided_BT.masked_fill(~chain.real_BT, 0)
        return decided_BT, sequence_score(chain, decided_BT)
    emissions_TBK, real_TB = chain.emissions_BTK.transpose(0, 1), chain.real_BT.T
    best_BK = chain.first_K + emissions_TBK[0]
    K = best_BK.shape[1]
    same_BK = torch.arange(K, device=best_BK.device).expand_as(best_BK)
    pointers = []
    for t in range(1, len(emissions_TBK)):
        found = (best_BK[:, :, None] + chain.transitions_KK).max(dim=1)
        is_real_B1 = real_TB[t][:, None]
        best_BK = torch.where(is_real_B1, found.values + emissions_TBK[t], best_BK)
        pointers.append(torch.where(is_real_B1, found.indices, same_BK))
    score_B, tag_B = (best_BK + chain.last_K).max(dim=1)
    tags = [tag_B]
    for pointer_BK in reversed(pointers):
        tag_B = pointer_BK.gather(1, tag_B[:, None])[:, 0]
        tags.append(tag_B)
    tags_BT = torch.stack(tags[::-1], dim=1).masked_fill(~chain.real_BT, 0)
    return tags_BT, torch.where(chain.lengths_B > 0, score_B, 0.0)


class TransitionScores(nn.Module):
    """Learned scores of transitions; those that are not legal have `FORBIDDEN` and do not learn."""

    roles: ClassVar[Roles] = {"pairs_KK": Role.BIAS, "first_K": Role.BIAS, "last_K": Role.BIAS}

    def __init__(self, legal_KK: Tensor, legal_first_K: Tensor, legal_last_K: Tensor) -> None:
        super().__init__()
        self.pairs_KK = nn.Parameter(torch.zeros(legal_KK.shape))
        self.first_K = nn.Parameter(torch.zeros(legal_first_K.shape))
        self.last_K = nn.Parameter(torch.zeros(legal_last_K.shape))
        for name, allowed in (("pairs", legal_KK), ("first", legal_first_K), ("last", legal_last_K)):
            self.register_buffer(f"not_{name}", ~allowed, persistent=False)

    not_pairs: Tensor
    not_first: Tensor
    not_last: Tensor

    def chain(self, emissions_BTK: Tensor, lengths_B: Tensor) -> Chain:
        """Return the scores of a batch, in float32."""
        return Chain(
            emissions_BTK.float(),
            self.pairs_KK.masked_fill(self.not_pairs, FORBIDDEN),
            self.first_K.masked_fill(self.not_first, FORBIDDEN),
            self.last_K.masked_fill(self.not_last, FORBIDDEN),
            lengths_B,
        )
