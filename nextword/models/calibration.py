"""Probabilities that mean what they say: a temperature, and thresholds where there are several labels.

p = softmax(z / T) with T fitted on held-out texts (Guo et al. 2017); of several labels those above a
threshold are predicted, which is chosen for each label by its F1 on held-out texts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nextword.core.errors import DamagedError
from nextword.store.reading import RunFolder
from nextword.store.writing import NewRun

FILE = "calibration.json"
Floats = npt.NDArray[np.float64]
# Up to 1000: a language model of each label adds the evidence of all words, as if they were independent.
_COLDEST, _HOTTEST, _TRIED = 0.05, 1000.0, 24
_SMALL = 1e-12


@dataclass(frozen=True)
class Calibration:
    """The temperature, and a threshold for each label where a text may have several."""

    temperature: float = 1.0
    thresholds: tuple[float, ...] = ()

    def probabilities(self, logits_NK: npt.NDArray[Any], several: bool) -> Floats:
        """Return the probability of each label."""
        z_NK = np.asarray(logits_NK, np.float64) / self.temperature
        if several:
            return np.asarray(1 / (1 + np.exp(-np.clip(z_NK, -500, 500))), np.float64)
        z_NK = z_NK - z_NK.max(axis=1, keepdims=True)
        exp_NK = np.exp(z_NK)
        return np.asarray(exp_NK / exp_NK.sum(axis=1, keepdims=True), np.float64)

    def chosen(self, p_NK: Floats) -> npt.NDArray[np.bool_]:
        """Return which labels are predicted where there may be several."""
        thresholds_K = np.asarray(self.thresholds) if self.thresholds else np.full(p_NK.shape[1], 0.5)
        return p_NK >= thresholds_K

    def save(self, folder: NewRun) -> None:
        """Write ``calibration.json``."""
        folder.write(FILE, json.dumps({"temperature": self.temperature, "thresholds": list(self.thresholds)}))

    @classmethod
    def load(cls, folder: RunFolder) -> Calibration:
        """Read it back; a run without one is not calibrated."""
        if FILE not in folder:
            return cls()
        try:
            value = folder.read_json(FILE)
            return cls(float(value["temperature"]), tuple(map(float, value["thresholds"])))
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedError(f"{folder.path / FILE} is damaged ({error}); train the run again") from error


def fit(logits_NK: npt.NDArray[Any], targets: npt.NDArray[Any], several: bool) -> Calibration:
    """Fit the temperature by likelihood, and the thresholds by F1, on held-out texts."""
    best = Calibration(_temperature(logits_NK, targets, several))
    if not several:
        return best
    p_NK = best.probabilities(logits_NK, several=True)
    return Calibration(
        best.temperature, tuple(_threshold(p_NK[:, k], targets[:, k]) for k in range(p_NK.shape[1]))
    )


def _temperature(logits_NK: npt.NDArray[Any], targets: npt.NDArray[Any], several: bool) -> float:
    """Return the most likely temperature: a coarse search, then a finer one around the best so far."""
    low, high, best = np.log(_COLDEST), np.log(_HOTTEST), 1.0
    for _ in range(3):
        tried = np.exp(np.linspace(low, high, _TRIED))
        costs = [nats(logits_NK, targets, several, Calibration(float(each))) for each in tried]
        at = int(np.argmin(costs))
        best = float(tried[at])
        low, high = np.log(tried[max(0, at - 1)]), np.log(tried[min(_TRIED - 1, at + 1)])
    return best


def nats(logits_NK: npt.NDArray[Any], targets: npt.NDArray[Any], several: bool, how: Calibration) -> float:
    """Return the mean of -log p of the true labels."""
    p_NK = how.probabilities(logits_NK, several)
    if several:
        return float(-(_log(p_NK) * targets + _log(1 - p_NK) * (1 - targets)).mean())
    known = targets >= 0
    return float(-_log(p_NK[known, targets[known]]).mean()) if known.any() else 0.0


def _log(p: Floats) -> Floats:
    """Return log p, of 0 that of a small number."""
    return np.asarray(np.log(np.maximum(p, _SMALL)), np.float64)


def _threshold(p_N: Floats, is_N: npt.NDArray[Any]) -> float:
    """Return the threshold with the best F1; 0.5 where held-out texts have too few of the label."""
    if is_N.sum() < 2:
        return 0.5
    order = np.argsort(-p_N, kind="stable")
    right = np.cumsum(is_N[order])
    f1 = 2 * right / (np.arange(1, len(p_N) + 1) + is_N.sum())
    at = int(np.argmax(f1))
    below = p_N[order[at + 1]] if at + 1 < len(p_N) else 0.0
    return float(np.clip((p_N[order[at]] + below) / 2, 0.05, 0.95))


def expected_error(
    p_NK: Floats, targets_N: npt.NDArray[Any], bins: int = 10
) -> tuple[float, list[dict[str, float]]]:
    """Return the expected calibration error, and the points of the reliability diagram."""
    confidence_N, is_right_N = p_NK.max(axis=1), p_NK.argmax(axis=1) == targets_N
    at_N = np.minimum((confidence_N * bins).astype(int), bins - 1)
    points = []
    error = 0.0
    for bin_ in range(bins):
        inside = at_N == bin_
        if inside.any():
            confidence, accuracy = float(confidence_N[inside].mean()), float(is_right_N[inside].mean())
            error += abs(confidence - accuracy) * float(inside.mean())
            points.append({"confidence": confidence, "accuracy": accuracy, "texts": int(inside.sum())})
    return error, points
