"""What comes before and after a product in int8, compiled: rounding rows to 8 bits, and scaling the sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nextword.system.compiled import compiled

Array = npt.NDArray[Any]
_LEAST = np.float32(1e-30)  # the largest number of a row, at least: a row of zeros has a scale, too
_MOST = np.float32(127)
_NO_SIGN = np.int32(0x7FFFFFFF)


@compiled(nogil=True)
def round_rows(x_NI: Array, bits_NI: Array, q_NI: Array, scale_N: Array) -> None:
    """Write x ≈ r q: q in int8, r a scale for each row; ``bits_NI`` are those of x.

    Absolute values are compared as whole numbers, whose order is the same; NaN is then above all others, so
    that a row with NaN has NaN as its scale.
    """
    N, width = x_NI.shape
    for n in range(N):
        peak = np.int32(0)
        for i in range(width):
            peak = max(peak, bits_NI[n, i] & _NO_SIGN)
        scale_N[n : n + 1].view(np.int32)[0] = peak
        scale = scale_N[n]
        if scale < _LEAST:
            scale = _LEAST
        scale = scale / _MOST
        scale_N[n] = scale
        for i in range(width):
            q_NI[n, i] = np.int8(np.int32(np.rint(x_NI[n, i] / scale)))


@compiled(nogil=True, fastmath={"contract"})
def scale_sums(sums_NO: Array, scale_N: Array, scale_O: Array, bias_O: Array, y_NO: Array) -> None:
    """Write y = r s Σ + b: the sums in the scales of the row and of the output, and the bias."""
    N, width = sums_NO.shape
    for n in range(N):
        own = scale_N[n]
        for o in range(width):
            y_NO[n, o] = np.float32(sums_NO[n, o]) * (scale_O[o] * own) + bias_O[o]
