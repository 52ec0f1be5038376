"""The most likely tokens of each row, of a NumPy array or of a tensor, without sorting whole rows.

A row is cut into blocks; the k best tokens stand in the k blocks with the largest maxima, so only these are
searched. Equal values are ordered by id, in every batch alike. Torch is loaded only where a tensor is given.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nextword.core.contracts import Array
from nextword.decode.sampling import Ints
from nextword.models.distributions import Floats, as_numpy, without_nan

_BLOCK = 16  # tokens of a block


def checked(logp_RV: Array) -> Array:
    """Return distributions that a chooser can use: float64 of NumPy, or a tensor of float32, without NaN."""
    if isinstance(logp_RV, np.ndarray):
        return without_nan(as_numpy(logp_RV, np.float64))
    logp_RV = logp_RV.float()
    without_nan(as_numpy(logp_RV.amax(-1)))  # a maximum over NaN is NaN
    return logp_RV


def copied(logp_RV: Array) -> Array:
    """Return a copy that limits may change."""
    return logp_RV.copy() if isinstance(logp_RV, np.ndarray) else logp_RV.clone()


def best(logp_RV: Array) -> Ints:
    """Return the most likely token of each row; among equal ones the one of lowest id."""
    found_R: Ints = np.argmax(as_numpy(logp_RV), axis=-1)
    return found_R


def at(logp_RV: Array, rows_N: Ints, ids_N: Ints) -> Floats:
    """Return single values: of these rows, at these tokens."""
    return as_numpy(logp_RV[rows_N, ids_N], np.float64)


def top(logp_RV: Array, count: int) -> tuple[Floats, Ints]:
    """Return ``values_RC`` and ``ids_RC`` of the most likely tokens, best first, equal ones by id."""
    V = logp_RV.shape[-1]
    count = min(count, V)
    asked = min(count + 1, V)  # one more shows whether the last place is shared
    find = _top_array if isinstance(logp_RV, np.ndarray) else _top_tensor
    values_RC, ids_RC = find(logp_RV, asked)
    order_RC = np.lexsort((ids_RC, -values_RC), axis=-1)
    values_RC = np.take_along_axis(values_RC, order_RC, axis=-1)
    ids_RC = np.take_along_axis(ids_RC, order_RC, axis=-1)
    if asked > count:
        shared_R = (values_RC[:, count - 1] == values_RC[:, count]) & np.isfinite(values_RC[:, count])
        values_RC, ids_RC = values_RC[:, :count], ids_RC[:, :count]
        for row in np.flatnonzero(shared_R):
            values_V = as_numpy(logp_RV[int(row)], np.float64)
            ids_RC[row] = np.argsort(-values_V, kind="stable")[:count]
            values_RC[row] = values_V[ids_RC[row]]
    return values_RC, ids_RC


def _blocks(V: int, count: int) -> int:
    """Return the number of blocks that a row is cut into; 0: it is searched as a whole."""
    return V // _BLOCK if 4 * _BLOCK * count <= V else 0


def _top_array(logp_RV: Any, count: int) -> tuple[Floats, Ints]:
    """Find the best in NumPy; block c holds the tokens c, c + C, c + 2C, …"""
    R, V = logp_RV.shape
    C = _blocks(V, count)
    if not C:
        ids_RC = np.argpartition(-logp_RV, count - 1, axis=-1)[:, :count]
        return np.take_along_axis(logp_RV, ids_RC, axis=-1), ids_RC
    peaks_RC = logp_RV[:, : C * _BLOCK].reshape(R, _BLOCK, C).max(axis=1)
    blocks_RK = np.argpartition(-peaks_RC, count - 1, axis=-1)[:, :count]
    near_RX = (blocks_RK[:, :, None] + np.arange(0, _BLOCK * C, C)).reshape(R, -1)
    rest_RX = np.broadcast_to(np.arange(C * _BLOCK, V), (R, V - C * _BLOCK))
    near_RX = np.concatenate([near_RX, rest_RX], axis=1)
    values_RX = np.take_along_axis(logp_RV, near_RX, axis=-1)
    places_RC = np.argpartition(-values_RX, count - 1, axis=-1)[:, :count]
    return np.take_along_axis(values_RX, places_RC, axis=-1), np.take_along_axis(near_RX, places_RC, axis=-1)


def _top_tensor(logp_RV: Any, count: int) -> tuple[Floats, Ints]:
    """Find the best in torch, in the same way."""
    import torch

    R, V = logp_RV.shape
    C = _blocks(V, count)
    if not C:
        values_RC, ids_RC = torch.topk(logp_RV, count)
        return as_numpy(values_RC, np.float64), as_numpy(ids_RC, np.int64)
    blocks_RK = torch.topk(logp_RV[:, : C * _BLOCK].view(R, _BLOCK, C).amax(1), count, sorted=False).indices
    near_RX = (blocks_RK[:, :, None] + torch.arange(0, _BLOCK * C, C, device=logp_RV.device)).view(R, -1)
    rest_RX = torch.arange(C * _BLOCK, V, device=logp_RV.device).expand(R, -1)
    near_RX = torch.cat([near_RX, rest_RX], dim=1)
    values_RC, places_RC = torch.topk(logp_RV.gather(1, near_RX), count)
    return as_numpy(values_RC, np.float64), as_numpy(near_RX.gather(1, places_RC), np.int64)
