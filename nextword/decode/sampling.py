"""Sampling: pure functions from log-probabilities to adjusted ones, and the draw itself.

A token is drawn from the model's distribution, not taken at its maximum [XMU "Decoding", MAUSAM "Sampling"].
Every function takes and returns ``logp_BV`` with rows that sum to 1, and never leaves a row empty.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from nextword.core.contracts import END
from nextword.models.distributions import Floats, normalise

if TYPE_CHECKING:
    from nextword.decode.settings import DecodeSettings

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


def temperature(logp_BV: Floats, value: float) -> Floats:
    """Return p^(1/T), renormalized: below 1 sharper, above 1 flatter; 0 keeps only the best token."""
    if value == 0:
        best_B = np.argmax(logp_BV, axis=-1)
        return _only(logp_BV, np.arange(logp_BV.shape[-1]) == best_B[:, None])
    return logp_BV if value == 1 else normalise(logp_BV / value)


def top_k(logp_BV: Floats, k: int) -> Floats:
    """Keep exactly the k most likely tokens (Fan et al. 2018); among ties those with lower ids."""
    V = logp_BV.shape[-1]
    if not 0 < k < V:
        return logp_BV
    kth_B1 = np.partition(logp_BV, V - k, axis=-1)[:, V - k, None]
    above, equal = logp_BV > kth_B1, logp_BV == kth_B1
    room_B1 = k - above.sum(axis=-1, keepdims=True)
    return _only(logp_BV, above | (equal & (np.cumsum(equal, axis=-1) <= room_B1)))


def top_p(logp_BV: Floats, mass: float) -> Floats:
    """Keep the nucleus: the fewest most likely tokens with at least this mass (Holtzman et al. 2020)."""
    return logp_BV if mass >= 1 else _only(logp_BV, _smallest_set(logp_BV, -logp_BV, mass))


def min_p(logp_BV: Floats, share: float) -> Floats:
    """Keep tokens with at least this share of the best token's probability (Nguyen et al. 2024)."""
    if share <= 0:
        return logp_BV
    return _only(logp_BV, logp_BV >= logp_BV.max(axis=-1, keepdims=True) + np.log(share))


def typical(logp_BV: Floats, mass: float) -> Floats:
    """Keep the tokens whose surprise is nearest the entropy, up to this mass (Meister et al. 2023)."""
    if mass >= 1:
        return logp_BV
    p_BV = np.exp(logp_BV)
    surprise_BV = np.where(p_BV > 0, -logp_BV, 0.0)
    entropy_B1 = (p_BV * surprise_BV).sum(axis=-1, keepdims=True)
    distance_BV = np.where(p_BV > 0, np.abs(surprise_BV - entropy_B1), np.inf)
    return _only(logp_BV, _smallest_set(logp_BV, distance_BV, mass))


def shape(logp_BV: Floats, settings: DecodeSettings) -> Floats:
    """Apply all adjustments of the settings, in the usual order."""
    logp_BV = temperature(normalise(logp_BV), settings.temperature)
    logp_BV = top_k(logp_BV, settings.top_k)
    logp_BV = top_p(logp_BV, settings.top_p)
    logp_BV = min_p(logp_BV, settings.min_p)
    return typical(logp_BV, settings.typical)


def uniform(seed: int, sample: int, position: int) -> float:
    """Return a number in [0, 1) that depends only on these three, not on batches or call order (Philox)."""
    bits = np.random.Philox(key=np.array([seed, sample], dtype=np.uint64), counter=position).random_raw()
    return float(int(bits) >> 11) * 2.0**-53


def uniforms(seed: int, sample: int, first: int, count: int) -> list[float]:
    """Return `uniform` for several positions at once: of each four numbers of Philox the first counts."""
    random = np.random.Philox(key=np.array([seed, sample], dtype=np.uint64), counter=first)
    numbers: list[float] = ((random.random_raw(4 * count)[::4] >> np.uint64(11)) * 2.0**-53).tolist()
    return numbers


def draw(logp_BV: npt.NDArray[Any], uniform_B: npt.ArrayLike) -> Ints:
    """Draw one token per row by the inverse of the cumulative distribution; rows do not change each other.

    A cumulative sum over all tokens waits for each addition before it. Here sums over blocks of tokens find
    the block, and sums in it the token, so that only two square roots of V are left.
    """
    B, V = logp_BV.shape
    K = math.isqrt(V)
    p_BP = np.zeros((B, -(-V // K) * K), dtype=logp_BV.dtype)
    p_BV = p_BP[:, :V]
    np.exp(np.subtract(logp_BV, logp_BV.max(axis=-1, keepdims=True), out=p_BV), out=p_BV)
    p_BNK = p_BP.reshape(B, -1, K)
    ends_BN = np.cumsum(np.einsum("bnk->bn", p_BNK), axis=-1, dtype=np.float64)
    points_B1 = np.asarray(uniform_B, dtype=np.float64)[:, None] * ends_BN[:, -1:]
    blocks_B = (ends_BN <= np.minimum(points_B1, np.nextafter(ends_BN[:, -1:], 0))).sum(axis=-1)
    rows_B = np.arange(B)
    p_BK = p_BNK[rows_B, blocks_B]
    before_B = np.where(blocks_B > 0, ends_BN[rows_B, blocks_B - 1], 0.0)
    ends_BK = np.cumsum(p_BK, axis=-1, dtype=np.float64) + before_B[:, None]
    words_B: Ints = blocks_B * K + np.minimum((ends_BK <= points_B1).sum(axis=-1), _last(p_BK))
    return words_B


def draw_added(logp_RV: npt.NDArray[np.float32], added_V: Floats, uniform_R: npt.ArrayLike) -> Ints:
    """Draw one token per row after an addition to log p; END where nothing is possible. Compiled `draw`."""
    from nextword.decode.draw_kernel import draw_rows  # numba is loaded only where it is needed

    words_R: Ints = np.empty(len(logp_RV), dtype=np.int64)
    draw_rows(logp_RV, added_V.astype(np.float32), np.asarray(uniform_R, dtype=np.float64), words_R, END)
    return words_R


def _last(p_BV: npt.NDArray[Any]) -> Ints:
    """Return the last possible token of each row, which rounding must not pass."""
    last_B: Ints = p_BV.shape[-1] - 1 - np.argmax(p_BV[:, ::-1] > 0, axis=-1)
    return last_B


def _smallest_set(logp_BV: Floats, badness_BV: Floats, mass: float) -> Bools:
    """Keep the fewest tokens, best first, whose probabilities reach the mass; ties by lower id."""
    keep_BV: Bools = np.zeros(logp_BV.shape, dtype=np.bool_)
    for keep_V, p_V, badness_V in zip(keep_BV, np.exp(logp_BV), badness_BV, strict=True):
        keep_V[_smallest_row(p_V, badness_V, mass * float(p_V.sum()))] = True
    return keep_BV


def _smallest_row(p_V: Floats, badness_V: Floats, mass: float) -> Ints:
    """Do one row, sorting only as many tokens as are needed."""
    V = len(p_V)
    for size in (256, 4096, V):
        words = np.arange(V)
        if size < V:  # these and all their equals
            words = np.flatnonzero(badness_V <= np.partition(badness_V, size - 1)[size - 1])
        words = words[np.argsort(badness_V[words], kind="stable")]
        p_sorted = p_V[words]
        enough = np.cumsum(p_sorted) - p_sorted < mass
        if not enough[-1]:
            break
    return words[enough]


def _only(logp_BV: Floats, keep_BV: npt.NDArray[Any]) -> Floats:
    return normalise(np.where(keep_BV, logp_BV, -np.inf))
