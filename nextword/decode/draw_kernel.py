"""Drawing a token in every row, compiled: `sampling.draw` of float32 in one pass, without a copy.

Sums over blocks of tokens find the block, and sums in it the token. What a row draws does not depend on the
others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nextword.blocks.exponential import SUMS, bits_of, exp, float_of, ordered
from nextword.system.compiled import compiled

Array = npt.NDArray[Any]
_BLOCK = 128  # tokens of a block
_ZERO, _LITTLE = np.float32(0.0), 1e-6


@compiled(nogil=True)
def _peak(logp_V: Array, added_V: Array) -> Any:
    peak = np.int32(-2147483647)
    for v in range(len(logp_V)):
        peak = max(peak, ordered(bits_of(logp_V[v] + added_V[v])))
    return float_of(ordered(peak))


@compiled(nogil=True, fastmath=SUMS)
def _mass(logp_K: Array, added_K: Array, peak: Any) -> Any:
    total = np.float32(0.0)
    for k in range(len(logp_K)):
        total += exp(logp_K[k] + added_K[k] - peak)
    return total


@compiled(nogil=True)
def _sums(logp_V: Array, added_V: Array, peak: Any, ends_N: Array) -> float:
    """Write the sums of p up to the end of each block; return the last."""
    total, V = 0.0, len(logp_V)
    for n in range(len(ends_N)):
        first, end = n * _BLOCK, min(V, (n + 1) * _BLOCK)
        total += _mass(logp_V[first:end], added_V[first:end], peak)
        ends_N[n] = total
    return total


@compiled(nogil=True)
def draw_rows(logp_RV: Array, added_V: Array, uniform_R: Array, words_R: Array, stuck: int) -> None:
    """Write a token for each row, drawn from log p plus what is added; ``stuck`` where none is possible."""
    R, V = logp_RV.shape
    ends_N = np.empty((V + _BLOCK - 1) // _BLOCK)
    highest = max(_ZERO, added_V.max())
    for r in range(R):
        logp_V = logp_RV[r]
        peak = highest  # log p is 0 at most
        total = _sums(logp_V, added_V, peak, ends_N)
        if total < _LITTLE:  # nearly all was taken away: in float32 little is left of what remains
            peak = _peak(logp_V, added_V)
            if peak == -np.inf:
                words_R[r] = stuck
                continue
            total = _sums(logp_V, added_V, peak, ends_N)
        point = uniform_R[r] * total
        n, reached = 0, 0.0
        while ends_N[n] <= point and ends_N[n] < total:  # rounding must not pass the last possible token
            reached = ends_N[n]
            n += 1
        for v in range(n * _BLOCK, min(V, (n + 1) * _BLOCK)):
            p = exp(logp_V[v] + added_V[v] - peak)
            if p > 0:
                words_R[r] = v
                reached += p
                if reached > point:
                    break
