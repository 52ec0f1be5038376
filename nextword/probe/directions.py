"""The recurrent layers of an encoder, each direction by itself: what it reads, its gates, its steps.

"Bidirectional RNNs" [IITD-2]: one network reads from the first word, another from the last. A direction is
looked at in the order in which it reads; gates are put back in the order of the text.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from nextword.blocks.cells import Cell, CellState
from nextword.models.encoders.recurrent import Direction, RecurrentEncoder
from nextword.probe import gate_values, matrices, passes

Array = np.ndarray[Any, np.dtype[Any]]
WAYS = ("left to right", "right to left")


@dataclass(frozen=True)
class Reader:
    """One layer of an encoder that reads in one direction."""

    layer: int  # from 0
    way: str  # one of `WAYS`
    cell: Cell

    @property
    def name(self) -> str:
        """The layer and the direction, in words."""
        return f"layer {self.layer + 1}, {self.way}"

    def ordered(self, x_T: Any) -> Any:
        """Put words in the order in which they are read, or back in the order of the text."""
        return x_T if self.way == WAYS[0] else x_T[::-1] if isinstance(x_T, Sequence) else x_T.flip(0)


@dataclass(frozen=True)
class Held:
    """A sentence read freely, and with some gates set from its middle on; a row for each reader."""

    readers: list[Reader]
    since: int  # words that each direction reads freely
    change_RT: Array  # how far the memory moves at every word, in the order of reading
    held_change_RT: Array
    moved_T: Array  # how far the encoder's output moves, as a share of its length, in the order of the text


def readers(encoder: Any) -> list[Reader]:
    """Return the directions of every layer; none for an encoder that is not recurrent."""
    if not isinstance(encoder, RecurrentEncoder):
        return []
    return [
        Reader(depth, WAYS[each.from_end], each.layer)
        for depth, directions in enumerate(encoder.layers)
        for each in cast(Sequence[Direction], directions)
    ]


def gates_of(encoder: Any) -> list[str]:
    """Return the names of the gates; none where the layers have none."""
    found = readers(encoder)
    return gate_values.gates_of(found[0].cell) if found else []


@torch.no_grad()
def inputs(encoder: RecurrentEncoder, x_1TE: Tensor) -> list[tuple[Reader, Tensor]]:
    """Return what each reader reads of a sentence, ``x_T1E`` in its own order."""
    lengths_1 = torch.tensor([x_1TE.shape[1]], device=x_1TE.device)
    layers = [x_1TE, *encoder.layer_outputs(x_1TE, lengths_1)]
    return [(each, each.ordered(layers[each.layer].transpose(0, 1))) for each in readers(encoder)]


@torch.no_grad()
def openness(encoder: RecurrentEncoder, sentences: Sequence[Tensor]) -> dict[str, Array]:
    """Return for every gate ``open_RNH``: each reader at every word of the sentences, in order."""
    found: dict[str, list[list[Tensor]]] = {}
    for x_1TE in sentences:
        for place, (reader, x_T1E) in enumerate(inputs(encoder, x_1TE)):
            gates, _ = gate_values.along(reader.cell, x_T1E, zero(reader.cell, x_T1E))
            for name, open_TH in gates.items():
                rows = found.setdefault(name, [])
                if place == len(rows):
                    rows.append([])
                rows[place].append(reader.ordered(open_TH))
    return {
        name: torch.stack([torch.cat(row) for row in rows]).double().cpu().numpy()
        for name, rows in found.items()
    }


def jacobians(reader: Reader, x_T1E: Tensor) -> Iterator[Array]:
    """Yield d state(t) / d state(t-1) at every word, from the last that is read to the first."""
    with torch.no_grad():
        states = [zero(reader.cell, x_T1E), *passes.steps(reader.cell, x_T1E, zero(reader.cell, x_T1E))]
    for t in range(len(x_T1E) - 1, -1, -1):
        yield matrices.jacobian(reader.cell, x_T1E[t], states[t])


def zero(cell: Cell, x_T1E: Tensor) -> CellState:
    """Return the state before the first word."""
    return tuple(x_T1E.new_zeros(1, cell.hidden) for _ in range(cell.parts))


class Stepped(nn.Module):
    """A layer that reads word by word, from some word on with gates set by hand, and keeps its states."""

    def __init__(self, cell: Cell, fixed: Mapping[str, float], since: int) -> None:
        super().__init__()
        self.cell, self.since = cell, since
        self.changed = gate_values.with_gates(cell, fixed)
        self.hidden, self.parts = cell.hidden, cell.parts
        self.memory_T: list[Tensor] = []

    def read_all(self, x_TBE: Tensor, state: CellState, lengths_B: Tensor | None) -> tuple[Tensor, CellState]:
        """Read a sentence."""
        states = passes.steps(self.cell, x_TBE[: self.since], state)
        states += passes.steps(cast(Cell, self.changed), x_TBE[self.since :], states[-1])
        self.memory_T = [each[-1] for each in (state, *states)]
        return torch.stack([each[0] for each in states]), states[-1]

    def changes(self) -> Array:
        """Return how far the memory moved at each word: c of an LSTM, else h."""
        memory_SH = torch.cat(self.memory_T)
        return (memory_SH[1:] - memory_SH[:-1]).norm(dim=-1).double().cpu().numpy()


@torch.no_grad()
def hold(encoder: RecurrentEncoder, x_1TE: Tensor, fixed: Mapping[str, float], layers: Sequence[int]) -> Held:
    """Read a sentence twice: freely, and with the gates of these layers set from its middle on."""
    T = x_1TE.shape[1]
    lengths_1, since = torch.tensor([T], device=x_1TE.device), T // 2
    outputs, changes = [], []
    for gates in ({}, fixed):
        own, stepped = _stepped(encoder, gates, layers, since)
        outputs.append(own(x_1TE, lengths_1)[0])
        changes.append(np.stack([each.changes() for each in stepped]))
    moved_T = (outputs[1] - outputs[0]).norm(dim=-1) / outputs[0].norm(dim=-1)
    return Held(readers(encoder), since, changes[0], changes[1], moved_T.double().cpu().numpy())


def _stepped(
    encoder: RecurrentEncoder, fixed: Mapping[str, float], layers: Sequence[int], since: int
) -> tuple[RecurrentEncoder, list[Stepped]]:
    """Return a copy that shares the weights and reads word by word."""
    own = copy.copy(encoder)
    own._modules = dict(encoder._modules)
    made = [Stepped(each.cell, fixed if each.layer in layers else {}, since) for each in readers(encoder)]
    left = iter(made)
    own.layers = nn.ModuleList(
        nn.ModuleList(Direction(cast(Any, next(left)), each.from_end) for each in cast(Any, directions))
        for directions in encoder.layers
    )
    return own, made
