"""Tokens as points: the rows of an embedding matrix, their neighbours, and a map in two dimensions.

[IITD-1 "A Fixed-window Neural Language Model": e = E x].
Cosine similarity; the map is the plane in which the points vary most (principal components, Pearson
1901).
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def unit_rows(vectors_VE: Array) -> Array:
    """Return every vector at length 1; one of length 0 stays."""
    lengths_V1 = np.linalg.norm(vectors_VE, axis=1, keepdims=True)
    return vectors_VE / np.where(lengths_V1 > 0, lengths_V1, 1.0)


def neighbours(vectors_VE: Array, rows_Q: Array, count: int, hidden: int = 0) -> tuple[Array, Array]:
    """Return ``near_QK``, ``cosine_QK`` of the nearest others, nearest first; never the first ``hidden``."""
    unit_VE = unit_rows(vectors_VE)
    cosine_QV = unit_VE[rows_Q] @ unit_VE.T
    cosine_QV[:, :hidden] = -np.inf
    cosine_QV[np.arange(len(rows_Q)), rows_Q] = -np.inf
    count = max(0, min(count, len(vectors_VE) - hidden - 1))
    near_QK = np.argsort(-cosine_QV, axis=1, kind="stable")[:, :count]
    return near_QK, np.take_along_axis(cosine_QV, near_QK, axis=1)


def plane(vectors_VE: Array) -> tuple[Array, Array, Array]:
    """Return ``mean_E``, ``axes_E2`` and each axis's share of variance: the map is (x - mean) axes."""
    mean_E = vectors_VE.mean(axis=0)
    _, sizes, axes = np.linalg.svd(vectors_VE - mean_E, full_matrices=False)
    axes_E2 = np.zeros((vectors_VE.shape[1], 2))
    axes_E2[:, : len(axes[:2])] = axes[:2].T
    signs = np.sign(axes_E2[np.argmax(np.abs(axes_E2), axis=0), [0, 1]])
    shares = np.zeros(2)
    total = float((sizes**2).sum())
    if total > 0:
        shares[: len(sizes[:2])] = sizes[:2] ** 2 / total
    return mean_E, axes_E2 * np.where(signs == 0, 1.0, signs), shares
