"""Matrices from state to state: those of the weights, and those of a whole step at a token of a text.

[XMU "The gradient may be a trouble maker": the gradient is multiplied by W_h at every step]. With gates a
step is more than one matrix: its Jacobian d state(t) / d state(t-1) is what the gradient is multiplied by.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from nextword.blocks.cells import Cell, CellState, GRUCell, LSTMCell, RNNCell, TorchGRUCell
from nextword.models.recurrent import RecurrentNetwork
from nextword.probe import passes

Array = np.ndarray[Any, np.dtype[Any]]
LARGEST = 1024  # rows of a Jacobian that is still formed


def weights_of(cell: Cell) -> dict[str, Array]:
    """Return the square matrices that h is multiplied by, named by where they lead."""
    if isinstance(cell, RNNCell):
        return {"h to h": _array(cell.h_to_h.weight)}
    if isinstance(cell, LSTMCell):
        return _split(
            cell.h_to_gates.weight, ("h to input", "h to forget", "h to new", "h to output"), "h to new"
        )
    if isinstance(cell, GRUCell):
        gates = _split(cell.h_to_gates.weight, ("h to reset", "h to update"), "")
        return {"h to new": _array(cell.h_to_new.weight), **gates}
    if isinstance(cell, TorchGRUCell):
        return _split(cell.h_to_gates.weight, ("h to reset", "h to keep", "h to new"), "h to new")
    return {}


def _split(weight_GH: Tensor, names: tuple[str, ...], first: str) -> dict[str, Array]:
    blocks = dict(zip(names, _array(weight_GH).reshape(len(names), -1, weight_GH.shape[1]), strict=True))
    return {name: blocks[name] for name in sorted(names, key=lambda name: name != first)}


def _array(tensor: Tensor) -> Array:
    return tensor.detach().double().cpu().numpy()


def jacobians(network: RecurrentNetwork, ids_T: Array, layer: int) -> Iterator[Array]:
    """Yield ``J_SS``: d state(t) / d state(t-1) of one layer at every token, from the last to the first.

    The state is h, or h and c together.
    """
    ids_1T = torch.as_tensor(ids_T, device=network.device)[None]
    with torch.no_grad():
        done = passes.recurrent(network, ids_1T, network.start(1))
        x_TBE = _inputs(network, done, layer)
    sites = [site for site in done.sites if site.depth == layer + 1]
    cell = cast(Cell, network.layers[layer])
    for t in range(len(x_TBE) - 1, -1, -1):
        before = tuple(site.tensors[t - 1] for site in sites) if t else network.start(1)[layer]
        yield jacobian(cell, x_TBE[t], before)


def _inputs(network: RecurrentNetwork, done: passes.Pass, layer: int) -> Tensor:
    """Return the input of a layer."""
    x_TBE = done.sites[0].gather(done.sites[0].tensors).transpose(0, 1)
    for depth, join in enumerate(list(network.joins)[:layer], start=1):
        site = next(site for site in done.sites if site.depth == depth)
        x_TBE = join(x_TBE, torch.stack(site.tensors))
    return x_TBE


def jacobian(cell: Cell, x_BE: Tensor, state: CellState) -> Array:
    """Return all derivatives of one step: a row of the batch for each number of the new state."""
    flat_S = torch.cat([part.detach() for part in state], dim=-1)[0]
    S = len(flat_S)
    with torch.enable_grad():
        rows_SS = flat_S.expand(S, S).clone().requires_grad_()
        after = cell(x_BE.detach().expand(S, -1), rows_SS.chunk(cell.parts, dim=-1))
        after_SS = torch.cat(after, dim=-1)
        (found_SS,) = torch.autograd.grad(after_SS.diagonal().sum(), rows_SS)
    return _array(found_SS)
