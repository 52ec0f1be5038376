"""Sampling: pure functions from log-probabilities to adjusted ones, and the draw itself.

A token is drawn from the model's distribution, not taken at its maximum [XMU "Decoding", MAUSAM "Sampling"].
Every function takes and returns ``logp_BV`` with rows that sum to 1, and never leaves a row empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

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
    return [float(int(bits) >> 11) * 2.0**-53 for bits in random.random_raw(4 * count)[::4]]


def draw(logp_BV: Floats, uniform_B: npt.ArrayLike) -> Ints:
    """Draw one token per row by the inverse of the cumulative distribution, in float64."""
    p_BV = np.exp(logp_BV - logp_BV.max(axis=-1, keepdims=True))
    sums_BV = np.cumsum(p_BV, axis=-1)
    points_B = np.asarray(uniform_B, dtype=np.float64) * sums_BV[:, -1]
    pairs = zip(sums_BV, points_B, strict=True)
    drawn = [np.searchsorted(sums, point, side="right") for sums, point in pairs]
    last_B = logp_BV.shape[-1] - 1 - np.argmax(p_BV[:, ::-1] > 0, axis=-1)  # rounding must not pass it
    words_B: Ints = np.minimum(np.array(drawn, dtype=np.int64), last_B)
    return words_B


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
