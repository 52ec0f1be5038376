"""The elementwise pass of the output layer's loss, compiled: each row of logits becomes its gradient.

It reads a row in the cache twice: its maximum, then exp, sum and the gradient of the bias. bfloat16 is read
and written as the upper half of a float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nextword.blocks.exponential import SUMS, bits_of, exp, float_of, ordered
from nextword.system.compiled import compiled

Array = npt.NDArray[Any]

_ONE, _ZERO = np.float32(1.0), np.float32(0.0)
_HALF_WORD, _ROUND, _BIT = np.int32(16), np.int32(0x7FFF), np.int32(1)


@compiled()
def _wide(half: Any) -> Any:
    """Widen a bfloat16, held as int16."""
    return float_of(np.int32(half) << _HALF_WORD)


@compiled()
def _narrow(value: Any) -> Any:
    """Round to bfloat16, to the nearest, ties to even."""
    bits = bits_of(value)
    return np.int16((bits + _ROUND + ((bits >> _HALF_WORD) & _BIT)) >> _HALF_WORD)


@compiled()
def _top(row_V: Array, bias_V: Array) -> Any:
    top = np.int32(-2147483647)
    for v in range(len(row_V)):
        top = max(top, ordered(bits_of(row_V[v] + bias_V[v])))
    return float_of(ordered(top))


@compiled()
def _top16(row_V: Array, bias_V: Array) -> Any:
    top = np.int32(-2147483647)
    for v in range(len(row_V)):
        top = max(top, ordered(bits_of(_wide(row_V[v]) + bias_V[v])))
    return float_of(ordered(top))


@compiled(fastmath=SUMS)
def _overwrite(row_V: Array, bias_V: Array, top: Any) -> Any:
    total = _ZERO
    for v in range(len(row_V)):
        e = exp(row_V[v] + bias_V[v] - top)
        row_V[v] = e
        total += e
    return total


@compiled(fastmath=SUMS)
def _overwrite16(row_V: Array, bias_V: Array, top: Any) -> Any:
    total = _ZERO
    for v in range(len(row_V)):
        e = exp(_wide(row_V[v]) + bias_V[v] - top)
        row_V[v] = _narrow(e)
        total += e
    return total


@compiled(fastmath=SUMS)
def _add(grad_V: Array, row_V: Array, scale: Any) -> None:
    for v in range(len(grad_V)):
        grad_V[v] += row_V[v] * scale


@compiled(fastmath=SUMS)
def _add16(grad_V: Array, row_V: Array, scale: Any) -> None:
    for v in range(len(grad_V)):
        grad_V[v] += _wide(row_V[v]) * scale


@compiled(nogil=True, error_model="numpy")
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


@compiled(nogil=True, error_model="numpy")
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
