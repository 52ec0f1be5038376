"""Copying from the source: the pointer-generator (See et al. 2017).

A gate g says how much of the next token is written from the vocabulary; the rest is copied from where the
decoder looks in its source: p(w) = g p(w | vocabulary) + (1 - g) Σ α(j) over the positions j that hold w.
What is looked at but has no token of the target's vocabulary is left to the vocabulary.

So that a copying decoder stays a network with features and a head, its features are wider: after x come the
share of the vocabulary, and a share and a token for each position of the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from nextword.blocks.heads import square_normalizers
from nextword.blocks.recompute import recomputed
from nextword.blocks.roles import Role, Roles

_ROWS = 512  # distributions in memory at once, in training
_LEAST = 1e-38  # log 0 has no gradient


class Copying(nn.Module):
    """The gate g = σ(w · x + b), and which token of the target each token of a source is."""

    roles: ClassVar[Roles] = {"to_gate": Role.GATE}
    targets_V: Tensor

    def __init__(self, inputs: int, targets: Sequence[int]) -> None:
        super().__init__()
        self.to_gate = nn.Linear(inputs, 1)
        targets_V = torch.tensor(targets, dtype=torch.int64) + 1
        self.register_buffer("targets_V", targets_V, persistent=False)

    def tokens(self, source_BS: Tensor, lengths_B: Tensor) -> Tensor:
        """Return ``tokens_BS``: the id to be copied from each position plus 1; 0: nothing can be copied."""
        real_BS = torch.arange(source_BS.shape[1], device=source_BS.device) < lengths_B[:, None]
        return torch.where(real_BS, self.targets_V[source_BS.masked_fill(~real_BS, 0)], 0)

    def forward(self, features_BTD: Tensor, x_BTX: Tensor, weights_BTS: Tensor, tokens_BS: Tensor) -> Tensor:
        """Return wider features; ``x_BTX`` opens the gate, ``weights_BTS`` says where the decoder looks."""
        g_BT1 = torch.sigmoid(self.to_gate(x_BTX).float())
        looked_BTS, none_B1S = (1 - g_BT1) * weights_BTS.float(), (tokens_BS == 0)[:, None]
        written_BT1 = g_BT1 + looked_BTS.masked_fill(~none_B1S, 0.0).sum(dim=-1, keepdim=True)
        copied_BTS = looked_BTS.masked_fill(none_B1S, 0.0)
        ids_BTS = (tokens_BS - 1).clamp(min=0).float()[:, None].expand_as(copied_BTS)
        pairs_BTX = torch.stack([copied_BTS, ids_BTS], dim=-1).flatten(2)
        return torch.cat([features_BTD.float(), written_BT1, pairs_BTX], dim=-1)


def without_copies(features_BTD: Tensor, source: int) -> Tensor:
    """Return features as wide as those of a source of this length, of which nothing is copied."""
    *shape, _ = features_BTD.shape
    written, pairs = features_BTD.new_ones(*shape, 1), features_BTD.new_zeros(*shape, 2 * source)
    return torch.cat([features_BTD, written, pairs], dim=-1)


class CopyHead(nn.Module):
    """Any head over the vocabulary, and beside it what is copied; its features are those of `Copying`."""

    open_V: Tensor

    def __init__(self, head: nn.Module, width: int, vocab_size: int, forbidden: tuple[int, ...]) -> None:
        super().__init__()
        self.head, self.width, self.vocab_size = head, width, vocab_size
        open_V = torch.ones(vocab_size, dtype=torch.bool)
        open_V[list(forbidden)] = False
        self.register_buffer("open_V", open_V, persistent=False)

    def prepare(self, counts_V: Tensor) -> None:
        """Prepare the head over the vocabulary."""
        self._head.prepare(counts_V)

    def log_probs(self, features_BX: Tensor) -> Tensor:
        """Return log p of every token."""
        x_BD, written_B, copied_BS, ids_BS = self._parts(features_BX)
        logp_BV = self._head.log_probs(x_BD) + written_B[:, None]
        copied_BV = torch.zeros_like(logp_BV).scatter_add(1, ids_BS, copied_BS.to(logp_BV.dtype))
        return _joined(logp_BV, copied_BV)

    def score(self, features_NX: Tensor, ids_N: Tensor) -> Tensor:
        """Return log p of these tokens."""
        x_ND, written_N, copied_NS, ids_NS = self._parts(features_NX)
        copied_N = copied_NS.masked_fill(ids_NS != ids_N[:, None], 0.0).sum(dim=-1)
        return _joined(self._head.score(x_ND, ids_N) + written_N, copied_N)

    def loss(self, features_NX: Tensor, targets_N: Tensor, smoothing: float = 0.0) -> Tensor:
        """Compute Σ -log p(target), a few rows at a time; they are computed again for the gradient."""
        own = [weight for weight in self.parameters() if weight.requires_grad]
        total = features_NX.new_zeros(())
        for x_NX, ids_N in zip(torch.split(features_NX, _ROWS), torch.split(targets_N, _ROWS), strict=True):
            nats = partial(self._nats, targets_N=ids_N, smoothing=smoothing)
            total = total + recomputed(nats, x_NX, own)
        return total

    def square_normalizers(self, features_NX: Tensor) -> Tensor:
        """Compute those of the head over the vocabulary."""
        return square_normalizers(self.head, features_NX[:, : self.width])

    def _nats(self, features_NX: Tensor, targets_N: Tensor, smoothing: float) -> Tensor:
        logp_NV = self.log_probs(features_NX)
        loss_N = -logp_NV.gather(1, targets_N[:, None])[:, 0]
        if smoothing:
            even_N = -logp_NV[:, self.open_V].mean(dim=-1)
            loss_N = (1 - smoothing) * loss_N + smoothing * even_N
        return loss_N.sum()

    def _parts(self, features_NX: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return x, the logarithm of the vocabulary's share, and shares and tokens of the positions."""
        x_ND, rest_NX = features_NX[:, : self.width], features_NX[:, self.width :].float()
        written_N = rest_NX[:, 0].clamp(min=_LEAST).log()
        return x_ND, written_N, rest_NX[:, 1::2], rest_NX[:, 2::2].long()

    @property
    def _head(self) -> Any:
        return self.head


def _joined(logp: Tensor, copied: Tensor) -> Tensor:
    """Return log(p + copied); where nothing is copied, log p itself, which may be -inf."""
    both = torch.logaddexp(logp, copied.clamp(min=_LEAST).log())
    return torch.where(copied > 0, both, logp)
