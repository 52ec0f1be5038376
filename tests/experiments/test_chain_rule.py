"""Four derivations of backpropagation through time equal autograd to 1e-10, and blanks check themselves."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nextword.core.errors import ConfigError
from nextword.experiments import chain_rule
from nextword.experiments import derivations as by
from nextword.experiments.blanks import Blank

EXAMPLES = st.builds(
    by.random_example,
    hidden=st.integers(1, 6), words=st.integers(2, 6), length=st.integers(1, 9), seed=st.integers(0, 9999),
    gain=st.sampled_from([0.3, 1.0, 2.0]),
)  # fmt: skip


def close(ours, theirs):
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max() <= 1e-10


@given(EXAMPLES)
def test_manual_backpropagation_through_time_equals_autograd(example):
    close(by.by_backpropagation(example), by.by_autograd(example)[0])


@given(EXAMPLES)
def test_the_sum_over_appearances_equals_autograd(example):
    close(by.by_appearance(example).sum(axis=0), by.by_autograd(example)[0])


@given(EXAMPLES)
def test_each_appearance_equals_autograd_of_a_weight_of_its_own(example):
    close(by.by_appearance(example), by.by_autograd(example)[1])


@given(EXAMPLES)
def test_the_sum_over_states_equals_autograd(example):
    close(by.by_states(example), by.by_autograd(example)[0])


@given(EXAMPLES)
def test_forward_mode_equals_autograd(example):
    close(by.by_forward_mode(example), by.by_autograd(example)[0])


def test_the_kronecker_product_has_the_shape_that_the_sum_needs_and_the_printed_one_has_not():
    example = by.random_example(hidden=3, words=4, length=2, seed=0)
    h_SH = by.states(example)
    assert by.direct_slope(h_SH[2], h_SH[1]).shape == (3, 9)
    assert np.kron(h_SH[1][:, None], np.eye(3)).shape == (9, 3)  # h ⊗ I, as the slide prints it


def test_a_truncated_gradient_begins_at_the_last_steps_and_is_full_where_it_is_long_enough():
    example = by.random_example(hidden=4, words=5, length=6, seed=2)
    close(by.truncated(example, 6), by.by_backpropagation(example))
    close(by.truncated(example, 1), by.by_appearance(example)[-1])


def test_random_truncation_is_unbiased_with_the_corrected_factor_only():
    example = by.random_example(hidden=4, words=5, length=6, seed=2)
    full, rng = by.by_backpropagation(example), np.random.default_rng(0)
    fixed = by.at_random(example, 0.7, 1 / 0.7, 40_000, rng)
    error = np.abs(fixed.mean(axis=0) - full) / (fixed.std(axis=0) / 200 + 1e-12)
    assert error.max() < 5  # standard errors
    printed = by.at_random(example, 0.7, 0.7, 40_000, rng).mean(axis=0)
    expected = sum(0.49**back * part for back, part in enumerate(by.by_appearance(example)[::-1]))
    assert np.linalg.norm(printed - full) > 0.1 * np.linalg.norm(full)
    assert np.abs(printed - expected).max() < 0.02  # its mean factor is π²


def test_the_blanks_of_the_exercise_accept_their_answers_and_nothing_else():
    for blank in chain_rule.exercise().blanks:
        assert re.fullmatch(blank.pattern(), f"{blank.answer:.3f}")
        assert re.fullmatch(blank.pattern(), f"{blank.answer:.2f}")
        assert not re.fullmatch(blank.pattern(), f"{blank.answer + 0.1:.3f}")
        assert not re.fullmatch(blank.pattern(), "")
        assert chain_rule.check(blank.name, round(blank.answer, 3)) == f"{blank.name}: right"
        assert "not yet" in chain_rule.check(blank.name, blank.answer + 0.1)


@given(st.floats(-50, 50))
def test_a_blank_accepts_a_comma_and_no_leading_zero(value):
    blank, shown = Blank("a", "?", value, ""), f"{value:.3f}"
    for form in (shown, shown.replace(".", ","), re.sub(r"^(-?)0\.", r"\1.", shown)):
        assert re.fullmatch(blank.pattern(), form), form


def test_an_unknown_blank_is_named_with_those_that_there_are():
    with pytest.raises(ConfigError, match="unknown blank 'z'; there are: a, b"):
        chain_rule.check("z", 1.0)


def test_the_example_of_the_page_is_small_enough_to_follow():
    example = chain_rule.small()
    assert example.W_h.shape == (2, 2)
    assert example.T == len(chain_rule.WORDS) == 4
    assert max(chain_rule.differences(example).values()) <= 1e-10
