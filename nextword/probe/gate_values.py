"""The gates of recurrent cells over a text, and the same text with gates that are set by hand.

[IITD-2 "How Does LSTM Solve Vanishing Gradients?": "if the forget gate is set to 1 for a cell dimension and
the input gate to 0, then the information of that cell is preserved indefinitely"]. The cells are the
network's own; a gate is set in a copy that shares the weights, so that the network stays as it was.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from nextword.blocks.cells import Cell, CellState, Gates
from nextword.models.recurrent import RecurrentNetwork
from nextword.probe import passes

Array = np.ndarray[Any, np.dtype[Any]]
CONTENT = ("new", "sum")  # what a cell computes that is not a gate


@dataclass(frozen=True)
class Clamped:
    """A text read freely up to a token, and then with some gates set by hand."""

    nats_T: Array  # -log p of every token but the first, read freely
    clamped_T: Array  # the same with the gates set
    change_LT: Array  # how far each layer's memory moves at every token: ||c(t) - c(t-1)||, freely
    clamped_change_LT: Array  # and with the gates set


def gates_of(cell: Cell) -> list[str]:
    """Return the names of the gates of a cell."""
    with torch.no_grad():
        x_1E = next(cell.parameters()).new_zeros(1, cell.inputs)
        state = tuple(x_1E.new_zeros(1, cell.hidden) for _ in range(cell.parts))
        return [name for name in cell.gates(x_1E, state) if name not in CONTENT]


@torch.no_grad()
def openness(network: RecurrentNetwork, ids_T: Array) -> dict[str, Array]:
    """Return for every gate ``open_LTH``: 1 open, 0 closed, at every token of a text."""
    ids_1T = torch.as_tensor(ids_T, device=network.device)[None]
    x_TBE = passes.words_of(network, ids_1T, network.scale_words).transpose(0, 1)
    found: dict[str, list[Tensor]] = {}
    for layer, join, before in zip(network.layers, network.joins, network.start(1), strict=True):
        gates, h_TBH = along(cast(Cell, layer), x_TBE, before)
        for name, open_TH in gates.items():
            found.setdefault(name, []).append(open_TH)
        x_TBE = join(x_TBE, h_TBH)
    return {name: torch.stack(layers).double().cpu().numpy() for name, layers in found.items()}


def along(cell: Cell, x_TBE: Tensor, state: CellState) -> tuple[dict[str, Tensor], Tensor]:
    """Return ``open_TH`` of every gate along one row of inputs, and what the layer makes of them."""
    seen, outputs = [], []
    for x_BE in x_TBE.unbind(0):
        seen.append(cell.gates(x_BE, state))
        state = cell(x_BE, state)
        outputs.append(state[0])
    names = [name for name in seen[0] if name not in CONTENT]
    return {name: torch.cat([gates[name] for gates in seen]) for name in names}, torch.stack(outputs)


def with_gates(cell: nn.Module, fixed: Mapping[str, float]) -> nn.Module:
    """Return the same cell with the same weights, except for gates that always have the value given."""
    own = copy.copy(cell)
    plain = cast(Cell, cell).gates

    def gates(x_BE: Tensor, state: CellState) -> Gates:
        free = plain(x_BE, state)
        return {
            name: torch.full_like(gate, fixed[name]) if name in fixed else gate for name, gate in free.items()
        }

    own.gates = gates  # type: ignore[assignment]
    return own


@torch.no_grad()
def clamp(
    network: RecurrentNetwork, ids_T: Array, fixed: Mapping[str, float], layers: Sequence[int], since: int
) -> Clamped:
    """Read a text twice: freely, and from token ``since`` on with the gates of these layers set."""
    ids = torch.as_tensor(ids_T, device=network.device)
    first_1T, rest_1T, targets_T = ids[None, :since], ids[None, since:-1], ids[1:]
    changed = [
        with_gates(layer, fixed) if place in layers else layer for place, layer in enumerate(network.layers)
    ]
    start = network.start(1)
    begun = passes.recurrent(network, first_1T, start)
    middle = _last(begun, start)
    free = passes.recurrent(network, rest_1T, middle)
    clamped = passes.recurrent(network, rest_1T, middle, changed)

    def nats(after: passes.Pass) -> Array:
        features_TD = torch.cat([begun.features_BTD, after.features_BTD], dim=1)[0]
        return passes.nats(network, features_TD, targets_T).double().cpu().numpy()

    def change(after: passes.Pass) -> Array:
        return np.stack([_moves(begun, after, start, depth) for depth in range(len(network.layers))])

    return Clamped(nats(free), nats(clamped), change(free), change(clamped))


def _memory(done: passes.Pass, depth: int) -> Tensor:
    """Return what a layer remembers, ``x_TH``: c of an LSTM, else h."""
    site = [site for site in done.sites if site.depth == depth + 1][-1]
    return site.gather(site.tensors)[0]


def _moves(begun: passes.Pass, after: passes.Pass, start: Any, depth: int) -> Array:
    memory_SH = torch.cat([start[depth][-1], _memory(begun, depth), _memory(after, depth)])
    return (memory_SH[1:] - memory_SH[:-1]).norm(dim=-1).double().cpu().numpy()


def _last(done: passes.Pass, start: Any) -> Any:
    """Return the state after a pass, in the shape of the first one."""
    ends: dict[int, list[Tensor]] = {}
    for site in done.sites[1:]:
        ends.setdefault(site.depth, []).append(site.tensors[-1])
    return tuple(tuple(ends[depth + 1]) for depth in range(len(start)))
