"""Every smoothing: sums to one, means what its formula says, and is the same by both paths."""

from __future__ import annotations

import numpy as np
import pytest
from event_streams import notes_of, until_done
from hypothesis import given, settings
from hypothesis import strategies as st
from packed_texts import VOCABULARY, pack, texts, zipf_text

from nextword.core import catalog
from nextword.core.contracts import END, START, UNKNOWN
from nextword.core.errors import ConfigError, ContextError
from nextword.ngram import estimation
from nextword.ngram.arrays import Level, Trie
from nextword.ngram.counts import count
from nextword.ngram.model import NgramModel
from nextword.ngram.settings import NgramSettings
from nextword.ngram.smoothing.estimate import as_offsets
from nextword.runs.settings import plan

SMOOTHINGS = catalog.names("smoothing")
PROBABILITIES = [name for name in SMOOTHINGS if name != "stupid"]


def exact_model(ids: np.ndarray, settings: NgramSettings, closed: bool) -> NgramModel:
    """The float64 twin: nothing is rounded to float32."""
    counts = count(ids, VOCABULARY, settings.order)
    found = estimation.estimate(counts, settings, closed)
    levels = tuple(
        Level(
            level.words, found.probs[n], found.backoffs[n] if n < counts.order - 1 else None,
            None if level.children is None else as_offsets(level.children),
        )
        for n, level in enumerate(counts.levels)
    )  # fmt: skip
    return NgramModel(Trie(levels, found.fallback), settings.smoothing, found.is_probability, closed)


def after(model: NgramModel, context: list[int], begin: bool = True) -> np.ndarray:
    """p of every word after a context."""
    state = model.score(
        np.array([context], dtype=int), np.array([len(context)]), model.start(1, begin=begin)
    )[1]
    return np.exp(model.next(state)[0])


contexts = st.lists(st.integers(0, VOCABULARY - 1).filter(lambda w: w not in (START, END)), max_size=6)


@pytest.mark.parametrize("smoothing", PROBABILITIES)
@given(ids=texts(), order=st.integers(1, 5), context=contexts, closed=st.booleans(), begin=st.booleans())
def test_next_word_sums_to_one_in_every_context(smoothing, ids, order, context, closed, begin):
    settings = NgramSettings(order=order, smoothing=smoothing)
    for model, tolerance in ((exact_model(ids, settings, closed), 1e-9), (
        estimation.build(ids, VOCABULARY, settings, closed), 1e-6)):  # fmt: skip
        try:
            p_V = after(model, context, begin)
        except ContextError:
            assert smoothing == "mle"
            continue
        assert abs(p_V.sum() - 1) < tolerance
        assert p_V[START] == 0
        assert p_V[END] > 0 or smoothing in ("mle", "backoff", "katz")
        assert p_V[UNKNOWN] == 0 or not closed


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_compiled_and_plain_paths_give_the_same_model(smoothing, order, text):
    settings = NgramSettings(order=order, smoothing=smoothing)
    for closed in (False, True):
        plain = estimation.build(text, 60, settings, closed)
        quick, _ = estimation._fit_fast(text, 60, settings, closed)
        assert_same(plain, quick)


@pytest.mark.parametrize("smoothing", ["modified-kneser-ney", "witten-bell", "absolute"])
def test_pruned_models_are_the_same_by_both_paths(smoothing, text):
    settings = NgramSettings(order=4, smoothing=smoothing, prune=[0, 0, 1, 2])
    assert_same(estimation.build(text, 60, settings), estimation._fit_fast(text, 60, settings, False)[0])


