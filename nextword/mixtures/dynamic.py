"""Dynamic evaluation: a network that continues to learn from the text it has just predicted.

Krause, Kahembwe, Murray, Renals 2018, "Dynamic evaluation of neural sequence models". A segment is scored,
then learned from, then slowly forgotten: the weights θ decay towards those of the run, θ_0.

    sgd   θ ← θ - η g + λ (θ_0 - θ)
    rms   θ ← θ - η g / (√MS + ε) + λ r (θ_0 - θ),  r = √MS / mean √MS, at most 1/λ

with g the gradient of the segment's mean loss and MS the mean of g² so far (the paper gathers it on the
training text; `gather` does). Every token is scored before it is learned from, so the result is a valid
likelihood; the network that adapts is a copy, and the run's own weights never change.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Literal, cast

import torch
from pydantic import Field
from torch import Tensor, nn

from nextword.blocks.recurrent import FastLayer
from nextword.blocks.states import detach
from nextword.core.contracts import START, State
from nextword.core.settings import Settings
from nextword.mixtures.remembering import Remembering
from nextword.models.network import Head, Network, NeuralLanguageModel, NeuralState

Rule = Literal["sgd", "rms"]


class DynamicSettings(Settings):
    """How a network adapts while it is evaluated."""

    rule: Rule = Field("sgd", description="sgd, or rms: each weight by the size of its gradients")
    rate: float = Field(0.2, ge=0, description="learning rate η; rms: 0.005 if not set")
    decay: float = Field(0.001, ge=0, le=1, description="share λ of the way back to the run's weights")
    segment: int = Field(64, ge=1, le=4096, description="tokens that are scored between two updates")
    epsilon: float = Field(1e-3, gt=0, description="ε of rms, which prevents division by zero")
    statistics: str = Field("", description="text on which rms gathers g² first; empty: as it goes")
    clip: float = Field(1.0, gt=0, description="largest norm of a gradient")


RATES = {"sgd": 0.2, "rms": 0.005}  # defaults of each rule


class Adapting:
    """A copy of a network on its way through a text, one row at a time; its memories read along."""

    def __init__(self, model: NeuralLanguageModel | Remembering, settings: DynamicSettings) -> None:
        base = model.model if isinstance(model, Remembering) else model
        self.settings, self.memory = settings, model if isinstance(model, Remembering) else None
        self.network: Network = _learnable(base.network)
        self.weights = [weight for weight in self.network.parameters() if weight.is_floating_point()]
        self.starts = [weight.detach().clone() for weight in self.weights]
        self.squares = [torch.zeros_like(weight) for weight in self.weights] if self._is_rms else []
        self.seen = 0  # segments whose gradients are in `squares`
        self.gathered = False  # `squares` come from another text and stay as they are
        self.roots: list[Tensor] | None = None  # √MS of each weight; None for sgd
        self.mean = 1.0  # of all of them
        self.state, self.states = self._begin()

    @property
    def _is_rms(self) -> bool:
        return self.settings.rule == "rms"

    def begin(self) -> None:
        """Begin a new document: nothing was read, but what was learned stays."""
        self.state, self.states = self._begin()

    def push(self, ids_T: Tensor, learn: bool = True) -> Tensor:
        """Return log p of the next tokens of the row, and learn from them segment by segment."""
        found = [self._segment(part_T, learn) for part_T in self._segments(ids_T)]
        return torch.cat(found) if found else torch.zeros(0)

    def gather(self, ids_T: Tensor) -> None:
        """Gather the squares of gradients on another text, before anything is scored."""
        for part_T in self._segments(ids_T):
            before_TD, state = self._read(part_T)
            self._differentiate(before_TD, part_T)
            self._count_squares()
            self._forget_gradients()
            self.state = state
        self.gathered = True

    def _segments(self, ids_T: Tensor) -> Iterator[Tensor]:
        for at in range(0, len(ids_T), self.settings.segment):
            yield ids_T[at : at + self.settings.segment]

    def _begin(self) -> tuple[NeuralState, tuple[State, ...]]:
        with torch.no_grad():
            start = self.network.start(1)
            ids_11 = torch.full((1, 1), START, device=self.network.device)
            features_11D, inner = self.network.read(ids_11, start)
        memories = () if self.memory is None else self.memory.start(1).memories
        return NeuralState(detach(inner), features_11D[:, -1].detach()), memories

    def _segment(self, ids_T: Tensor, learn: bool) -> Tensor:
        before_TD, state = self._read(ids_T)
        with torch.no_grad():
            logp_T = cast(Head, self.network.head).score(before_TD.detach(), ids_T)
        if self.memory is not None:
            lengths = torch.tensor([len(ids_T)], device=ids_T.device)
            logp_1T, self.states = self.memory.recall(
                logp_T[None], before_TD.detach()[None], ids_T[None], lengths, self.states
            )
            logp_T = logp_1T[0]
        if learn and self.settings.rate > 0:
            self._differentiate(before_TD, ids_T)
            self._update()
        self.state = state
        return logp_T

    def _read(self, ids_T: Tensor) -> tuple[Tensor, NeuralState]:
        """Return ``before_TD`` with its graph, and the state after it without."""
        with torch.enable_grad():
            features_1TD, inner = self.network.read(ids_T[None], self.state.inner)
            before_1TD = torch.cat([self.state.feature_BD[:, None], features_1TD[:, :-1]], dim=1)
        return before_1TD[0], NeuralState(detach(inner), features_1TD[:, -1].detach())

    def _differentiate(self, before_TD: Tensor, ids_T: Tensor) -> None:
        """Compute g, the gradient of the mean loss of a segment, with a bounded norm."""
        with torch.enable_grad():
            loss = cast(Head, self.network.head).loss(before_TD, ids_T) / len(ids_T)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.weights, self.settings.clip)

    @torch.no_grad()
    def _update(self) -> None:
        """Move θ against g and towards θ_0, as written at the top of this file."""
        settings = self.settings
        if self._is_rms and not self.gathered:
            self._count_squares()
        if self._is_rms and (self.roots is None or not self.gathered):
            self.roots = [(square / max(1, self.seen)).sqrt_() for square in self.squares]
            total = sum(float(root.sum()) for root in self.roots)
            self.mean = max(1e-12, total / max(1, sum(root.numel() for root in self.roots)))
        for at, (weight, start) in enumerate(zip(self.weights, self.starts, strict=True)):
            if weight.grad is None:
                continue
            if self.roots is None:
                weight.lerp_(start, settings.decay).add_(weight.grad, alpha=-settings.rate)
            else:
                root = self.roots[at]
                weight.lerp_(start, (root * (settings.decay / self.mean)).clamp_(max=1.0))
                weight.addcdiv_(weight.grad, root + settings.epsilon, value=-settings.rate)
        self._forget_gradients()

    @torch.no_grad()
    def _count_squares(self) -> None:
        self.seen += 1
        for square, weight in zip(self.squares, self.weights, strict=True):
            if weight.grad is not None:
                square.addcmul_(weight.grad, weight.grad)

    def _forget_gradients(self) -> None:
        for weight in self.weights:
            weight.grad = None


def _learnable(network: Network) -> Network:
    """Return a copy with gradients and without dropout; fused layers must know that they need gradients."""
    made = copy.deepcopy(network).eval()
    made.fixed = False
    for module in made.modules():
        if isinstance(module, FastLayer):
            module.weight_drop = 0.0
            module.train()
    return made.requires_grad_(True)
