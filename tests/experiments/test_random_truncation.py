"""Random truncation: its expected gradient, and the places at which the running mean is looked at."""

from __future__ import annotations

import numpy as np
import pytest

from nextword.experiments import derivations as by
from nextword.experiments.random_truncation import expected, places


def test_the_running_mean_is_looked_at_in_rounded_steps():
    assert places(40) == [1, 2, 5, 10, 20, 40]
    assert places(100) == [1, 2, 5, 10, 20, 50, 100]


@pytest.mark.parametrize("factor", [1 / 0.8, 0.8])
def test_the_expected_gradient_is_the_mean_of_many_draws(factor):
    example = by.random_example(hidden=3, words=4, length=5, seed=1, gain=1.0)
    drawn = by.at_random(example, 0.8, factor, 40_000, np.random.default_rng(0))
    error = drawn.std(axis=0) / len(drawn) ** 0.5
    assert (np.abs(drawn.mean(axis=0) - expected(example, 0.8 * factor)) < 5 * error + 1e-12).all()


def test_the_expected_gradient_is_the_full_one_where_the_mean_factor_is_1():
    example = by.random_example(hidden=3, words=4, length=5, seed=1, gain=1.0)
    assert np.allclose(expected(example, 1.0), by.by_backpropagation(example))
