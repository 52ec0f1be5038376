"""Rules for an update: SGD, AdamW, and Muon for matrices with AdamW for the rest.

θ ← θ - α ∇J(θ) [IITD-1 "Training a RNN Language Model"]; AdamW: Loshchilov & Hutter 2019; Muon: Jordan et
al. 2024.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from nextword.models.network import Network
from nextword.train.neural.precision import has_bf16
from nextword.train.neural_settings import NeuralTrainSettings

_NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)  # the coefficients of Jordan et al.


class Optimizer:
    """One or several rules, each for its own weights, with a common rate and one joint state."""

    def __init__(self, rules: Iterable[torch.optim.Optimizer]) -> None:
        self.rules = tuple(rules)

    def step(self, rate: float) -> None:
        """Update all weights."""
        for rule in self.rules:
            for group in rule.param_groups:
                group["lr"] = rate
            rule.step()

    def clear(self) -> None:
        """Forget the gradients."""
        for rule in self.rules:
            rule.zero_grad(set_to_none=True)

    def tensors(self) -> dict[str, Tensor]:
        """The state of every rule: ``<rule>.<weight>.<name>``."""
        return {
            f"{number}.{index}.{name}": value
            for number, rule in enumerate(self.rules)
            for index, values in rule.state_dict()["state"].items()
            for name, value in values.items()
            if isinstance(value, Tensor)
        }

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """The way back from `tensors`; groups and rates follow from the settings."""
        for number, rule in enumerate(self.rules):
            state: dict[int, dict[str, Tensor]] = {}
            for key, value in tensors.items():
                owner, index, name = key.split(".", 2)
                if int(owner) == number:
                    state.setdefault(int(index), {})[name] = value.clone()
            rule.load_state_dict({"state": state, "param_groups": rule.state_dict()["param_groups"]})


class FloatMuon(torch.optim.Optimizer):
    """Muon in fp32, for processors without bf16, where `torch.optim.Muon` would take minutes a step.

    The momentum of a matrix is made orthogonal by five steps of Newton and Schulz, then scaled so that its
    entries are as large as AdamW's.
    """

    def __init__(self, groups: Any, lr: float, momentum: float = 0.95, weight_decay: float = 0.0) -> None:
        super().__init__(groups, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update all matrices."""
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                if "momentum_buffer" not in state:
                    state["momentum_buffer"] = torch.zeros_like(weight)
                memory = state["momentum_buffer"].lerp_(weight.grad, 1 - group["momentum"])
                update = orthogonal(weight.grad.lerp(memory, group["momentum"]))
                weight.mul_(1 - group["lr"] * group["weight_decay"])
                weight.add_(update, alpha=-group["lr"] * 0.2 * max(weight.shape) ** 0.5)


def orthogonal(matrix: Tensor, steps: int = 5) -> Tensor:
    """About U Vᵀ of the matrix U S Vᵀ."""
    a, b, c = _NEWTON_SCHULZ
    x = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    x = x / x.norm().clamp(min=1e-7)
    for _ in range(steps):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if matrix.shape[0] > matrix.shape[1] else x


def make_optimizer(network: Network, settings: NeuralTrainSettings) -> Optimizer:
    """The rule of the settings for this network's weights."""
    matrices, rest = split_weights(network)
    decay, rate = settings.weight_decay, settings.rate
    if settings.optimizer == "sgd":
        groups = [{"params": matrices, "weight_decay": decay}, {"params": rest, "weight_decay": 0.0}]
        return Optimizer([torch.optim.SGD(_filled(groups), lr=rate, momentum=settings.momentum, fused=True)])
    hidden = _hidden(network, matrices) if settings.optimizer == "muon" else []
    chosen = {id(weight) for weight in hidden}
    others = [weight for weight in matrices if id(weight) not in chosen]
    groups = [{"params": others, "weight_decay": decay}, {"params": rest, "weight_decay": 0.0}]
    adam = torch.optim.AdamW(_filled(groups), lr=rate, betas=settings.betas, fused=True)
    if not hidden:
        return Optimizer([adam])
    if has_bf16(network.device):
        muon: torch.optim.Optimizer = torch.optim.Muon(
            hidden, lr=rate, weight_decay=decay, adjust_lr_fn="match_rms_adamw"
        )
    else:
        muon = FloatMuon(hidden, lr=rate, weight_decay=decay)
    return Optimizer([muon, adam])


def split_weights(network: Network) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Matrices, which decay, and the rest: biases, norms, embeddings. Shared weights are listed once."""
    matrices: list[nn.Parameter] = []
    rest: list[nn.Parameter] = []
    for name, weight in network.named_parameters():
        if weight.requires_grad:
            (rest if weight.ndim < 2 or "embed" in name else matrices).append(weight)
    return matrices, rest


def _hidden(network: Network, matrices: list[nn.Parameter]) -> list[nn.Parameter]:
    """2-D matrices that stand neither at the words nor at the output."""
    head = {id(weight) for weight in network.head.parameters()}
    return [weight for weight in matrices if weight.ndim == 2 and id(weight) not in head]


def _filled(groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [group for group in groups if group["params"]]