def assert_same(a: NgramModel, b: NgramModel) -> None:
    assert a.trie.sizes == b.trie.sizes
    assert (a.trie.fallback, a.is_probability) == (b.trie.fallback, b.is_probability)
    for name, array in a.trie.named().items():
        np.testing.assert_allclose(array, b.trie.named()[name], rtol=2e-6, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("smoothing", ["witten-bell", "absolute", "kneser-ney", "modified-kneser-ney"])
def test_good_turing_gives_unknown_words_what_words_seen_once_have(smoothing):
    text = zipf_text(300, 900, seed=8)  # many words stand in it once
    settings = NgramSettings(order=3, smoothing=smoothing, unknown="good-turing")
    model = estimation.build(text, 900, settings)
    plain = estimation.build(text, 900, NgramSettings(order=3, smoothing=smoothing))
    assert_same(model, estimation._fit_fast(text, 900, settings, False)[0])
    assert model.trie.levels[0].probs[UNKNOWN] > plain.trie.levels[0].probs[UNKNOWN]
    for context in ([], [3, 4], [0, 0]):
        assert after(model, context).sum() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("other", [{"smoothing": "katz"}, {"smoothing": "mle"}, {"kenlm_compat": True}])
def test_good_turing_for_unknown_words_says_what_it_does_not_go_with(other, text):
    with pytest.raises(ConfigError, match=r"'model\.unknown' good-turing"):
        estimation.build(text, 60, NgramSettings(unknown="good-turing", **other))


def test_mle_has_no_distribution_in_an_unseen_context():
    model = estimation.build(pack([[3, 4], [4, 3]]), VOCABULARY, NgramSettings(order=3, smoothing="mle"))
    with pytest.raises(
        ContextError, match="no distribution here: the last 2 tokens were never seen together"
    ):
        after(model, [5, 5])
    assert np.isneginf(model.score(np.array([[5, 5, 5]]), np.array([3]))[0][0, 2])


def test_stupid_is_marked_as_no_probability(text):
    model = estimation.build(text, 60, NgramSettings(smoothing="stupid"))
    assert not model.is_probability
    assert after(model, [3, 4, 5]).sum() > 1.01


def test_stupid_multiplies_by_alpha_for_each_word_dropped():
    ids = pack([[3, 4], [5, 4], [5, 6]])
    model = estimation.build(ids, VOCABULARY, NgramSettings(order=2, smoothing="stupid", alpha=0.25))
    p_V = after(model, [5])
    assert p_V[4] == pytest.approx(1 / 2)  # n(5 4) / n(5)
    assert p_V[3] == pytest.approx(0.25 * 1 / 9)  # alpha n(3) / N: six words and three ENDs


def test_backoff_drops_words_only_while_the_context_is_unseen():
    ids = pack([[3, 4, 5], [6, 4, 7]])
    model = estimation.build(ids, VOCABULARY, NgramSettings(order=3, smoothing="backoff"))
    assert after(model, [3, 4])[5] == 1  # seen context: nothing for other words
    assert after(model, [8, 4])[5] == pytest.approx(1 / 2)  # n(4 5) / n(4)


def test_witten_bell_weight_is_the_share_of_kinds():
    ids = pack([[3, 4], [3, 4], [3, 5]])
    model = estimation.build(ids, VOCABULARY, NgramSettings(order=2, smoothing="witten-bell"))
    # after 3: three tokens of two kinds, so 2/5 goes to the unigrams
    assert model.trie.levels[0].backoffs is not None
    assert model.trie.levels[0].backoffs[3] == pytest.approx(2 / 5)


@pytest.mark.parametrize(("eps", "limit"), [(0.0, "frequencies"), (float("inf"), "unigrams")])
def test_laplace_limits_are_frequencies_and_unigrams(eps, limit, text):
    model = estimation.build(text, 60, NgramSettings(order=2, smoothing="laplace", eps=[0.0, eps]))
    unigrams = estimation.build(text, 60, NgramSettings(order=1, smoothing="mle"))
    mle = estimation.build(text, 60, NgramSettings(order=2, smoothing="mle"))
    expected = after(mle, [3]) if limit == "frequencies" else after(unigrams, [])
    np.testing.assert_allclose(after(model, [3]), expected, atol=1e-6)


def test_infinite_eps_of_the_unigrams_is_the_same_for_every_word(text):
    model = estimation.build(text, 60, NgramSettings(order=1, smoothing="laplace", eps=float("inf")))
    np.testing.assert_allclose(np.delete(after(model, []), START), 1 / 59, rtol=1e-6)


def test_a_text_too_small_for_discounts_says_so_and_sums_to_one():
    model, events = until_done(estimation.fit(pack([[3, 3, 3]]), VOCABULARY, NgramSettings(order=3)))
    assert any("too small or too regular" in note for note in notes_of(events))
    assert after(model, [3, 3]).sum() == pytest.approx(1)


@settings(max_examples=20)
@given(
    texts(words=5, most=4), st.sampled_from(["modified-kneser-ney", "witten-bell", "katz", "add", "laplace"])
)
def test_all_strings_and_the_tail_sum_to_one(ids, smoothing):
    """L01: the probabilities of all strings up to a length, and of all longer ones, sum to 1."""
    model = estimation.build(ids, 5, NgramSettings(order=3, smoothing=smoothing))
    words = [w for w in range(5) if w not in (START, END)]
    states, mass, finished = model.start(1), np.zeros(1), 0.0
    for _ in range(5):
        logp_BV = model.next(states)
        finished += float(np.exp(mass + logp_BV[:, END]).sum())
        rows = np.repeat(np.arange(len(mass)), len(words))
        ids_B = np.tile(words, len(mass))
        mass = mass[rows] + logp_BV[rows, ids_B]
        alive = np.isfinite(mass)
        mass, rows, ids_B = mass[alive], rows[alive], ids_B[alive]
        states = model.step(ids_B, model.reorder(states, rows))[1]
    assert finished + np.exp(mass).sum() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    "discounts", [[0.5, -1, 1.5], [0.5, 2.5, 1], [1.5, 1, 1], [0.5, 1], [0, float("nan"), 1]]
)
def test_a_discount_is_at_most_its_count(discounts):
    with pytest.raises(ConfigError, match=r"'model\.discounts' is \[.*; it must be three numbers"):
        plan("ngram", sets={"model.discounts": discounts})


def test_discounts_of_order_1_are_not_expected_of_a_closed_vocabulary():
    ids = np.array([START, *[3, 4] * 40, END])
    settings = NgramSettings(order=2)
    words = notes_of(estimation.fit(ids, 5, settings, closed=False))
    characters = notes_of(estimation.fit(ids, 5, settings, closed=True))
    assert any("of order 1 and 2;" in note for note in words)
    assert any("of order 2;" in note for note in characters)
