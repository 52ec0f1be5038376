"""Optimizers and schedules of the learning rate: the slots "optimizer" and "schedule".

SGD: θ ← θ - α ∇J(θ) [IITD-1 "Training a RNN Language Model"]; AdamW: Loshchilov & Hutter 2019; Muon for
matrices, with AdamW for the rest: Jordan et al. 2024. The rules agree with `torch.optim` (there are tests)
and use its fused kernels, but avoid its import of a compiler, which takes as long as importing torch itself.

A schedule is warm-up, a constant phase, then decay to zero. It gets the share of training that is done, 0 to
1, so it needs to know neither steps nor minutes. Linear decay and 1 - sqrt: Hägele et al. 2024; cosine:
Loshchilov & Hutter 2017.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from nextword.blocks.roles import Role, roles_of
from nextword.core.catalog import find
from nextword.models.network import Network
from nextword.models.precision import dtype_of
from nextword.models.training import NeuralTrainSettings
from nextword.training.weights import local

_NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)  # the coefficients of Jordan et al.
_SMALL = 1e-8  # AdamW's epsilon


class Rule:
    """How some weights are updated; ``state`` has lists of tensors, such as momenta, one for each weight."""

    factor = 1.0  # on the learning rate

    def __init__(self, weights: Sequence[nn.Parameter], decay: float) -> None:
        self.weights, self.decay = list(weights), decay
        self.state: dict[str, list[Tensor]] = {}

    def step(self, rate: float) -> None:
        """Update the weights that have a gradient."""
        live = [at for at, weight in enumerate(self.weights) if weight.grad is not None]
        if live:
            weights = [local(self.weights[at]) for at in live]
            gradients = [local(weight.grad) for weight in self.weights if weight.grad is not None]
            state = {name: [tensors[at] for at in live] for name, tensors in self.state.items()}
            self._update(weights, gradients, state, rate * self.factor)

    def _update(
        self,
        weights: list[Tensor],
        gradients: list[Tensor],
        state: dict[str, list[Tensor]],
        rate: float,
    ) -> None:
        raise NotImplementedError


class SGD(Rule):
    """m ← μ m + ∇J + λ θ, θ ← θ - α m."""

    def __init__(self, weights: Sequence[nn.Parameter], decay: float, momentum: float) -> None:
        super().__init__(weights, decay)
        self.momentum = momentum
        if momentum:
            self.state["momentum"] = [torch.zeros_like(local(weight)) for weight in self.weights]

    def _update(
        self,
        weights: list[Tensor],
        gradients: list[Tensor],
        state: dict[str, list[Tensor]],
        rate: float,
    ) -> None:
        if self.decay:
            gradients = list(torch._foreach_add(gradients, list(weights), alpha=self.decay))
        if self.momentum:
            torch._foreach_mul_(state["momentum"], self.momentum)
            torch._foreach_add_(state["momentum"], gradients)
            gradients = state["momentum"]
        torch._foreach_add_(list(weights), gradients, alpha=-rate)


class AdamW(Rule):
    """Divides each weight's step by the size of its gradients, with decoupled weight decay."""

    def __init__(self, weights: Sequence[nn.Parameter], decay: float, betas: tuple[float, float]) -> None:
        super().__init__(weights, decay)
        self.betas = betas
        self.state = {
            "mean": [torch.zeros_like(local(weight)) for weight in self.weights],
            "square": [torch.zeros_like(local(weight)) for weight in self.weights],
            "steps": [torch.zeros((), device=weight.device) for weight in self.weights],
        }

    def _update(
        self,
        weights: list[Tensor],
        gradients: list[Tensor],
        state: dict[str, list[Tensor]],
        rate: float,
    ) -> None:
        torch._foreach_add_(state["steps"], 1)
        torch._fused_adamw_(
            list(weights), gradients, state["mean"], state["square"], [], state["steps"],
            lr=rate, beta1=self.betas[0], beta2=self.betas[1], weight_decay=self.decay, eps=_SMALL,
            amsgrad=False, maximize=False,
        )  # fmt: skip


class Muon(Rule):
    """Makes the momentum of a matrix orthogonal, then scales it so that entries are as large as AdamW's.

    Matrix products use the precision of the training run; `torch.optim.Muon` uses bf16, which takes minutes
    a step where it is emulated.
    """

    momentum = 0.95

    def __init__(self, weights: Sequence[nn.Parameter], decay: float, dtype: torch.dtype) -> None:
        super().__init__(weights, decay)
        self.dtype = dtype
        self.state["momentum"] = [torch.zeros_like(local(weight)) for weight in self.weights]

    def _update(
        self,
        weights: list[Tensor],
        gradients: list[Tensor],
        state: dict[str, list[Tensor]],
        rate: float,
    ) -> None:
        for weight, gradient, memory in zip(weights, gradients, state["momentum"], strict=True):
            memory.lerp_(gradient, 1 - self.momentum)
            update = orthogonal(gradient.lerp(memory, self.momentum).to(self.dtype)).to(weight.dtype)
            weight.mul_(1 - rate * self.decay)
            weight.add_(update, alpha=-rate * 0.2 * max(weight.shape) ** 0.5)


