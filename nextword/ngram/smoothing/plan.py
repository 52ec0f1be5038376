"""A smoothing as the kernels compute it: a few numbers per order, the same for every context.

u(w | c) = (n - D(n)) / (n(c) + kinds T(c) + extra), gamma(c) = the rest, p = u + gamma p_below.
Only `katz`, whose weights depend on the shorter contexts, does not have this form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from nextword.ngram.arrays import Fallback
from nextword.ngram.settings import NgramSettings

Array = np.ndarray[Any, np.dtype[Any]]
NO_DISCOUNT = np.zeros(4)
ENDLESS = 1e300  # stands for an eps of infinity, where inf / inf would be NaN


@dataclass(frozen=True)
class Plan:
    """Everything the kernels need besides the counts."""

    unigrams: Array  # p of every token without context
    discounts: list[Array]  # D(0), D(1), D(2), D(3+) of each order
    extra: list[float]  # per order: added to every context's total, for the distribution below
    fallback: Fallback
    kinds: float = 0.0  # 1: every distinct token after a context adds one to its total (Witten-Bell)
    below: Array | None = None  # the distribution every order mixes in; None: the shorter context's
    weight: float | None = None  # stored as backoff weight; None: gamma
    adjusted: bool = False  # lower orders count distinct left neighbours
    is_probability: bool = True
    notes: list[str] = field(default_factory=list)


@runtime_checkable
class Planned(Protocol):
    """A smoothing that the kernels can compute."""

    adjusted: bool

    def plan(
        self, counts_V: Array, n_r: Callable[[int], Array], settings: NgramSettings, predictable_V: Array
    ) -> Plan:
        """Return the plan, given the unigrams' counts and the counts of counts of any order."""
        ...
