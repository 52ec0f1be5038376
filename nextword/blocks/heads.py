"""Output layers: from features to an exact distribution of the next token over the whole vocabulary.

ŷ(t) = softmax(U h(t) + b) [IITD-1 "A RNN Language Model"]. Tied weights, U = E: Press & Wolf 2017.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from nextword.blocks.cost import Cost, linear
from nextword.blocks.losses import linear_cross_entropy, linear_log_probs
from nextword.blocks.recompute import recomputed
from nextword.blocks.roles import Role, Roles
from nextword.core import catalog
from nextword.core.errors import ConfigError
from nextword.core.settings import Settings

_ROWS = 256  # rows of logits that are held at once to measure the removed mass


def make_head(
    name: str,
    width: int,
    vocab_size: int,
    forbidden: tuple[int, ...],
    tied: nn.Module | nn.Parameter | None = None,
    bias: bool = True,
    mask: bool = True,
    options: Sequence[Settings] = (),
) -> nn.Module:
    """Make the head of this name; ``forbidden`` tokens have probability 0; ``tied``: the input embedding.

    A tied embedding may have more rows than there are tokens; those after them are ignored. ``bias`` concerns
    heads of a full softmax, ``mask`` a `SoftmaxHead`; a head that has ``options`` is given its own of these
    settings.
    """
    kind = catalog.find("head", name)
    more: dict[str, Any] = {"mask": mask} if issubclass(kind, SoftmaxHead) else {}
    if issubclass(kind, SoftmaxHead | LogitsHead):
        more["bias"] = bias
    if (own := getattr(kind, "options", None)) is not None:
        more["settings"] = next((each for each in options if isinstance(each, own)), own())
    if isinstance(tied, nn.Module):
        head: nn.Module = cast(Any, tied).tie(kind, vocab_size, forbidden, more)
    else:
        head = kind(width, vocab_size, forbidden, tied, **more)
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

    def take_weights(self, head: SoftmaxHead) -> None:
        """Share the weights of another head, whose product this one computes in its own way."""
        self.vocab_size, self.weight_VD = head.vocab_size, head.weight_VD
        if isinstance(head.bias_V, nn.Parameter):
            self.bias_V = head.bias_V
        else:
            self.register_buffer("bias_V", head.bias_V, persistent=False)
        self.register_buffer("closed_V", head.closed_V, persistent=False)
        self.register_buffer("closed_in_loss_V", head.closed_in_loss_V, persistent=False)

    @classmethod
    def cost(cls, width: int, vocab_size: int, tokens: int, tied: bool, settings: Any = None) -> Cost:
        """Count the matrix, unless it is shared with the embedding, and its product; b is left out."""
        own = linear(width, vocab_size, tokens)
        return Cost(0, own.products) if tied else own

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

    def square_normalizers(self, features_ND: Tensor) -> Tensor:
        """Compute Σ (log Σ exp)² of the logits (z-loss, Chowdhery et al. 2022), a few rows at a time."""
        own = [weight for weight in (self.weight_VD, self.bias_V) if weight.requires_grad]
        total = features_ND.new_zeros(())
        for x_ND in torch.split(features_ND, _ROWS):
            total = total + recomputed(self._square_normalizers, x_ND, own)
        return total

    def _square_normalizers(self, x_ND: Tensor) -> Tensor:
        bias_V = self.bias_V + self.closed_in_loss_V
        logits_NV = torch.addmm(bias_V, x_ND, self.weight_VD[: self.vocab_size].T)
        return logits_NV.float().logsumexp(dim=-1).square().sum()

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


class ProjectedHead(nn.Module):
    """A head behind a matrix that makes features narrower: that of a factorized embedding, in reverse."""

    def __init__(self, head: nn.Module, project_MD: nn.Parameter) -> None:
        super().__init__()
        self.head, self.project_MD = head, project_MD
        self.vocab_size: int = cast(Any, head).vocab_size

    def __getattr__(self, name: str) -> Any:
        """Return what else the head has, such as the share of tokens that are left out."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("head"), name)

    def prepare(self, counts_V: Tensor) -> None:
        """Prepare the head."""
        self._head.prepare(counts_V)

    def log_probs(self, features_BD: Tensor) -> Tensor:
        """Project, then ask the head."""
        found: Tensor = self._head.log_probs(self._narrow(features_BD))
        return found

    def score(self, features_ND: Tensor, ids_N: Tensor) -> Tensor:
        """Project, then ask the head."""
        found: Tensor = self._head.score(self._narrow(features_ND), ids_N)
        return found

    def loss(self, features_ND: Tensor, targets_N: Tensor, smoothing: float = 0.0) -> Tensor:
        """Project, then ask the head."""
        found: Tensor = self._head.loss(self._narrow(features_ND), targets_N, smoothing)
        return found

    def square_normalizers(self, features_ND: Tensor) -> Tensor:
        """Project, then ask the head."""
        return square_normalizers(self.head, self._narrow(features_ND))

    def removed_mass(self, features_ND: Tensor) -> Tensor:
        """Project, then ask the head."""
        found: Tensor = self._head.removed_mass(self._narrow(features_ND))
        return found

    def _narrow(self, features_ND: Tensor) -> Tensor:
        return nn.functional.linear(features_ND, self.project_MD)

    @property
    def _head(self) -> Any:
        return self.head


