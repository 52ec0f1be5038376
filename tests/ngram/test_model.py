"""The contract: step == score == pieces of score == packed, for any batch and padding."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joined_rows import check_joined, states_after
from packed_texts import pack, zipf_text

from nextword.core import catalog
from nextword.core.contracts import END, START, LanguageModel, PackedScorer
from nextword.core.errors import DamagedError
from nextword.ngram import estimation
from nextword.ngram.arrays import Level, Trie
from nextword.ngram.fast import scoring
from nextword.ngram.model import NgramModel
from nextword.ngram.settings import NgramSettings

SMOOTHINGS = catalog.names("smoothing")


@pytest.fixture(scope="module", params=SMOOTHINGS)
def model(request, text) -> NgramModel:
    return estimation.build(text, 60, NgramSettings(order=4, smoothing=request.param))


sentences = st.lists(
    st.lists(st.integers(3, 59) | st.just(0) | st.just(END), max_size=9), min_size=1, max_size=4
)


def padded(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    width = max(map(len, rows)) + 1
    return np.array([[*r, *([-7] * (width - len(r)))] for r in rows]), np.array([len(r) for r in rows])


def test_it_is_a_language_model(model):
    assert isinstance(model, LanguageModel)
    assert isinstance(model, PackedScorer)


@given(rows=sentences, cut=st.integers(0, 9))
def test_step_equals_score_equals_score_in_pieces(model, rows, cut):
    ids_BT, lengths_B = padded(rows)
    whole_BT, _ = model.score(ids_BT, lengths_B)
    assert np.all(whole_BT[np.arange(ids_BT.shape[1]) >= lengths_B[:, None]] == 0)
    first = np.minimum(lengths_B, cut)
    head, state = model.score(ids_BT[:, :cut], first)
    tail, _ = model.score(ids_BT[:, cut:], lengths_B - first, state)
    np.testing.assert_allclose(np.concatenate([head, tail], axis=1), whole_BT, rtol=1e-12)
    for row, words in enumerate(rows):
        state = model.start(1)
        for t, word in enumerate(words):
            if model.trie.fallback != "none":  # mle may have no distribution here
                np.testing.assert_allclose(model.next(state)[0, word], whole_BT[row, t], rtol=1e-12)
                _, state = model.step(np.array([word]), state)


def test_rows_can_be_kept_and_repeated(model):
    ids_BT = np.array([[3, 4, 5], [6, 7, 8]])
    state = model.score(ids_BT, np.array([3, 3]))[1]
    again = model.reorder(state, np.array([1, 1, 0]))
    expected = model.score(np.full((2, 1), 9), np.array([1, 1]), state)[0][[1, 1, 0]]
    np.testing.assert_array_equal(model.score(np.full((3, 1), 9), np.ones(3, int), again)[0], expected)


@given(
    batches=st.lists(st.tuples(sentences, st.booleans()), min_size=1, max_size=3),
    rows=st.lists(st.lists(st.integers(3, 59), min_size=1, max_size=3), min_size=12, max_size=12),
)
@settings(max_examples=15)
def test_rows_of_any_states_are_joined_and_taken_out_again(model, batches, rows):
    texts, begin = zip(*batches, strict=True)
    states = states_after(model, texts, begin)
    joined, first = model.join(states), 0
    for state in states:
        back = model.reorder(joined, np.arange(first, first + model.rows(state)))
        np.testing.assert_array_equal(back.nodes_BN, state.nodes_BN)
        np.testing.assert_array_equal(back.read_B, state.read_B)
        first += model.rows(state)
    assert first == model.rows(joined) == sum(map(len, texts))
    if model.trie.fallback != "none":  # mle may have no distribution here
        check_joined(model, states, rows[:first], 0.0)


def test_packed_scores_are_those_of_single_sentences(model, text):
    logp = model.score_packed(text)
    starts = np.flatnonzero(text == START)
    assert np.all(logp[starts] == 0)
    for a, b in pairwise(starts[:21]):
        single = model.score(text[None, a + 1 : b], np.array([b - a - 1]))[0][0]
        np.testing.assert_allclose(logp[a + 1 : b], single, rtol=1e-12)


def test_compiled_scoring_equals_the_plain_way(model):
    ids = zipf_text(4000, 60, seed=5)
    ids[::17][ids[::17] > 2] = 0  # unknown words too
    np.testing.assert_allclose(scoring.score_packed(model, ids), model.explain_packed(ids)[0], rtol=1e-12)


@pytest.mark.parametrize("order", [1, 2, 5])
def test_an_index_in_memory_changes_no_number(order):
    ids = zipf_text(6000, 800, seed=9)
    model = estimation.build(ids, 800, NgramSettings(order=order))
    ids[::13][ids[::13] > 2] = 0
    before = scoring.score_packed(model, ids)
    model.populate()
    assert model in scoring._indexes
    np.testing.assert_array_equal(scoring.score_packed(model, ids), before)
    np.testing.assert_allclose(before, model.explain_packed(ids)[0], rtol=1e-12)


def test_the_index_is_built_once_enough_is_scored():
    ids = zipf_text(3000, 300, seed=4)
    model = estimation.build(ids, 300, NgramSettings(order=3))
    scoring.score_packed(model, ids[:500])
    assert model not in scoring._indexes
    for _ in range(3):
        scoring.score_packed(model, ids)
    assert model in scoring._indexes


def test_an_index_over_damaged_arrays_is_refused(text):
    first, second, third = estimation.build(text, 60, NgramSettings(order=3)).trie.levels
    children = np.array(first.children)
    children[1:] = 0
    for broken in (
        (Level(first.words, first.probs, first.backoffs, children), second, third),
        (first, Level(second.words[:-1], second.probs[:-1], second.backoffs, second.children), third),
    ):
        with pytest.raises(DamagedError, match="train the run again"):
            NgramModel(Trie(broken)).populate()


def test_orders_longer_than_any_sentence_are_empty_and_harmless():
    ids = pack([[3]])
    model = estimation.build(ids, 9, NgramSettings(order=5))
    assert model.trie.sizes[3:] == [0, 0]
    stream = pack([[3], [4, 0, 3, 3, 3], []])
    expected = model.explain_packed(stream)[0]
    np.testing.assert_allclose(scoring.score_packed(model, stream), expected, rtol=1e-12)
    assert np.exp(model.next(model.start(1, begin=False))).sum() == pytest.approx(1)


def test_a_stream_may_begin_in_the_middle(model):
    ids = np.array([5, 6, END, START, 7, END], dtype=np.int32)
    np.testing.assert_allclose(scoring.score_packed(model, ids), model.explain_packed(ids)[0], rtol=1e-12)


def test_words_that_are_no_words_are_refused(model):
    for wrong in (-1, 60):
        with pytest.raises(ValueError, match="token ids must be in 0 … 59"):
            model.score(np.array([[wrong]]), np.array([1]))
        with pytest.raises(ValueError, match="token ids must be in 0 … 59"):
            scoring.score_packed(model, np.array([1, wrong, 2], dtype=np.int32))


def test_offsets_outside_their_array_are_damage_not_a_crash(text):
    model = estimation.build(text, 60, NgramSettings(order=3))
    level = model.trie.levels[0]
    for value in (2**32 - 1, 2**31):
        children = np.array(level.children)
        children[3:30] = value
        broken = NgramModel(
            Trie((Level(level.words, level.probs, level.backoffs, children), *model.trie.levels[1:]))
        )
        with pytest.raises(DamagedError, match="train the run again"):
            scoring.score_packed(broken, text)
        with pytest.raises(DamagedError, match="train the run again"):
            broken.explain_packed(text)
        with pytest.raises(DamagedError, match="train the run again"):
            broken.next(broken.score(np.array([[4]]), np.array([1]))[1])


def test_an_order_one_model_has_an_empty_context(text):
    model = estimation.build(text, 60, NgramSettings(order=1))
    assert model.context == 0
    a, b = model.score(np.array([[3, 4]]), np.array([2]))[0][0]
    np.testing.assert_allclose([a, b], model.next(model.start(1))[0, [3, 4]])
