"""Mixtures: the contract holds, and EM finds the best weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joined_rows import check_joined, states_after
from pydantic import ValidationError
from table_models import make_table_model

from nextword.core.contracts import END, START, LanguageModel, PackedScorer
from nextword.core.errors import ConfigError, DataError
from nextword.mixtures.mixture import Mixture, MixtureSettings, tune_weights


def test_next_is_the_weighted_sum_and_sums_to_one():
    first, second = make_table_model(seed=1), make_table_model(seed=2)
    mixture = Mixture([first, second], [0.3, 0.7])
    state = mixture.start(2)
    expected = 0.3 * np.exp(first.next(first.start(2))) + 0.7 * np.exp(second.next(second.start(2)))
    assert np.allclose(np.exp(mixture.next(state)), expected, atol=1e-15)
    assert np.allclose(np.exp(mixture.next(state)).sum(axis=1), 1.0, atol=1e-12)
    assert np.all(np.isneginf(mixture.next(state)[:, START]))
    assert isinstance(mixture, LanguageModel)


@settings(max_examples=30, deadline=None)
@given(ids=st.lists(st.sampled_from([0, 2, 3, 4, 5, 6]), min_size=1, max_size=12), cut=st.integers(0, 12))
def test_step_after_step_equals_score_in_pieces(ids, cut):
    mixture = Mixture([make_table_model(seed=1), make_table_model(seed=2)], [0.25, 0.75])
    state, steps = mixture.start(1), []
    logp = mixture.next(state)
    for word in ids:
        steps.append(logp[0, word])
        logp, state = mixture.step(np.array([word]), state)
    cut = min(cut, len(ids))
    row = np.array([ids])
    first, middle = mixture.score(row[:, :cut], [cut])
    second, after = mixture.score(row[:, cut:], [len(ids) - cut], middle)
    assert np.allclose(np.concatenate([first[0], second[0]]), steps, atol=1e-12)
    assert np.allclose(mixture.next(after), logp)


def test_padding_and_starts_are_exactly_zero():
    mixture = Mixture([make_table_model(seed=1), make_table_model(seed=2)], [0.1, 0.9])
    logp, _ = mixture.score(np.array([[3, 4, 2], [3, 0, 0]]), np.array([3, 1]))
    assert logp[1, 1] == logp[1, 2] == 0.0
    packed = mixture.score_packed(np.array([START, 3, 4, END, START, 3, END]))
    assert packed[0] == packed[4] == 0.0
    assert np.allclose(packed[1:3], logp[0, :2])


def test_mixture_scores_packed_only_where_all_parts_do():
    packed, plain = make_table_model(seed=1), make_table_model(seed=2, packed=False)
    assert isinstance(Mixture([packed, packed], [0.5, 0.5]), PackedScorer)
    assert not isinstance(Mixture([packed, plain], [0.5, 0.5]), PackedScorer)


def test_reorder_keeps_rows():
    mixture = Mixture([make_table_model(seed=1), make_table_model(seed=2)], [0.5, 0.5])
    _, state = mixture.score(np.array([[3], [4]]), np.array([1, 1]))
    assert np.allclose(mixture.next(mixture.reorder(state, [1, 1, 0])), mixture.next(state)[[1, 1, 0]])


words = st.lists(st.sampled_from([0, 2, 3, 4, 5, 6]), max_size=6)
batches = st.lists(st.tuples(st.lists(words, min_size=1, max_size=3), st.booleans()), min_size=1, max_size=4)


@settings(max_examples=30, deadline=None)
@given(batches=batches, data=st.data())
def test_rows_of_any_states_are_joined_and_taken_out_again(batches, data):
    texts, begin = zip(*batches, strict=True)
    next_word = st.lists(st.sampled_from([0, 2, 3, 4, 5, 6]), min_size=1, max_size=3)
    rows = [data.draw(next_word) for text in texts for _ in text]
    first, second = make_table_model(seed=1), make_table_model(seed=2)
    for model in (first, Mixture([first, second], [0.4, 0.6])):
        check_joined(model, states_after(model, texts, begin), rows, 0.0)


def test_zero_weight_ignores_a_model_that_gives_zero():
    mixture = Mixture([make_table_model(seed=1), make_table_model(seed=2)], [1.0, 0.0])
    assert np.allclose(mixture.next(mixture.start(1)), make_table_model(seed=1).next(np.array([START])))


@pytest.mark.parametrize("weights", [[0.5], [0.5, 0.6], [-0.5, 1.5], [float("nan"), 1.0]])
def test_wrong_weights_are_refused_in_one_sentence(weights):
    with pytest.raises(ConfigError, match="weights"):
        Mixture([make_table_model(), make_table_model()], weights)


def test_different_vocabularies_are_refused_with_both_sizes():
    with pytest.raises(ConfigError, match="7, 9 tokens"):
        Mixture([make_table_model(size=7), make_table_model(size=9)], [0.5, 0.5])


def test_settings_refuse_weights_that_do_not_fit_the_runs():
    assert MixtureSettings(runs=("a", "b"), weights=(0.25, 0.75)).weights == (0.25, 0.75)
    with pytest.raises(ValidationError, match="2 runs"):
        MixtureSettings(runs=("a", "b"), weights=(1.0,))
    with pytest.raises(ValidationError, match="sum to 1"):
        MixtureSettings(runs=("a", "b"), weights=(0.5, 0.6))


logprobs = st.lists(
    st.tuples(st.floats(-20, -0.01), st.floats(-20, -0.01), st.floats(-20, -0.01)), min_size=3, max_size=60
)


@settings(max_examples=40, deadline=None)
@given(rows=logprobs)
def test_em_never_loses_likelihood_and_beats_every_component(rows):
    logps = list(np.array(rows).T)
    tuned = tune_weights(logps, iterations=200)
    assert sum(tuned.weights) == pytest.approx(1.0)
    assert min(tuned.weights) >= 0
    assert np.all(np.diff(tuned.history) >= -1e-9)
    best = max(float(np.mean(logp)) for logp in logps)
    assert tuned.history[-1] >= best - tuned.gap - 1e-9


@settings(max_examples=20, deadline=None)
@given(rows=logprobs)
def test_em_gap_bounds_the_distance_to_the_best_of_a_grid(rows):
    p = np.exp(np.array(rows).T[:2])
    tuned = tune_weights(np.log(p), iterations=50)
    best = max(np.mean(np.log(w * p[0] + (1 - w) * p[1])) for w in np.linspace(0.001, 0.999, 999))
    assert best <= tuned.history[-1] + tuned.gap + 1e-9


def test_em_finds_the_weights_that_made_the_text():
    rng = np.random.default_rng(0)
    first, second = rng.dirichlet(np.ones(20)), rng.dirichlet(np.ones(20))
    text = rng.choice(20, size=200_000, p=0.8 * first + 0.2 * second)
    tuned = tune_weights([np.log(first[text]), np.log(second[text])], tolerance=1e-8)
    assert tuned.weights[0] == pytest.approx(0.8, abs=0.02)
    assert tuned.gap <= 1e-8


def test_tokens_no_model_can_explain_are_counted_not_used():
    zero = -np.inf
    tuned = tune_weights([[zero, -1.0, zero], [zero, zero, -1.0]])
    assert tuned.dropped == 1
    assert tuned.weights == pytest.approx((0.5, 0.5))
    with pytest.raises(DataError, match="probability above 0"):
        tune_weights([[zero], [zero]])


def test_models_that_score_other_tokens_are_refused():
    with pytest.raises(ConfigError, match="tokenizers must agree"):
        tune_weights([[-1.0, -2.0], [-1.0]])
