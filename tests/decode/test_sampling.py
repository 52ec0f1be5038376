"""Sampling: what each adjustment keeps, and that the draw follows the distribution."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from nextword.core.contracts import END
from nextword.decode.sampling import (
    draw,
    draw_added,
    min_p,
    temperature,
    top_k,
    top_p,
    typical,
    uniform,
)
from nextword.models.distributions import normalise

shapes = st.tuples(st.integers(1, 4), st.integers(2, 30))
rows = hnp.arrays(np.float64, shapes, elements=st.floats(-30, 0)).map(normalise)


def kept(logp):
    return np.isfinite(logp)


@given(logp=rows, k=st.integers(1, 40))
def test_top_k_keeps_exactly_k_words_and_none_is_less_likely_than_one_left_out(logp, k):
    after = top_k(logp, k)
    k = min(k, logp.shape[1])
    assert (kept(after).sum(axis=1) == k).all()
    assert np.allclose(np.exp(after).sum(axis=1), 1)
    for before, mask in zip(logp, kept(after), strict=True):
        assert mask.all() or before[mask].min() >= before[~mask].max()


@given(logp=rows, mass=st.floats(0.01, 1))
def test_top_p_keeps_the_smallest_set_that_has_the_mass(logp, mass):
    for before, mask in zip(logp, kept(top_p(logp, mass)), strict=True):
        p = np.exp(before)
        assert p[mask].sum() >= mass - 1e-9
        assert mask.sum() == 1 or p[mask].sum() - p[mask].min() < mass + 1e-9
        assert mask.all() or before[mask].min() >= before[~mask].max()


@given(logp=rows, share=st.floats(0.001, 1))
def test_min_p_keeps_words_with_their_share_of_the_best(logp, share):
    p = np.exp(logp)
    edge = np.abs(p - share * p.max(axis=1, keepdims=True)) < 1e-12
    assert ((kept(min_p(logp, share)) == (p >= share * p.max(axis=1, keepdims=True))) | edge).all()


@given(logp=rows, mass=st.floats(0.01, 0.99))
def test_typical_keeps_the_words_nearest_the_entropy(logp, mass):
    for before, mask in zip(logp, kept(typical(logp, mass)), strict=True):
        p = np.exp(before)
        distance = np.abs(-before + (p * before).sum())
        assert p[mask].sum() >= mass - 1e-9
        assert mask.all() or distance[mask].max() <= distance[~mask].min() + 1e-12


@given(logp=rows)
def test_every_adjustment_leaves_distributions(logp):
    heated = (temperature(logp, 0.3), temperature(logp, 0))
    for after in (*heated, top_p(logp, 0.5), min_p(logp, 1.0), typical(logp, 0.2)):
        assert np.allclose(np.exp(after).sum(axis=1), 1)


def test_temperature_is_a_power_and_zero_is_the_peak():
    p = np.array([[0.5, 0.3, 0.2]])
    assert np.allclose(np.exp(temperature(np.log(p), 0.5)), p**2 / (p**2).sum())
    assert np.array_equal(np.exp(temperature(np.log(p), 0)), [[1, 0, 0]])


def test_neutral_values_change_nothing():
    logp = normalise(np.random.default_rng(0).normal(size=(3, 9)))
    for after in (temperature(logp, 1), top_k(logp, 0), top_p(logp, 1), min_p(logp, 0), typical(logp, 1)):
        assert after is logp


def draw_with_all_sums(logp_BV, uniform_B):
    """The plain twin: sums over all tokens before each one."""
    p_BV = np.exp(logp_BV - logp_BV.max(axis=-1, keepdims=True)).astype(np.float64)
    ends_BV = np.cumsum(p_BV, axis=-1)
    pairs = zip(ends_BV, uniform_B * ends_BV[:, -1], strict=True)
    drawn = [np.searchsorted(ends_V, point, side="right") for ends_V, point in pairs]
    return np.minimum(drawn, [np.flatnonzero(p_V)[-1] for p_V in p_BV])


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("V", [1, 2, 3, 5, 8, 50, 2003])
def test_drawing_by_blocks_is_drawing_with_all_sums(V, kind):
    rng = np.random.default_rng(V)
    logp_BV = (3 * rng.normal(size=(64, V))).astype(kind)
    logp_BV[rng.random((64, V)) < 0.5] = -np.inf
    logp_BV[:, rng.integers(V)] = 0.0
    for uniform_B in (rng.random(64), np.zeros(64), np.full(64, 1 - 2.0**-53)):
        found_B = draw(logp_BV, uniform_B)
        assert (found_B == draw_with_all_sums(logp_BV, uniform_B)).all()
        assert np.isfinite(logp_BV[np.arange(64), found_B]).all()
        alone = [draw(logp_BV[row : row + 1], uniform_B[row : row + 1])[0] for row in range(64)]
        assert found_B.tolist() == alone


def test_draw_agrees_with_the_distribution_by_chi_square():
    logp = normalise(np.random.default_rng(1).normal(size=(1, 20)) * 2)
    draws = 100_000
    numbers = np.random.default_rng(2).random(draws)
    counts = np.bincount(draw(np.repeat(logp, draws, axis=0), numbers), minlength=20)
    expected = np.exp(logp[0]) * draws
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert chi_square < 43.8  # 19 degrees of freedom, p = 0.001


def test_counter_based_numbers_are_uniform_and_independent_of_each_other():
    numbers = np.array([[uniform(7, sample, place) for place in range(100)] for sample in range(100)])
    counts, _ = np.histogram(numbers, bins=20, range=(0, 1))
    assert ((counts - 500) ** 2 / 500).sum() < 43.8
    assert len(np.unique(numbers)) == 10_000
    assert abs(np.corrcoef(numbers[:, 0], numbers[:, 1])[0, 1]) < 0.35


def test_draw_never_takes_a_word_of_probability_zero():
    logp = np.log([[0.5, 1e-300, 0.5]])
    logp[0, 1] = -np.inf
    for number in (0.0, 0.5, 1 - 2**-53):
        assert draw(logp, [number])[0] in (0, 2)
    assert draw(np.array([[-np.inf, 0.0, -np.inf]]), [1 - 2**-53])[0] == 1


@pytest.mark.parametrize("size", [7, 1000, 30_001])
def test_adjusted_rows_are_bit_equal_in_any_batch(size):
    logp = normalise(np.random.default_rng(3).normal(size=(5, size)))
    for adjust in (
        lambda x: temperature(x, 0.7),
        lambda x: top_k(x, 5),
        lambda x: top_p(x, 0.9),
        lambda x: typical(x, 0.9),
        normalise,
    ):
        together = adjust(logp)
        assert all(np.array_equal(adjust(logp[row : row + 1])[0], together[row]) for row in range(5))


@pytest.mark.parametrize("mass", [0.05, 0.5, 0.9, 0.999, 0.9999999])
@pytest.mark.parametrize("adjust", [top_p, typical])
def test_large_vocabularies_are_cut_as_a_full_sort_would(mass, adjust):
    logp = normalise(np.round(np.random.default_rng(5).normal(size=(1, 20_000)) * 3, 1))  # many equals
    badness = -logp if adjust is top_p else np.abs(-logp + (np.exp(logp) * logp).sum())
    order = np.argsort(badness[0], kind="stable")
    p = np.exp(logp[0][order])
    expected = np.sort(order[np.cumsum(p) - p < mass * p.sum()])
    assert len(set(expected) ^ set(np.flatnonzero(kept(adjust(logp, mass))[0]))) <= 1


@pytest.mark.parametrize("V", [1, 2, 127, 128, 129, 2000])
def test_the_compiled_draw_is_the_plain_one(V):
    random = np.random.default_rng(V)
    logp_RV = normalise(random.normal(size=(50, V)) * 3).astype(np.float32)
    added_V = np.where(random.random(V) < 0.1, -np.inf, random.choice([0.0, 1.5, -3.0], size=V))
    added_V[0] = 0.0  # at least one token is possible
    uniform_R = random.random(50)
    uniform_R[:3] = 0.0, 1 - 2.0**-53, 0.5
    allowed_RV = logp_RV + added_V.astype(np.float32)
    words_R = draw_added(logp_RV, added_V, uniform_R)
    # A number that falls between two tokens to the last digit may be either's.
    p_RV = np.exp(allowed_RV.astype(np.float64))
    ends_RV = np.cumsum(p_RV, axis=-1) / p_RV.sum(axis=-1, keepdims=True)
    rows_R = np.arange(50)
    assert (p_RV[rows_R, words_R] > 0).all()
    assert (ends_RV[rows_R, words_R] > uniform_R - 1e-6).all()
    assert (ends_RV[rows_R, words_R] - p_RV[rows_R, words_R] / p_RV.sum(axis=-1) < uniform_R + 1e-6).all()
    assert np.mean(words_R == draw(allowed_RV, uniform_R)) >= 0.96


def test_the_compiled_draw_of_a_row_does_not_depend_on_the_others():
    random = np.random.default_rng(0)
    logp_RV = normalise(random.normal(size=(64, 700)) * 2).astype(np.float32)
    added_V, uniform_R = np.zeros(700), random.random(64)
    together = draw_added(logp_RV, added_V, uniform_R)
    alone = [int(draw_added(logp_RV[r : r + 1], added_V, uniform_R[r : r + 1])[0]) for r in range(64)]
    assert together.tolist() == alone


def test_the_compiled_draw_keeps_its_precision_where_nearly_everything_is_taken_away():
    logp_RV = normalise(np.zeros((3, 300))).astype(np.float32)
    added_V = np.full(300, -np.inf)
    added_V[[7, 8]] = -100.0, -100.0  # e^-100 is 0 in float32
    assert draw_added(logp_RV, added_V, [0.1, 0.6, 0.9999]).tolist() == [7, 8, 8]
    added_V[8] = 90.0
    assert draw_added(logp_RV, added_V, [0.1, 0.6, 0.9999]).tolist() == [8, 8, 8]


def test_the_compiled_draw_ends_a_row_without_a_possible_token():
    logp_RV = normalise(np.zeros((2, 5))).astype(np.float32)
    assert draw_added(logp_RV, np.full(5, -np.inf), [0.3, 0.6]).tolist() == [END, END]