def orthogonal(matrix: Tensor, steps: int = 5) -> Tensor:
    """Approximate U Vᵀ of the matrix U S Vᵀ by Newton-Schulz iterations."""
    a, b, c = _NEWTON_SCHULZ
    x = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    x = x / x.norm().clamp(min=1e-7)
    for _ in range(steps):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if matrix.shape[0] > matrix.shape[1] else x


class Optimizer:
    """One or several rules, each for its own weights, with a common learning rate and one joint state."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = [rule for rule in rules if rule.weights]

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Update all weights."""
        for rule in self.rules:
            rule.step(rate)

    def clear(self) -> None:
        """Clear the gradients."""
        for rule in self.rules:
            for weight in rule.weights:
                weight.grad = None

    def tensors(self) -> dict[str, Tensor]:
        """Return the state of all rules by name: ``<rule>.<name>.<weight>``."""
        return {
            f"{number}.{name}.{at}": tensor
            for number, rule in enumerate(self.rules)
            for name, tensors in rule.state.items()
            for at, tensor in enumerate(tensors)
        }

    @torch.no_grad()
    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Undo `tensors`."""
        for name, tensor in self.tensors().items():
            tensor.copy_(tensors[name])


def make_optimizer(network: Network, settings: NeuralTrainSettings) -> Optimizer:
    """Make the optimizer that the settings name, for this network's weights."""
    return Optimizer(find("optimizer", settings.optimizer)(network, settings))


def sgd(network: Network, settings: NeuralTrainSettings) -> list[Rule]:
    """Use SGD for all weights; only matrices decay."""
    matrices, rest = split_weights(network)
    return [SGD(matrices, settings.weight_decay, settings.momentum), SGD(rest, 0.0, settings.momentum)]


def adamw(network: Network, settings: NeuralTrainSettings) -> list[Rule]:
    """Use AdamW for all weights; only matrices decay.

    Where a network says at which width the rate was tuned (muP, Yang et al. 2022), the rate of matrices
    between features falls as the width grows; that of embeddings, norms and biases stays.
    """
    matrices, rest = split_weights(network)
    factor: float = getattr(network, "rate_factor", 1.0)
    wide = [] if factor == 1.0 else [weight for weight in matrices if id(weight) in _widening(network)]
    moved = {id(weight) for weight in wide}
    matrices = [weight for weight in matrices if id(weight) not in moved]
    rules: list[Rule] = [AdamW(matrices, settings.weight_decay, settings.betas)]
    rules += [AdamW(rest, 0.0, settings.betas), AdamW(wide, settings.weight_decay, settings.betas)]
    rules[-1].factor = factor
    return rules


def muon(network: Network, settings: NeuralTrainSettings) -> list[Rule]:
    """Use Muon for matrices between hidden layers, AdamW for the rest."""
    matrices, rest = split_weights(network)
    hidden = hidden_matrices(network)
    chosen = {id(weight) for weight in hidden}
    others = [weight for weight in matrices if id(weight) not in chosen]
    decay, betas, dtype = settings.weight_decay, settings.betas, dtype_of(settings.precision)
    return [Muon(hidden, decay, dtype), AdamW(others, decay, betas), AdamW(rest, 0.0, betas)]


# Roles with weight decay; Muon takes those that are neither embeddings nor output layer.
HIDDEN = frozenset({Role.MATRIX, Role.OUT, Role.GATE, Role.RECURRENT, Role.POSITION})
DECAYS = HIDDEN | {Role.HEAD}
WIDENING = HIDDEN - {Role.POSITION}  # with as many inputs as a model has features


def split_weights(network: Network) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Return matrices, which decay, and the rest: biases, norms, embeddings. Shared weights count once."""
    matrices: list[nn.Parameter] = []
    rest: list[nn.Parameter] = []
    for name, role in roles_of(network).items():
        weight = network.get_parameter(name)
        if weight.requires_grad:
            (matrices if role in DECAYS else rest).append(weight)
    return matrices, rest


def _widening(network: Network) -> set[int]:
    """Return the identities of the weights whose number of inputs grows with the width."""
    found = roles_of(network).items()
    return {id(network.get_parameter(name)) for name, role in found if role in WIDENING}


def hidden_matrices(network: Network) -> list[nn.Parameter]:
    """Return the 2-D matrices that are neither embeddings nor output layer."""
    found = ((role, network.get_parameter(name)) for name, role in roles_of(network).items())
    return [each for role, each in found if role in HIDDEN and each.ndim == 2 and each.requires_grad]


def cosine(x: float) -> float:
    """Return ½ (1 + cos πx): like all of these, the factor on the rate at the share x of the decay."""
    return 0.5 * (1 + math.cos(math.pi * x))


def linear(x: float) -> float:
    """Return 1 - x."""
    return 1 - x


def sqrt(x: float) -> float:
    """Return 1 - √x: fast at first."""
    return 1 - math.sqrt(x)


def constant(x: float) -> float:
    """Return 1: no decay."""
    return 1.0


def rate_factor(settings: NeuralTrainSettings, progress: float) -> float:
    """Return the factor on the learning rate at this point of the training."""
    if progress < settings.warmup:
        return progress / settings.warmup
    begins = max(settings.warmup, 1 - settings.decay)
    if progress <= begins or begins >= 1:
        return 1.0
    left: float = find("schedule", settings.schedule)(min(1.0, (progress - begins) / (1 - begins)))
    return left
