"""Output layers: from features to an exact distribution of the next token over the whole vocabulary.

ŷ(t) = softmax(U h(t) + b) [IITD-1 "A RNN Language Model"]. Tied weights, U = E: Press & Wolf 2017.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from nextword.blocks.losses import linear_cross_entropy, linear_log_probs
from nextword.blocks.roles import Role, Roles
from nextword.core import catalog

_ROWS = 256  # rows of logits that are held at once to measure the removed mass


def make_head(
    name: str,
    width: int,
    vocab_size: int,
    forbidden: tuple[int, ...],
    embedding_VE: nn.Parameter | None = None,
    bias: bool = True,
    mask: bool = True,
) -> nn.Module:
    """Make the head of this name; ``forbidden`` tokens have probability 0; ``embedding_VE``: tied weights.

    A tied embedding may have more rows than there are tokens; those after them are ignored. ``bias`` and
    ``mask`` concern a `SoftmaxHead`; other heads are made in one way.
    """
    kind = catalog.find("head", name)
    options = {"bias": bias, "mask": mask} if issubclass(kind, SoftmaxHead) else {}
    head: nn.Module = kind(width, vocab_size, forbidden, embedding_VE, **options)
    return head


class SoftmaxHead(nn.Module):
    """logits = x Uᵀ + b, then softmax over all V tokens.

    Without ``bias`` b is 0, as in most published models. ``mask``: the forbidden tokens are left out of the
    loss, too; without it the loss is over all V tokens, and only `log_probs` and `score` leave them out.
    """

    roles: ClassVar[Roles] = {"weight_VD": Role.HEAD, "bias_V": Role.BIAS}
    bias_V: Tensor
    closed_V: Tensor
    closed_in_loss_V: Tensor

    def __init__(
        self,
        width: int,
        vocab_size: int,
        forbidden: tuple[int, ...] = (),
        embedding_VE: nn.Parameter | None = None,
        bias: bool = True,
        mask: bool = True,
    ) -> None:
        super().__init__()
        self.vocab_size = vocab_size
        if embedding_VE is None:
            self.weight_VD = nn.Parameter(torch.empty(vocab_size, width))
            nn.init.uniform_(self.weight_VD, -0.1, 0.1)
        else:
            assert embedding_VE.shape[1] == width
            assert embedding_VE.shape[0] >= vocab_size
            self.weight_VD = embedding_VE
        if bias:
            self.bias_V = nn.Parameter(torch.zeros(vocab_size))
        else:
            self.register_buffer("bias_V", torch.zeros(vocab_size), persistent=False)
        closed_V = torch.zeros(vocab_size)
        closed_V[list(forbidden)] = -torch.inf
        self.register_buffer("closed_V", closed_V, persistent=False)
        in_loss_V = closed_V.clone() if mask else torch.zeros(vocab_size)
        self.register_buffer("closed_in_loss_V", in_loss_V, persistent=False)

    def prepare(self, counts_V: Tensor) -> None:
        """Set b = log p(token): before training, tokens are as likely as in the text [Karpathy 2019]."""
        if not isinstance(self.bias_V, nn.Parameter):
            return
        counts_V = counts_V.to(torch.float64).cpu() + 0.5
        counts_V[torch.isinf(self.closed_V).cpu()] = 0.0
        logp_V = torch.log(counts_V / counts_V.sum())
        with torch.no_grad():
            self.bias_V.copy_(torch.where(torch.isinf(logp_V), 0.0, logp_V))

    def logits(self, features_ND: Tensor) -> Tensor:
        """Return the logits; a forbidden token has -inf."""
        return torch.addmm(self.bias_V + self.closed_V, features_ND, self.weight_VD[: self.vocab_size].T)

    def log_probs(self, features_BD: Tensor) -> Tensor:
        """Return log p of every token."""
        return torch.log_softmax(self.logits(features_BD).float(), dim=-1)

    def score(self, features_ND: Tensor, ids_N: Tensor) -> Tensor:
        """Return log p of these tokens, a few rows at a time."""
        return linear_log_probs(features_ND, self.weight_VD, self.bias_V + self.closed_V, ids_N)

    def loss(self, features_ND: Tensor, targets_N: Tensor, smoothing: float = 0.0) -> Tensor:
        """Compute Σ -log p(target)."""
        bias_V = self.bias_V + self.closed_in_loss_V
        return linear_cross_entropy(features_ND, self.weight_VD, bias_V, targets_N, smoothing)

    @property
    def removes_mass(self) -> bool:
        """Tell whether the loss gives a share to tokens that `log_probs` leaves out."""
        return bool(torch.isinf(self.closed_V).any()) and not bool(torch.isinf(self.closed_in_loss_V).any())

    def removed_mass(self, features_ND: Tensor) -> Tensor:
        """Return the probability that the forbidden tokens would have if nothing left them out."""
        weight_VD, is_forbidden_V = self.weight_VD[: self.vocab_size], torch.isinf(self.closed_V)
        masses = []
        for part_ND in torch.split(features_ND, _ROWS):
            logits_NV = torch.addmm(self.bias_V, part_ND, weight_VD.T).float()
            masses.append(torch.softmax(logits_NV, dim=-1)[:, is_forbidden_V].sum(dim=-1))
        return torch.cat(masses)
