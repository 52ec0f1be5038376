"""Attention of single queries, compiled: while texts are written, products are many and small.

One loop goes over the keys that each query sees: those of its window, of its source, or its own nodes in the
tree of a search. Arrays are given by their addresses, since an array takes longer to hand over than a number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import intrinsic
from numba.np import numpy_support

from nextword.blocks.exponential import SUMS, exp
from nextword.system.compiled import compiled

Array = npt.NDArray[Any]


def _pointer(kind: Any) -> Any:
    """Return code that makes an address a pointer to numbers of this kind."""

    def typed(context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        pointer: Any = types.CPointer
        return pointer(kind)(types.intp), generate

    return intrinsic(typed)


_array: Any = numpy_support.carray
_floats, _indices = _pointer(types.float32), _pointer(types.int64)


@compiled(fastmath=SUMS, nogil=True)
def _look(
    q_BX: Array,
    keys_UMSK: Array,
    values_UMSK: Array,
    sources_B: Array,
    counts_B: Array,
    bias_BS: Array,
    out_BNK: Array,
    scale: Any,
) -> None:
    """Compute softmax(s q Kᵀ) V of each query.

    ``sources_B``: whose keys a query sees. It sees the first ``counts_B`` of them or, where ``bias_BS`` has
    columns, those at which it is 0.
    """
    B, N, K = out_BNK.shape
    each = N // keys_UMSK.shape[1]
    seen_S = np.empty(keys_UMSK.shape[2], np.int64)
    scores_S = np.empty(keys_UMSK.shape[2], np.float32)
    q_K, sum_K = np.empty(K, np.float32), np.empty(K, np.float32)
    for b in range(B):
        u = sources_B[b]
        count = 0
        if bias_BS.shape[1]:
            for s in range(bias_BS.shape[1]):
                if bias_BS[b, s] == 0:
                    seen_S[count] = s
                    count += 1
        else:
            count = counts_B[b]
            for s in range(count):
                seen_S[s] = s
        for n in range(N):
            m = n // each
            for k in range(K):
                q_K[k] = q_BX[b, n * K + k] * scale
            highest = np.float32(-np.inf)
            for place in range(count):
                key_K = keys_UMSK[u, m, seen_S[place]]
                score = np.float32(0.0)
                for k in range(K):
                    score += q_K[k] * key_K[k]
                scores_S[place] = score
                highest = max(highest, score)
            total = np.float32(0.0)
            for place in range(count):  # a loop of its own, for several keys at once
                scores_S[place] = exp(scores_S[place] - highest)
                total += scores_S[place]
            for k in range(K):
                sum_K[k] = 0.0
            for place in range(count):
                weight = scores_S[place]
                value_K = values_UMSK[u, m, seen_S[place]]
                for k in range(K):
                    sum_K[k] += weight * value_K[k]
            for k in range(K):
                out_BNK[b, n, k] = sum_K[k] / total


@compiled(
    "void(intp, intp, intp, intp, intp, intp, intp, intp, UniTuple(intp, 6), intp, intp, float32)",
    nogil=True,
)  # fmt: skip
def look(
    q: int, stride: int, keys: int, values: int, sources: int, counts: int, bias: int, columns: int,
    shape: Any, heads: int, out: int, scale: Any,
) -> None:  # fmt: skip
    """Compute softmax(s q Kᵀ) V of each query; ``stride``: numbers from one query to the next.

    ``shape``: queries B, sources U, heads of keys M, slots S, numbers of a head K, and the columns of
    ``bias`` from one query to the next.
    """
    B, U, M, S, K, step = shape
    _look(
        _array(_floats(q), (B, stride)),
        _array(_floats(keys), (U, M, S, K)),
        _array(_floats(values), (U, M, S, K)),
        _array(_indices(sources), (B,)),
        _array(_indices(counts), (B,)),
        _array(_floats(bias), (B, step))[:, :columns],
        _array(_floats(out), (B, heads, K)),
        scale,
    )
