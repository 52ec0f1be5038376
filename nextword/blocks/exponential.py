"""The exponential for compiled loops: a polynomial in vector registers (Cephes' expf, Moshier 1989)."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from nextword.system.compiled import compiled

SUMS = {"reassoc", "contract", "nsz"}  # allow a sum to be split over the lanes of a register
_LOWEST = np.float32(-87.0)  # exp of less is 0 in float32
_LOG2E = np.float32(1.4426950408889634)
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_P5, _P4, _P3 = np.float32(1.9875691500e-4), np.float32(1.3981999507e-3), np.float32(8.3334519073e-3)
_P2, _P1, _P0 = np.float32(4.1665795894e-2), np.float32(1.6666665459e-1), np.float32(5.0000001201e-1)
_ONE, _HALF, _ZERO = np.float32(1.0), np.float32(0.5), np.float32(0.0)
_SIGN, _REST, _BIAS, _MANTISSA = np.int32(31), np.int32(0x7FFFFFFF), np.int32(127), np.int32(23)


def _to_bits(context: Any, value: Any) -> Any:
    """Return the 32 bits of a float32."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(32))

    return types.int32(types.float32), generate


def _to_float(context: Any, value: Any) -> Any:
    """Return the float32 of 32 bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), generate


bits_of: Any = intrinsic(_to_bits)
float_of: Any = intrinsic(_to_float)


@compiled(nogil=True, fastmath={"contract"})
def exp(x: Any) -> Any:
    """Compute e^x to the last bit or two: 2^n times a polynomial of the remainder."""
    low = x if x > _LOWEST else _LOWEST
    n = np.floor(low * _LOG2E + _HALF)
    r = low - n * _LN2_HIGH - n * _LN2_LOW
    p = ((((_P5 * r + _P4) * r + _P3) * r + _P2) * r + _P1) * r + _P0
    p = p * (r * r) + (r + _ONE)
    value = p * float_of((np.int32(n) + _BIAS) << _MANTISSA)
    return value if x > _LOWEST else _ZERO


@compiled(nogil=True)
def ordered(bits: Any) -> Any:
    """Map the bits of floats to ordered integers, and back, so that the maximum needs no test for NaN."""
    return bits ^ ((bits >> _SIGN) & _REST)
