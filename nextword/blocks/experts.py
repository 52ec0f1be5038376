"""Experts: many feed-forward parts, of which a token uses one or two (slot "ffn").

Mixture of experts (Shazeer et al. 2017, Lepikhin et al. 2021) and Switch (Fedus et al. 2022), rows of the
table [MAUSAM "Do Transformer Modifications Transfer Across Implementations and Applications?"]. A router
chooses; an auxiliary loss keeps the experts equally busy. In training an expert may have a capacity: tokens
past it get 0, and the stream carries them. When a model is used, every token gets its experts, so that no
token depends on others.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from nextword.blocks import losses
from nextword.blocks.autocast import exact
from nextword.blocks.cache import Reading
from nextword.blocks.cost import Cost, Load
from nextword.blocks.roles import Role, Roles
from nextword.blocks.shape import Shape
from nextword.core.settings import Settings

LEAST = 4  # tokens that an expert always has room for
SECOND = 0.2  # a second expert whose share is below this is used with a probability in proportion to it


class ExpertSettings(Settings):
    """Experts (ffn = experts or switch)."""

    count: int = Field(8, ge=1, le=4096, description="experts E")
    inner: int = Field(0, ge=0, le=2**20, description="inner width of an expert; 0: model.inner / those used")
    capacity: float = Field(
        0.0,
        ge=0,
        le=1024,
        description="in training, room for this many times its share of tokens; 0: for all",
    )
    shared: int = Field(
        0, ge=0, le=1024, description="experts that every token uses beside those of the router"
    )
    group: int = Field(1024, ge=1, le=2**20, description="tokens that share the room of an expert")
    jitter: float = Field(0.0, ge=0, lt=1, description="in training, the router's input is scaled at random")
    balance: float = Field(
        0.01, ge=0, le=100, description="weight of the loss that keeps experts equally busy"
    )
    router_z: float = Field(
        0.0, ge=0, le=100, description="weight of the square of the router's log-normalizer"
    )


class Experts(nn.Module):
    """y = Σ of the two best experts' ReLU(x W₁) W₂, weighted by what the router gives each of them.

    Shared experts (Dai et al. 2024, "DeepSeekMoE") are one part, as wide as all of them, that every token
    uses.
    """

    ratio: ClassVar[float] = 4.0
    used: ClassVar[int] = 2
    options: ClassVar[type[Settings]] = ExpertSettings
    roles: ClassVar[Roles] = {
        "router": Role.GATE, "inner_EDF": Role.MATRIX, "out_EFD": Role.OUT,
        "common_out": Role.OUT,
    }  # fmt: skip

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.settings = shape.of(ExpertSettings)
        count, inner = self.settings.count, self.inner_of(shape)
        self.chosen = min(self.used, count)
        self.router = nn.Linear(shape.width, count, bias=False)
        nn.init.normal_(self.router.weight, std=(0.1 / shape.width) ** 0.5)
        std = shape.width**-0.5
        self.inner_EDF = nn.Parameter(torch.empty(count, shape.width, inner).normal_(std=std))
        self.out_EFD = nn.Parameter(torch.empty(count, inner, shape.width).normal_(std=inner**-0.5))
        if self.settings.shared:
            self.common = nn.Linear(shape.width, self.settings.shared * inner, bias=False)
            self.common_out = nn.Linear(self.settings.shared * inner, shape.width, bias=False)

    @classmethod
    def inner_of(cls, shape: Shape) -> int:
        """Return the inner width of an expert: those used cost together what one plain part costs."""
        return shape.of(ExpertSettings).inner or max(1, shape.inner // cls.used)

    def forward(self, x_BTD: Tensor, reading: Reading | None = None) -> Tensor:
        """Route every token; what is not a token takes no room and no part in the losses."""
        x_ND = x_BTD.flatten(0, 1)
        real_N = None
        if reading is not None and not reading.is_full:
            real_N = reading.real()[:, -x_BTD.shape[1] :].flatten()
        experts_NX, gates_NX = self.route(x_ND, real_N)
        if self.training and self.settings.capacity:
            y_ND = self.with_capacity(x_ND, experts_NX, gates_NX, real_N)
        else:
            y_ND = self.for_all(x_ND, experts_NX, gates_NX)
        if self.settings.shared:
            y_ND = y_ND + self.common_out(torch.relu(self.common(x_ND)))
        return y_ND.view(x_BTD.shape)

    def route(self, x_ND: Tensor, real_N: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the experts of each token, the best first, and their weights, all in float32."""
        x_ND = x_ND.float()
        if self.training and self.settings.jitter:
            x_ND = x_ND * torch.empty_like(x_ND).uniform_(1 - self.settings.jitter, 1 + self.settings.jitter)
        with exact(x_ND):
            logits_NE = self.router(x_ND)
        share_NE = logits_NE.softmax(dim=-1)
        losses.add("balance", self.settings.balance, lambda: balance(share_NE, real_N))
        losses.add("router z", self.settings.router_z, lambda: normalizer(logits_NE, real_N))
        best_NX, experts_NX = share_NE.topk(self.chosen, dim=-1)
        return experts_NX, self.weigh(best_NX)

    def weigh(self, best_NX: Tensor) -> Tensor:
        """Norm the shares to sum 1; in training a weak second expert is sometimes left out."""
        gates_NX = best_NX / (best_NX.sum(dim=-1, keepdim=True) + 1e-9)
        if self.training and self.chosen == 2:
            is_used_N = torch.rand_like(gates_NX[:, 1]) < gates_NX[:, 1] / SECOND
            gates_NX = torch.stack([gates_NX[:, 0], gates_NX[:, 1] * is_used_N], dim=1)
        return gates_NX

    def for_all(self, x_ND: Tensor, experts_NX: Tensor, gates_NX: Tensor) -> Tensor:
        """Run each expert on its tokens, however many."""
        y_ND = torch.zeros_like(x_ND)
        flat_M, gates_M = experts_NX.flatten(), gates_NX.flatten().to(x_ND.dtype)
        order_M = flat_M.argsort(stable=True)
        parts = torch.split(order_M, torch.bincount(flat_M, minlength=self.settings.count).tolist())
        for part_M, inner_DF, out_FD in zip(parts, self.inner_EDF, self.out_EFD, strict=True):
            if len(part_M):
                rows_M = part_M // self.chosen
                y_MD = torch.relu(x_ND[rows_M] @ inner_DF) @ out_FD
                y_ND = y_ND.index_add(0, rows_M, (y_MD * gates_M[part_M, None]).to(y_ND.dtype))
        return y_ND

    def with_capacity(
        self, x_ND: Tensor, experts_NX: Tensor, gates_NX: Tensor, real_N: Tensor | None
    ) -> Tensor:
        """Run all experts on as many tokens as they have room for: first choices first, in order."""
        (N, D), E = x_ND.shape, self.settings.count
        S = group_size(self.settings, N)
        C = capacity(self.settings, S)
        slots_NX = self.slots(experts_NX, gates_NX > 0, real_N, S, C)
        groups = -(-N // S)
        held_KD = x_ND.new_zeros(groups * E * C + 1, D).index_put(
            (slots_NX.T.flatten(),), x_ND.repeat(self.chosen, 1)
        )
        held_ECD = held_KD[:-1].view(groups, E, C, D).transpose(0, 1).flatten(1, 2)
        y_ECD = torch.bmm(torch.relu(torch.bmm(held_ECD, self.inner_EDF)), self.out_EFD)
        y_KD = y_ECD.view(E, groups, C, D).transpose(0, 1).flatten(0, 2)
        y_KD = F.pad(y_KD, (0, 0, 0, 1))  # what had no room gets the zeros of the last slot
        return (y_KD[slots_NX] * gates_NX[..., None].to(y_KD.dtype)).sum(dim=1)

    def slots(self, experts_NX: Tensor, used_NX: Tensor, real_N: Tensor | None, S: int, C: int) -> Tensor:
        """Return the slot of every token and choice; the last one where an expert has no room."""
        (N, X), E = experts_NX.shape, self.settings.count
        groups = -(-N // S)
        used_NX = used_NX if real_N is None else used_NX & real_N[:, None]
        picked_XGSE = F.one_hot(experts_NX, E).mul(used_NX[..., None])
        picked_XGSE = F.pad(picked_XGSE, (0, 0, 0, 0, 0, groups * S - N)).view(groups, S, X, E).movedim(2, 0)
        taken_GE, found = torch.zeros_like(picked_XGSE[0, :, 0]), []
        for picked_GSE in picked_XGSE:
            place_GSE = picked_GSE.cumsum(dim=1) - 1 + taken_GE[:, None]
            kept_GSE = picked_GSE * (place_GSE < C)
            taken_GE = taken_GE + kept_GSE.sum(dim=1)
            first_GE1 = torch.arange(groups * E, device=place_GSE.device).view(groups, 1, E) * C
            is_kept_N = kept_GSE.sum(dim=-1).flatten()[:N] > 0
            slot_N = ((first_GE1 + place_GSE) * kept_GSE).sum(dim=-1).flatten()[:N]
            found.append(torch.where(is_kept_N, slot_N, groups * E * C))
        return torch.stack(found, dim=1)

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count the router and all experts' weights; products at full room, or for the experts used."""
        own, inner = shape.of(ExpertSettings), cls.inner_of(shape)
        size = group_size(own, load.tokens)
        slots = -(-load.tokens // size) * own.count * capacity(own, size) if own.capacity else 0
        slots = slots or load.tokens * min(cls.used, own.count)
        router, shared = shape.width * own.count, 2 * own.shared * shape.width * inner
        return Cost(
            router + 2 * own.count * shape.width * inner + shared,
            (router + shared) * load.tokens + 2 * slots * shape.width * inner,
        )


class Switch(Experts):
    """y = p ReLU(x W₁) W₂ of the best expert, p what the router gives it: its only gradient."""

    used = 1

    def weigh(self, best_NX: Tensor) -> Tensor:
        """Return the shares as they are."""
        return best_NX


def group_size(settings: ExpertSettings, tokens: int) -> int:
    """Return how many tokens are a group: at most the setting, and groups are equally large if possible."""
    least = -(-tokens // settings.group)
    groups = next((n for n in range(least, 2 * least + 1) if tokens % n == 0), least)
    return -(-tokens // groups)


def capacity(settings: ExpertSettings, size: int) -> int:
    """Return the room of an expert for a group of this size."""
    return max(LEAST, min(size, int(size * settings.capacity / settings.count)))


def balance(share_NE: Tensor, real_N: Tensor | None) -> Tensor:
    """Compute E Σ f P: f the share of tokens whose first choice an expert is, P its mean share; 1 if even."""
    share_NE = share_NE if real_N is None else share_NE[real_N]
    first_NE = F.one_hot(share_NE.argmax(dim=-1), share_NE.shape[1]).to(share_NE.dtype)
    return share_NE.shape[1] * (first_NE.mean(dim=0) * share_NE.mean(dim=0)).sum()


def normalizer(logits_NE: Tensor, real_N: Tensor | None) -> Tensor:
    """Compute the mean of (log Σ exp)² of the router."""
    logits_NE = logits_NE if real_N is None else logits_NE[real_N]
    return logits_NE.logsumexp(dim=-1).square().mean()
