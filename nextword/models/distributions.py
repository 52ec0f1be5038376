"""Distributions as NumPy arrays, whichever family they come from.

Count models return NumPy arrays and neural ones torch tensors; a caller that decodes, mixes or measures
converts with ``as_numpy`` first and is written once. Torch is not imported here: a tensor has the methods.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nextword.core.errors import DamagedError

Floats = npt.NDArray[np.float64]


def as_numpy(array: Any, dtype: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
    """Return the values of an array or tensor; no copy where the type already fits."""
    if not isinstance(array, np.ndarray) and hasattr(array, "detach"):
        array = array.detach().cpu()
        if str(array.dtype) == "torch.bfloat16":  # NumPy has no such type
            array = array.float()
        array = array.numpy()
    return np.asarray(array, dtype=dtype)


def without_nan(logp: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the same numbers; NaN among them means a damaged model. (-inf is a probability of 0.)"""
    if logp.size and np.isnan(logp.max()):
        raise DamagedError(
            "the model computed NaN instead of a probability, so its numbers are damaged; check the run with "
            "nextword doctor, or train it again"
        )
    return logp


def logsumexp(logp: npt.NDArray[Any]) -> Floats:
    """Compute log Σ exp over the last axis, kept as an axis of length 1; a row of log 0 gives log 0."""
    logp = np.asarray(logp, dtype=np.float64)
    top = logp.max(axis=-1, keepdims=True)
    top[~np.isfinite(top)] = 0.0
    with np.errstate(divide="ignore"):
        total: Floats = np.log(np.exp(logp - top).sum(axis=-1, keepdims=True)) + top
    return total


def normalise(logp_BV: npt.NDArray[Any]) -> Floats:
    """Shift every row so that its probabilities sum to 1; a row of log 0 stays as it is."""
    total_B1 = logsumexp(logp_BV)
    total_B1[~np.isfinite(total_B1)] = 0.0
    return np.asarray(logp_BV, dtype=np.float64) - total_B1
