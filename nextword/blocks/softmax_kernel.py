"""log p of whole rows of logits, compiled: the exponential is a polynomial, and rows stay in the cache."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nextword.blocks.exponential import SUMS, exp
from nextword.system.compiled import compiled

Array = npt.NDArray[Any]


@compiled(nogil=True, fastmath={"nnan", "nsz", "reassoc"})
def _peak(row_V: Array) -> Any:
    """Return the largest number; any one where there is NaN, which stays what it is."""
    peak = row_V[0]
    for v in range(1, len(row_V)):
        peak = max(peak, row_V[v])
    return peak


@compiled("void(float32[:, ::1])", nogil=True, fastmath=SUMS)
def normalize(logits_NV: Array) -> None:
    """Write x - log Σ exp x in the place of each number x of a row."""
    N, V = logits_NV.shape
    for n in range(N):
        row_V = logits_NV[n]
        peak = _peak(row_V)
        total = np.float32(0.0)
        for v in range(V):
            total += exp(row_V[v] - peak)
        shift = peak + np.log(total)
        for v in range(V):
            row_V[v] -= shift
