"""Is one model better than another: by hand, by tables, and where nothing differs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nextword.evaluation.significance import (
    SEEDS,
    against,
    holm,
    sign_flips,
    spread,
    student,
    student_quantile,
    welch,
)


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


def simulated(rng, behind, seeds, between_seeds, blocks=40):
    """Two models on one text: what blocks cost differs, and so does every seed."""
    sizes = rng.uniform(50, 150, blocks)
    text, apart = rng.normal(2, 0.3, blocks), rng.normal(0, 0.05, blocks)
    models = []
    for mean in (text + apart + behind, text):
        shifts = rng.normal(0, between_seeds, (seeds, 1)) if seeds > 1 else np.zeros((1, 1))
        models.append(sizes * (mean + shifts + rng.normal(0, 0.02, (len(shifts), blocks))))
    return against(*models, sizes, rounds=300)


@pytest.mark.parametrize(("seeds", "between_seeds"), [(1, 0.0), (SEEDS, 0.03), (SEEDS, 0.3), (6, 0.1)])
def test_intervals_hold_the_truth_as_often_as_they_say(seeds, between_seeds):
    rng = np.random.default_rng(5)
    found = [simulated(rng, 0.1, seeds, between_seeds) for _ in range(300)]
    covered = np.mean([test.low <= 0.1 <= test.high for test in found])
    assert covered >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / 300)


@pytest.mark.parametrize(("seeds", "between_seeds"), [(1, 0.0), (SEEDS, 0.03), (SEEDS, 0.3)])
def test_equal_models_are_rarely_told_apart(seeds, between_seeds):
    rng = np.random.default_rng(6)
    values = [simulated(rng, 0.0, seeds, between_seeds).p for _ in range(300)]
    assert np.mean(np.array(values) < 0.05) <= 0.05 + 3 * math.sqrt(0.95 * 0.05 / 300)
    assert min(values) < 0.2  # and yet it can tell


@pytest.mark.parametrize(("seeds", "between_seeds"), [(1, 0.0), (SEEDS, 0.1), (8, 0.1)])
def test_a_detectable_difference_is_found_about_as_often_as_it_says(seeds, between_seeds):
    rng = np.random.default_rng(7)
    typical = np.median([simulated(rng, 0.0, seeds, between_seeds).detectable for _ in range(50)])
    found = [simulated(rng, float(typical), seeds, between_seeds).p < 0.05 for _ in range(150)]
    assert 0.65 <= np.mean(found) <= 0.95


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 4), st.integers(1, 4), st.integers(2, 12), st.integers(0, 1000), st.floats(-3, 3),
)  # fmt: skip
def test_interval_p_and_difference_agree(seeds, other_seeds, blocks, seed, behind):
    rng = np.random.default_rng(seed)
    sizes = rng.uniform(1, 3, blocks)
    found = against(
        rng.normal(behind, 1, (seeds, blocks)), rng.normal(0, 1, (other_seeds, blocks)), sizes, rounds=50
    )
    assert found.low <= found.behind <= found.high
    assert (found.p < 0.05) == (found.low > 0 or found.high < 0)
    assert found.detectable > found.high - found.behind > 0


def test_the_result_does_not_depend_on_the_call_and_narrows_with_more_text():
    rng = np.random.default_rng(0)
    wide, narrow = (
        against(rng.normal(1, 1, (1, blocks)), np.zeros((1, blocks)), np.ones(blocks)) for blocks in (25, 400)
    )
    assert narrow.high - narrow.low < (wide.high - wide.low) / 2
    assert narrow.detectable < wide.detectable / 2
    costs = rng.normal(1, 1, (3, 30))
    assert against(costs, costs[:2], np.ones(30)) == against(costs, costs[:2], np.ones(30))


def test_the_error_is_that_of_seeds_and_text():
    # three seeds that differ by 1, blocks that differ by chance alone: the variance of a mean of three seeds
    costs = np.array([[1.0] * 50, [2.0] * 50, [3.0] * 50])
    found = against(costs, [[0.0] * 50], np.ones(50))
    error = math.sqrt(1 / 3)
    assert found.behind == pytest.approx(2)
    assert found.high - found.behind == pytest.approx(student_quantile(0.975, 2) * error, rel=0.05)
    # one seed, and blocks of 0 and 2: the variance of a mean of 50
    found = against([[0.0, 2.0] * 25], [[0.0] * 50], np.ones(50))
    error = math.sqrt(50 / 49 / 50)
    assert found.high - found.behind == pytest.approx(student_quantile(0.975, 49) * error, rel=0.05)


def test_a_difference_must_show_in_the_text_and_in_the_seeds():
    rng = np.random.default_rng(2)
    text = rng.normal(100, 10, 50)
    sizes = np.full(50, 40.0)
    better = [text + rng.normal(0, 0.1, 50) for _ in range(3)]
    worse = [row + 1 for row in better]
    found = against(worse, better, sizes)
    assert found.behind == pytest.approx(1 / 40)
    assert found.p < 0.001
    # the same mean distance, but seeds that scatter as much
    lucky = [better[0] + shift for shift in (-3, 1, 5)]
    assert against(lucky[1:2], better, sizes).p < 0.001
    assert against(lucky, better, sizes).p > 0.2
    assert against(better[:1], better[:1], sizes).p == 1.0
    assert against(better[:1], better[:1], sizes).detectable == 0.0


def test_one_block_tells_nothing():
    found = against([[3.0]], [[1.0]], [1.0])
    assert (found.behind, found.p, found.detectable) == (2.0, 1.0, math.inf)


@pytest.mark.parametrize(
    ("share", "freedom", "t"),
    [(0.975, 1, 12.706), (0.975, 2, 4.303), (0.975, 10, 2.228), (0.8, 4, 0.941), (0.975, 1e6, 1.960)],
)
def test_quantiles_are_those_of_the_tables(share, freedom, t):
    assert student_quantile(share, freedom) == pytest.approx(t, rel=1e-3)


def test_spread_is_the_standard_deviation_of_a_sample():
    assert spread([1.0, 3.0]) == pytest.approx(math.sqrt(2))
    assert spread([1.0]) is None


def test_models_that_are_right_everywhere_do_not_differ():
    right = [[-1.0] * 7] * 2
    found = against(right, right, [1.0] * 7)
    assert (found.behind, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)
