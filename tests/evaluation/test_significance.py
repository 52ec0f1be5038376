"""Is one model better than another: by hand, by tables, and where nothing differs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nextword.evaluation.significance import against, holm, interval, sign_flips, spread, student, welch


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-10, 10), min_size=1, max_size=8))
def test_sign_flips_are_the_share_of_all_signs_that_reach_as_far(differences):
    found = abs(sum(differences))
    sums = [abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
            for signs in itertools.product((1, -1), repeat=len(differences))]  # fmt: skip
    assert sign_flips(differences) == sum(each >= found for each in sums) / len(sums)


def test_sign_flips_by_hand():
    # |1 + 2 + 3| = 6 is reached by +++ and --- alone: 2 of 8
    assert sign_flips([1, 2, 3]) == 0.25
    assert sign_flips([5, 4, 6, 5]) == 0.125


def test_drawn_signs_agree_with_all_signs():
    differences = np.random.default_rng(3).normal(0.4, 1, 14)
    signs = np.array(list(itertools.product((1, -1), repeat=14)))
    expected = np.mean(np.abs(signs @ differences) >= abs(differences.sum()) - 1e-9)
    assert sign_flips(differences, rounds=20_000) == pytest.approx(expected, abs=0.015)


def test_models_that_are_alike_are_rarely_told_apart():
    rng = np.random.default_rng(1)
    values = [sign_flips(rng.normal(0, 1, 30), rounds=500) for _ in range(200)]
    assert sum(value < 0.05 for value in values) <= 20  # 10 expected; 20 is three sigmas
    assert min(values) < 0.1


@pytest.mark.parametrize(
    ("t", "freedom", "p"),
    [(12.706, 1, 0.05), (4.303, 2, 0.05), (2.776, 4, 0.05), (2.228, 10, 0.05), (3.169, 10, 0.01),
     (1.960, 1e6, 0.05), (0.0, 3, 1.0), (636.619, 1, 0.001)],
)  # fmt: skip
def test_students_distribution_is_that_of_the_tables(t, freedom, p):
    assert student(t, freedom) == pytest.approx(p, rel=2e-3)


def test_student_with_two_degrees_of_freedom_has_a_closed_form():
    for t in (0.3, 1.0, 5.0, 40.0):
        assert student(t, 2) == pytest.approx(1 - t / math.sqrt(2 + t * t), rel=1e-9)


def test_welch_by_hand():
    # means 2 and 5, variances 1 and 1, three seeds each: t = 3 / sqrt(2/3), 4 degrees of freedom
    assert welch([1, 2, 3], [4, 5, 6]) == pytest.approx(student(3 / math.sqrt(2 / 3), 4))
    # against one number that would come again: t = 3 / sqrt(1/3), 2 degrees of freedom
    assert welch([1, 2, 3], [5]) == pytest.approx(student(3 / math.sqrt(1 / 3), 2))
    assert welch([1], [2]) is None
    assert welch([1, 1], [2]) is None


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_the_interval_holds_the_difference_and_narrows_with_more_text():
    rng = np.random.default_rng(0)
    wide = interval(rng.normal(1, 1, 25), np.ones(25))
    narrow = interval(rng.normal(1, 1, 400), np.ones(400))
    assert wide[0] < 1 < wide[1]
    assert narrow[1] - narrow[0] < (wide[1] - wide[0]) / 2


def test_a_difference_must_show_in_the_text_and_in_the_seeds():
    rng = np.random.default_rng(2)
    text = rng.normal(100, 10, 50)
    sizes = np.full(50, 40.0)
    better = [text + rng.normal(0, 0.1, 50) for _ in range(3)]
    worse = [row + 1 for row in better]
    found = against(worse, better, sizes)
    assert found.behind == pytest.approx(1 / 40)
    assert found.low <= found.behind <= found.high
    assert found.p < 0.001
    # the same mean distance, but seeds that scatter as much
    lucky = [better[0] + shift for shift in (-3, 1, 5)]
    found = against(lucky, better, sizes)
    assert found.p_text < 0.001
    assert found.p > 0.2
    assert against(better[:1], better[:1], sizes).p == 1.0


def test_spread_is_the_standard_deviation_of_a_sample():
    assert spread([1.0, 3.0]) == pytest.approx(math.sqrt(2))
    assert spread([1.0]) is None
