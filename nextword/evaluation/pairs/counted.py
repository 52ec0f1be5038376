"""A measure of a corpus as a function of counts that its sentences add up to, so that it can be resampled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Counted:
    """The counts of each sentence, and the measure of summed counts, row by row."""

    counts_NC: Floats
    of: Callable[[Floats], Floats]
    higher: bool = True  # whether more of it is better

    @property
    def value(self) -> float:
        """The measure of the whole corpus."""
        return float(self.of(self.counts_NC.sum(axis=0, keepdims=True))[0])

    def each(self) -> Floats:
        """Return the measure of each sentence alone."""
        return self.of(self.counts_NC)


def ratio(totals_R2: Floats) -> Floats:
    """Return the first count divided by the second; 0 where there is nothing to divide by."""
    found: Floats = totals_R2[:, 0] / np.where(totals_R2[:, 1] > 0, totals_R2[:, 1], 1)
    return found


def f1(totals_R3: Floats) -> Floats:
    """Return F1 of what is right, what was written and what there is: 2 right / (written + there)."""
    below_R = totals_R3[:, 1] + totals_R3[:, 2]
    found: Floats = 2 * totals_R3[:, 0] / np.where(below_R > 0, below_R, 1)
    return found


def mean(values: list[float]) -> Counted:
    """Return the mean of one number a sentence."""
    values_N = np.array(values, dtype=np.float64)
    return Counted(np.stack([values_N, np.ones_like(values_N)], axis=1), ratio)
