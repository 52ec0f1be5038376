"""The compiled loops of the linear classifier: stochastic gradient descent, text by text, in one thread.

z = b + Σ_f w_f / √n over the n distinct features of a text; with vectors, z = b + W Σ_f v_f / n (Joulin et
al. 2017). The gradient of -log p is (p - y), whether p is a softmax or one sigmoid for each label.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nextword.system.compiled import compiled

Array = np.ndarray[Any, np.dtype[Any]]


@compiled(nogil=True)
def _errors(z_K: Array, labels: Array, several: bool, error_K: Array) -> None:
    """Put y - p into ``error_K``."""
    if several:
        for k in range(len(z_K)):
            error_K[k] = -1.0 / (1.0 + np.exp(-z_K[k]))
    else:
        most, total = z_K.max(), 0.0
        for k in range(len(z_K)):
            error_K[k] = np.exp(z_K[k] - most)
            total += error_K[k]
        for k in range(len(z_K)):
            error_K[k] = -error_K[k] / total
    for label in labels:
        error_K[label] += 1.0


@compiled(nogil=True)
def learn_weights(
    ids: Array,
    bounds: Array,
    labels: Array,
    label_bounds: Array,
    order: Array,
    weights_FK: Array,
    steps_FK: Array,
    bias_K: Array,
    rates: tuple[float, float],
    several: bool,
) -> None:
    """Read the texts in this order; the rate falls linearly from the first to the second.

    ``steps_FK`` scales the steps of the weights, with one column those of all labels alike; an empty one
    scales nothing.
    """
    labels_K = len(bias_K)
    z_K, error_K = np.zeros(labels_K), np.zeros(labels_K)
    scaled, alike = len(steps_FK) > 0, steps_FK.shape[1] == 1
    for number in range(len(order)):
        text = order[number]
        begin, stop = bounds[text], bounds[text + 1]
        rate = rates[0] + (rates[1] - rates[0]) * number / len(order)
        x = 1.0 / np.sqrt(max(1, stop - begin))
        z_K[:] = 0.0
        for at in range(begin, stop):
            feature = ids[at]
            for k in range(labels_K):
                z_K[k] += weights_FK[feature, k]
        for k in range(labels_K):
            z_K[k] = bias_K[k] + x * z_K[k]
        _errors(z_K, labels[label_bounds[text] : label_bounds[text + 1]], several, error_K)
        for k in range(labels_K):
            bias_K[k] += 0.1 * rate * error_K[k]
            error_K[k] *= rate * x
        if scaled and alike:
            for at in range(begin, stop):
                feature = ids[at]
                step = steps_FK[feature, 0]
                for k in range(labels_K):
                    weights_FK[feature, k] += error_K[k] * step
        elif scaled:
            for at in range(begin, stop):
                feature = ids[at]
                for k in range(labels_K):
                    weights_FK[feature, k] += error_K[k] * steps_FK[feature, k]
        else:
            for at in range(begin, stop):
                feature = ids[at]
                for k in range(labels_K):
                    weights_FK[feature, k] += error_K[k]


@compiled(nogil=True)
def learn_vectors(
    ids: Array,
    bounds: Array,
    labels: Array,
    label_bounds: Array,
    order: Array,
    vectors_FD: Array,
    weights_KD: Array,
    bias_K: Array,
    rates: tuple[float, float],
    several: bool,
) -> None:
    """Read the texts in this order, with an averaged vector between features and labels."""
    labels_K, width = weights_KD.shape
    z_K, error_K = np.zeros(labels_K), np.zeros(labels_K)
    mean_D, back_D = np.zeros(width, np.float32), np.zeros(width, np.float32)
    for number in range(len(order)):
        text = order[number]
        begin, stop = bounds[text], bounds[text + 1]
        rate = rates[0] + (rates[1] - rates[0]) * number / len(order)
        x = np.float32(1.0 / max(1, stop - begin))
        mean_D[:] = 0.0
        for at in range(begin, stop):
            feature = ids[at]
            for d in range(width):
                mean_D[d] += vectors_FD[feature, d]
        for d in range(width):
            mean_D[d] *= x
            back_D[d] = 0.0
        for k in range(labels_K):
            total = np.float32(0.0)
            for d in range(width):
                total += weights_KD[k, d] * mean_D[d]
            z_K[k] = bias_K[k] + total
        _errors(z_K, labels[label_bounds[text] : label_bounds[text + 1]], several, error_K)
        for k in range(labels_K):
            step = np.float32(rate * error_K[k])
            bias_K[k] += step
            for d in range(width):
                back_D[d] += step * weights_KD[k, d]
                weights_KD[k, d] += step * mean_D[d]
        for d in range(width):
            back_D[d] *= x
        for at in range(begin, stop):
            feature = ids[at]
            for d in range(width):
                vectors_FD[feature, d] += back_D[d]


@compiled(nogil=True)
def summed(ids: Array, bounds: Array, rows_FD: Array, power: float) -> Any:
    """Return Σ_f rows_f / n^power for each text."""
    found_ND = np.zeros((len(bounds) - 1, rows_FD.shape[1]), np.float32)
    for text in range(len(found_ND)):
        begin, stop = bounds[text], bounds[text + 1]
        for at in range(begin, stop):
            for d in range(rows_FD.shape[1]):
                found_ND[text, d] += rows_FD[ids[at], d]
        x = np.float32(1.0 / max(1, stop - begin) ** power)
        for d in range(rows_FD.shape[1]):
            found_ND[text, d] *= x
    return found_ND


@compiled(nogil=True)
def count(ids: Array, bounds: Array, labels: Array, label_bounds: Array, counts_FK: Array) -> None:
    """Count the texts that have both a feature and a label."""
    for text in range(len(bounds) - 1):
        for label in labels[label_bounds[text] : label_bounds[text + 1]]:
            for at in range(bounds[text], bounds[text + 1]):
                counts_FK[ids[at], label] += 1.0
