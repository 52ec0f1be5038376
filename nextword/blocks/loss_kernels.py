"""The elementwise pass of the output layer's loss, compiled: each row of logits becomes its gradient.

It reads a row in the cache twice: its maximum, then exp, sum and the gradient of the bias. The exponential
is written out as a polynomial (Cephes' expf, Moshier 1989), so that it runs in vector registers; bfloat16 is
read and written as the upper half of a float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

Array = npt.NDArray[Any]

_LOWEST = np.float32(-87.0)  # exp of less is 0 in float32
_LOG2E = np.float32(1.4426950408889634)
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_P5, _P4, _P3 = np.float32(1.9875691500e-4), np.float32(1.3981999507e-3), np.float32(8.3334519073e-3)
_P2, _P1, _P0 = np.float32(4.1665795894e-2), np.float32(1.6666665459e-1), np.float32(5.0000001201e-1)
_ONE, _HALF, _ZERO = np.float32(1.0), np.float32(0.5), np.float32(0.0)
_SIGN, _REST, _BIAS, _MANTISSA = np.int32(31), np.int32(0x7FFFFFFF), np.int32(127), np.int32(23)
_HALF_WORD, _ROUND, _BIT = np.int32(16), np.int32(0x7FFF), np.int32(1)
_SUMS = {"reassoc", "contract", "nsz"}  # allow a sum to be split over the lanes of a register


def _bits_of(context: Any, value: Any) -> Any:
    """Return the 32 bits of a float32."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(32))

    return types.int32(types.float32), generate


def _float_of(context: Any, value: Any) -> Any:
    """Return the float32 of 32 bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), generate


_bits: Any = intrinsic(_bits_of)
_float: Any = intrinsic(_float_of)


@njit(cache=True, fastmath={"contract"})
def exp(x: Any) -> Any:
    """Compute e^x to the last bit or two: 2^n times a polynomial of the remainder."""
    low = x if x > _LOWEST else _LOWEST
    n = np.floor(low * _LOG2E + _HALF)
    r = low - n * _LN2_HIGH - n * _LN2_LOW
    p = ((((_P5 * r + _P4) * r + _P3) * r + _P2) * r + _P1) * r + _P0
    p = p * (r * r) + (r + _ONE)
    value = p * _float((np.int32(n) + _BIAS) << _MANTISSA)
    return value if x > _LOWEST else _ZERO


@njit(cache=True)
def _ordered(bits: Any) -> Any:
    """Map the bits of floats to ordered integers, and back, so that the maximum needs no test for NaN."""
    return bits ^ ((bits >> _SIGN) & _REST)


@njit(cache=True)
def _wide(half: Any) -> Any:
    """Widen a bfloat16, held as int16."""
    return _float(np.int32(half) << _HALF_WORD)


@njit(cache=True)
def _narrow(value: Any) -> Any:
    """Round to bfloat16, to the nearest, ties to even."""
    bits = _bits(value)
    return np.int16((bits + _ROUND + ((bits >> _HALF_WORD) & _BIT)) >> _HALF_WORD)


@njit(cache=True)
def _top(row_V: Array, bias_V: Array) -> Any:
    top = np.int32(-2147483647)
    for v in range(len(row_V)):
        top = max(top, _ordered(_bits(row_V[v] + bias_V[v])))
    return _float(_ordered(top))


@njit(cache=True)
def _top16(row_V: Array, bias_V: Array) -> Any:
    top = np.int32(-2147483647)
    for v in range(len(row_V)):
        top = max(top, _ordered(_bits(_wide(row_V[v]) + bias_V[v])))
    return _float(_ordered(top))


@njit(cache=True, fastmath=_SUMS)
def _overwrite(row_V: Array, bias_V: Array, top: Any) -> Any:
    total = _ZERO
    for v in range(len(row_V)):
        e = exp(row_V[v] + bias_V[v] - top)
        row_V[v] = e
        total += e
    return total


@njit(cache=True, fastmath=_SUMS)
def _overwrite16(row_V: Array, bias_V: Array, top: Any) -> Any:
    total = _ZERO
    for v in range(len(row_V)):
        e = exp(_wide(row_V[v]) + bias_V[v] - top)
        row_V[v] = _narrow(e)
        total += e
    return total


@njit(cache=True, fastmath=_SUMS)
def _add(grad_V: Array, row_V: Array, scale: Any) -> None:
    for v in range(len(grad_V)):
        grad_V[v] += row_V[v] * scale


@njit(cache=True, fastmath=_SUMS)
def _add16(grad_V: Array, row_V: Array, scale: Any) -> None:
    for v in range(len(grad_V)):
        grad_V[v] += _wide(row_V[v]) * scale


@njit(cache=True, nogil=True, error_model="numpy")
def gradients(
    logits_CV: Array, bias_V: Array, targets_C: Array, logp_C: Array, scale_C: Array, grad_V: Array
) -> None:
    """Set log p of the targets, scale 1/s, rows s (p - one-hot); add Σ (p - one-hot) to ``grad_V``."""
    for c in range(len(logits_CV)):
        row_V, target = logits_CV[c], targets_C[c]
        top = _top(row_V, bias_V)
        logit = row_V[target] + bias_V[target]
        total = _overwrite(row_V, bias_V, top)
        row_V[target] = row_V[target] - total
        logp_C[c] = logit - top - np.log(total)
        scale_C[c] = _ONE / total
        _add(grad_V, row_V, scale_C[c])


@njit(cache=True, nogil=True, error_model="numpy")
def gradients16(
    logits_CV: Array, bias_V: Array, targets_C: Array, logp_C: Array, scale_C: Array, grad_V: Array
) -> None:
    """Do what `gradients` does, for logits in bfloat16; sums are in float32."""
    for c in range(len(logits_CV)):
        row_V, target = logits_CV[c], targets_C[c]
        top = _top16(row_V, bias_V)
        logit = _wide(row_V[target]) + bias_V[target]
        total = _overwrite16(row_V, bias_V, top)
        row_V[target] = _narrow(exp(logit - top) - total)
        logp_C[c] = logit - top - np.log(total)
        scale_C[c] = _ONE / total
        _add16(grad_V, row_V, scale_C[c])
