"""The most likely tokens of each row, compiled: only blocks with a large number are searched."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nextword.system.compiled import compiled

Array = npt.NDArray[Any]
_BLOCK = 32  # tokens of a block


@compiled(nogil=True, fastmath={"nnan", "nsz", "reassoc"})
def _peak(values_V: Array, first: int) -> Any:
    """Return the largest number of a block."""
    peak = values_V[first]
    for place in range(first + 1, first + _BLOCK):
        peak = max(peak, values_V[place])
    return peak


@compiled(nogil=True)
def top_rows(values_RV: Array, best_RC: Array, ids_RC: Array) -> None:
    """Write the largest numbers of each row and where they stand, best first, equal ones by id."""
    R, V = values_RV.shape
    C = best_RC.shape[1]
    whole = V // _BLOCK * _BLOCK
    for r in range(R):
        row_V, best_C, ids_C = values_RV[r], best_RC[r], ids_RC[r]
        best_C[:] = -np.inf
        found = 0
        for first in range(0, V, _BLOCK):
            if first < whole and found == C and _peak(row_V, first) <= best_C[C - 1]:
                continue
            for v in range(first, min(first + _BLOCK, V)):
                value = row_V[v]
                if found < C:
                    found += 1
                elif value <= best_C[C - 1]:
                    continue
                place = found - 1
                while place > 0 and best_C[place - 1] < value:
                    best_C[place], ids_C[place] = best_C[place - 1], ids_C[place - 1]
                    place -= 1
                best_C[place], ids_C[place] = value, v
