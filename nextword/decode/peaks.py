"""The most likely tokens of each row, of a NumPy array or of a tensor, without sorting whole rows.

Equal values are ordered by id, in every batch alike.
"""

from __future__ import annotations

import numpy as np

from nextword.core.contracts import Array
from nextword.decode.sampling import Ints
from nextword.models.distributions import Floats, as_numpy, without_nan


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
    from nextword.decode.top_kernel import top_rows  # numba is loaded only where it is needed

    values_RV = np.ascontiguousarray(as_numpy(logp_RV))
    shape = len(values_RV), min(count, values_RV.shape[1])
    values_RC: Floats = np.empty(shape)
    ids_RC: Ints = np.zeros(shape, dtype=np.int64)
    top_rows(values_RV, values_RC, ids_RC)
    return values_RC, ids_RC