class LogitsHead(nn.Module):
    """What heads share that compute log-probabilities in a way of their own: a few rows at a time.

    A subclass has `log_probs`; training computes its rows a second time for the gradient, so that they are
    not all held at once.
    """

    roles: ClassVar[Roles] = {"bias_V": Role.BIAS}
    bias_V: Tensor
    closed_V: Tensor
    rows: ClassVar[int] = 512  # rows that are computed at once

    def __init__(self, vocab_size: int, forbidden: tuple[int, ...], bias: bool) -> None:
        super().__init__()
        self.vocab_size = vocab_size
        if bias:
            self.bias_V = nn.Parameter(torch.zeros(vocab_size))
        else:
            self.register_buffer("bias_V", torch.zeros(vocab_size), persistent=False)
        closed_V = torch.zeros(vocab_size)
        closed_V[list(forbidden)] = -torch.inf
        self.register_buffer("closed_V", closed_V, persistent=False)

    def prepare(self, counts_V: Tensor) -> None:
        """Set b = log p(token), where there is one."""
        if isinstance(self.bias_V, nn.Parameter):
            counts_V = counts_V.to(torch.float64).cpu() + 0.5
            with torch.no_grad():
                self.bias_V.copy_(torch.log(counts_V / counts_V.sum()))

    def log_probs(self, features_BD: Tensor) -> Tensor:
        """Return log p of every token."""
        raise NotImplementedError

    def score(self, features_ND: Tensor, ids_N: Tensor) -> Tensor:
        """Return log p of these tokens, a few rows at a time."""
        parts = zip(torch.split(features_ND, self.rows), torch.split(ids_N, self.rows), strict=True)
        found = [self.log_probs(x_ND).gather(1, ids[:, None])[:, 0] for x_ND, ids in parts]
        return torch.cat(found) if found else features_ND.new_zeros(0)

    def loss(self, features_ND: Tensor, targets_N: Tensor, smoothing: float = 0.0) -> Tensor:
        """Compute Σ -log p(target)."""

        def nats(x_ND: Tensor, targets: Tensor) -> Tensor:
            logp_NV = self.log_probs(x_ND)
            loss_N = -logp_NV.gather(1, targets[:, None])[:, 0]
            if smoothing:
                even_N = -logp_NV[:, torch.isfinite(self.closed_V)].mean(dim=-1)
                loss_N = (1 - smoothing) * loss_N + smoothing * even_N
            return loss_N.sum()

        total = features_ND.new_zeros(())
        own = [weight for weight in self.parameters() if weight.requires_grad]
        parts = zip(torch.split(features_ND, self.rows), torch.split(targets_N, self.rows), strict=True)
        for x_ND, targets in parts:
            total = total + recomputed(_bound(nats, targets), x_ND, own)
        return total


def _bound(nats: Callable[[Tensor, Tensor], Tensor], targets_N: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda x_ND: nats(x_ND, targets_N)


def square_normalizers(head: nn.Module, features_ND: Tensor) -> Tensor:
    """Compute Σ (log Σ exp)² of a head's logits; raise where it has no such logits."""
    own: Callable[[Tensor], Tensor] | None = getattr(head, "square_normalizers", None)
    if own is None:
        raise ConfigError(
            "'train.z_loss' is about the logits of one softmax, but this model's head has several; set "
            "'train.z_loss' to 0, or 'model.head' to 'softmax'"
        )
    return own(features_ND)
