"""How a recurrent decoder attends to its source: the slot "attention".

e(j) scores the decoder's state z against the source's feature h(j); α = softmax(e); c = Σ α(j) h(j) [PENN
"Attention Mechanism: A Solution to the Bottleneck Problem", MAUSAM "Attention": dot product, bilinear, MLP].
What depends on the source alone is computed once. Letters: U sources, R rows that look at each, A attention.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from nextword.blocks.roles import Role, Roles

Kept = tuple[Tensor, Tensor]  # keys and values of some sources, the source first


class DotAttention(nn.Module):
    """e(j) = z · h(j): no weights of its own, so both have the same size (Luong et al. 2015)."""

    def __init__(self, query: int, source: int) -> None:
        super().__init__()
        self.width = source
        self.fit = nn.Identity() if query == source else nn.Linear(query, source, bias=False)

    def prepare(self, h_USD: Tensor) -> Kept:
        """Return keys and values of the sources: the features themselves."""
        return h_USD, h_USD

    def scores(self, z_URH: Tensor, keys_USA: Tensor) -> Tensor:
        """Return ``e_URS``."""
        return torch.bmm(self.fit(z_URH), keys_USA.transpose(1, 2))

    def forward(self, z_URH: Tensor, kept: Kept, bias_URS: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``c_URD`` and ``α_URS``; ``bias_URS`` is -inf where there is no word."""
        keys_USA, values_USD = kept
        weights_URS = (self.scores(z_URH, keys_USA).float() + bias_URS).softmax(dim=-1)
        return torch.bmm(weights_URS.to(values_USD.dtype), values_USD), weights_URS


class BilinearAttention(DotAttention):
    """e(j) = zᵀ W h(j): W says which features of the source belong to which of the state."""

    def __init__(self, query: int, source: int) -> None:
        super().__init__(source, source)
        self.from_source = nn.Linear(source, query, bias=False)

    def prepare(self, h_USD: Tensor) -> Kept:
        """Return W h(j) of all positions, and the features."""
        return self.from_source(h_USD), h_USD


class MLPAttention(DotAttention):
    """e(j) = vᵀ tanh(W z + U h(j)): a small network (Bahdanau et al. 2015)."""

    roles: ClassVar[Roles] = {"to_score": Role.MATRIX}

    def __init__(self, query: int, source: int) -> None:
        super().__init__(source, source)
        self.from_source = nn.Linear(source, query)
        self.from_state = nn.Linear(query, query, bias=False)
        self.to_score = nn.Linear(query, 1, bias=False)

    def prepare(self, h_USD: Tensor) -> Kept:
        """Return U h(j) of all positions, and the features."""
        return self.from_source(h_USD), h_USD

    def scores(self, z_URH: Tensor, keys_USA: Tensor) -> Tensor:
        """Return ``e_URS``."""
        inner_URSA = torch.tanh(self.from_state(z_URH)[:, :, None] + keys_USA[:, None])
        e_URS: Tensor = self.to_score(inner_URSA)[..., 0]
        return e_URS


class CoverageAttention(MLPAttention):
    """e(j) = vᵀ tanh(W z + U h(j) + w n(j)): n(j) is how much was looked at j before (See et al. 2017)."""

    def __init__(self, query: int, source: int) -> None:
        super().__init__(query, source)
        self.from_seen = nn.Linear(1, query, bias=False)

    def forward(
        self, z_URH: Tensor, kept: Kept, bias_URS: Tensor, seen_URS: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return ``c_URD`` and ``α_URS``; ``seen_URS`` is n."""
        assert seen_URS is not None
        keys_USA, values_USD = kept
        seen_URSA = self.from_seen(seen_URS[..., None].to(keys_USA.dtype))
        inner_URSA = torch.tanh(self.from_state(z_URH)[:, :, None] + keys_USA[:, None] + seen_URSA)
        weights_URS = (self.to_score(inner_URSA)[..., 0].float() + bias_URS).softmax(dim=-1)
        return torch.bmm(weights_URS.to(values_USD.dtype), values_USD), weights_URS


class MultiHeadAttention(DotAttention):
    """q = Q z, k = K h, v = V h in several heads, e = q · k / √K (Vaswani et al. 2017); α is their mean."""

    def __init__(self, query: int, source: int) -> None:
        super().__init__(source, source)
        self.heads = max(n for n in (1, 2, 4, 8) if source % n == 0 and (n == 1 or source // n >= 32))
        self.from_state = nn.Linear(query, source, bias=False)
        self.from_source = nn.Linear(source, 2 * source, bias=False)
        self.out = nn.Linear(source, source, bias=False)

    def prepare(self, h_USD: Tensor) -> Kept:
        """Return K h(j) and V h(j) of all positions."""
        keys_USD, values_USD = self.from_source(h_USD).chunk(2, dim=-1)
        return keys_USD, values_USD

    def forward(self, z_URH: Tensor, kept: Kept, bias_URS: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``c_URD`` and the mean of the heads' weights."""
        q_UNRK, k_UNSK, v_UNSK = (self._split(x) for x in (self.from_state(z_URH), *kept))
        scale = q_UNRK.shape[-1] ** -0.5
        e_UNRS = (q_UNRK @ k_UNSK.transpose(2, 3)).float() * scale + bias_URS[:, None]
        weights_UNRS = e_UNRS.softmax(dim=-1)
        mixed_UNRK = weights_UNRS.to(v_UNSK.dtype) @ v_UNSK
        return self.out(mixed_UNRK.transpose(1, 2).flatten(2)), weights_UNRS.mean(dim=1)

    def _split(self, x_UXD: Tensor) -> Tensor:
        return x_UXD.reshape(*x_UXD.shape[:2], self.heads, -1).transpose(1, 2)
