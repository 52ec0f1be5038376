"""FSDP2: every rank holds its rows of every weight, gradient and optimizer state.

torch's `fully_shard` [Zhao et al. 2023; ZeRO: Rajbhandari et al. 2020]: the weights of a block are gathered
before it is used and freed after, and each rank gets the summed gradients of its rows. A Transformer is
sharded block by block, but for blocks that look at a source: they compute its keys before their forward pass,
so they belong to the unit of the whole model. A recurrent model is one unit: how often its layers are called
depends on where documents begin in the rows of a rank, and all ranks must gather at the same time.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from nextword.blocks.stack import Stack
from nextword.blocks.states import State
from nextword.core.errors import ConfigError
from nextword.core.task import BatchLoss, Loss
from nextword.models.network import Network
from nextword.models.training import NeuralTrainSettings
from nextword.training.distributed.ddp import WithLoss
from nextword.training.ranks import Engine, Ranks
from nextword.training.weights import put_weights


class FSDPEngine(Engine):
    """FSDP2: each process has a part of every weight."""

    name = "fsdp"

    def __init__(
        self, network: Network, settings: NeuralTrainSettings, ranks: Ranks, build: Callable[[], Network]
    ) -> None:
        super().__init__(ranks)
        self._build = build
        _check(network, settings)
        warnings.filterwarnings("ignore", "FSDP2-wrapped module")
        mesh = init_device_mesh(network.device.type, (ranks.world,))
        stacks = [module for module in network.modules() if isinstance(module, Stack)]
        blocks = [block for stack in stacks for block in stack.blocks if not hasattr(block, "cross")]
        for block in blocks:
            fully_shard(block, mesh=mesh)
        inner = {id(weight) for block in blocks for weight in block.parameters()}
        with_loss = WithLoss(network)
        self._wrapped: Any = fully_shard(with_loss, mesh=mesh)
        self._outer = [name for name, each in network.named_parameters() if id(each) not in inner]
        self._used: set[str] = set()  # in this update, by this rank
        self._names = {name for name, each in network.state_dict().items() if hasattr(each, "to_local")}

    def loss(self, network: Any, of: BatchLoss, piece: Any, before: State) -> tuple[Loss, State]:
        """Return the loss of a piece, computed through FSDP; unused weights get a gradient too."""
        total, parts, after = self._wrapped(_Complete(of, self._outer, self._used), piece, before)
        return Loss(total, parts), after

    def divisor(self, tokens: int) -> float:
        """Undo the mean over ranks that FSDP takes: the sum is wanted."""
        return max(1, tokens) / self.ranks.world

    def norm(self, network: Network, own: float) -> float:
        """Return the norm over all ranks; remove the gradients of weights that no rank has used."""
        every = self.ranks.all_gather(own * own, *(name in self._used for name in self._outer))
        for name, *used in zip(self._outer, *(row[1:] for row in every), strict=True):
            if not any(used):
                network.get_parameter(name).grad = None
        self._used.clear()
        return math.sqrt(sum(row[0] for row in every))

    def is_sharded(self, name: str, dimensions: int) -> bool:
        """Return whether a tensor is sharded: weights and their optimizer state are, buffers are not."""
        kind, _, rest = name.partition(".")
        if kind == "optimizer":
            return dimensions > 0
        return kind == "carried" or (rest.partition(".")[2] if kind == "average" else rest) in self._names

    def rows(self, name: str, total: int) -> slice:
        """Return the rows of this rank; weights are split as by `torch.chunk`."""
        if name.startswith("carried."):
            return self.ranks.part(total)
        size = -(-total // self.ranks.world)
        first = min(total, self.ranks.rank * size)
        return slice(first, min(total, first + size))

    def full_network(self, network: Network) -> Network:
        """Build a new network with the gathered weights, to be used once."""
        fresh = self._build()
        put_weights(fresh, {name: _gathered(tensor) for name, tensor in network.state_dict().items()})
        return fresh


class _Complete:
    """A loss that depends on every weight outside the blocks: all ranks must have the same gradients.

    The weights that it really depends on are added to ``used``.
    """

    def __init__(self, of: BatchLoss, names: list[str], used: set[str]) -> None:
        self.of, self.names, self.used = of, names, used

    def pieces(self, batch: Any) -> Sequence[Any]:
        """Cut a batch as the wrapped loss does."""
        return self.of.pieces(batch)

    def __call__(self, network: nn.Module, piece: Any, before: State) -> tuple[Loss, State]:
        """Return the same value, with 0 times each unused weight added."""
        loss, after = self.of(network, piece, before)
        total = loss.total
        if torch.is_grad_enabled():
            reached = _reached(total)
            for name in self.names:
                weight = network.get_parameter(name)
                if id(weight) in reached:
                    self.used.add(name)
                else:
                    total = total + 0.0 * weight.sum()
        return replace(loss, total=total), after


def _reached(loss: Tensor) -> set[int]:
    """Find the weights that the gradient of a loss reaches."""
    found: set[int] = set()
    seen, waiting = {loss.grad_fn}, [loss.grad_fn]
    while waiting:
        node: Any = waiting.pop()
        if hasattr(node, "variable"):
            found.add(id(node.variable))
        for after, _ in () if node is None else node.next_functions:
            if after is not None and after not in seen:
                seen.add(after)
                waiting.append(after)
    return found


def _gathered(tensor: Any) -> Tensor:
    whole: Tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return whole


def _check(network: Network, settings: NeuralTrainSettings) -> None:
    if settings.optimizer == "muon":
        raise ConfigError(
            "'train.optimizer' is muon, which needs whole matrices, but 'train.parallel' is fsdp, which "
            "shards them; use train.parallel=ddp or train.optimizer=adamw"
        )
    for name, weight in network.named_parameters():
        if weight.ndim == 0:
            raise ConfigError(
                f"'train.parallel' is fsdp, which cannot shard a scalar weight such as '{name}'; use "
                "train.parallel=ddp"
            )
