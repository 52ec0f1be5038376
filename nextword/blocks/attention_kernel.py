"""Attention of one new token in each row, compiled: while texts are written, products are many and small.

One loop goes over the keys that each row sees: those of its window, of its source, or its own nodes in the
tree of a search.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

Array = npt.NDArray[Any]
_SUMS = {"reassoc", "contract", "nsz"}  # allow a sum to be split over the lanes of a register


@njit(cache=True, fastmath=_SUMS, nogil=True)
def look(
    q_BNK: Array,
    keys_UMSK: Array,
    values_UMSK: Array,
    sources_B: Array,
    counts_U: Array,
    bias_BS: Array,
    out_BNK: Array,
    scale: Any,
) -> None:
    """Compute softmax(s q Kᵀ) V of each row.

    ``sources_B``: whose keys a row sees. It sees the first ``counts_U`` of them or, where ``bias_BS`` has
    columns, those at which it is 0.
    """
    B, N, K = q_BNK.shape
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
            count = counts_U[u]
            for s in range(count):
                seen_S[s] = s
        for n in range(N):
            m = n // each
            for k in range(K):
                q_K[k] = q_BNK[b, n, k] * scale
            highest = np.float32(-np.inf)
            for place in range(count):
                key_K = keys_UMSK[u, m, seen_S[place]]
                score = np.float32(0.0)
                for k in range(K):
                    score += q_K[k] * key_K[k]
                scores_S[place] = score
                highest = max(highest, score)
            total = np.float32(0.0)
            for k in range(K):
                sum_K[k] = 0.0
            for place in range(count):
                weight = math.exp(scores_S[place] - highest)
                total += weight
                value_K = values_UMSK[u, m, seen_S[place]]
                for k in range(K):
                    sum_K[k] += weight * value_K[k]
            for k in range(K):
                out_BNK[b, n, k] = sum_K[k] / total
