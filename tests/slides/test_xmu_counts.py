"""The XMU slide's own corpus: its numbers from word counts, ours with END, and its formula put right."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from nextword.core.contracts import END, Block
from nextword.experiments import slide
from nextword.experiments.counts import by_hand, by_nextword, laplace
from nextword.experiments.sums_to_one import leaking, strings
from nextword.ngram import estimation
from nextword.ngram.settings import NgramSettings
from nextword.text.settings import TextSettings
from nextword.text.words import WordTokenizer

CONTEXT = ("love", "you")


@pytest.fixture(scope="module")
def words():
    fitting = WordTokenizer.fit_encode([Block(slide.TEXT.encode(), True)], TextSettings())
    ids = np.concatenate([np.asarray(piece.ids) for piece in fitting])
    return fitting.tokenizer, ids


def build(words, **settings):
    tokenizer, ids = words
    return estimation.build(ids, tokenizer.vocab_size, NgramSettings(**settings))


def p(words, model, text, begin=False):
    """The distribution after a text, by word."""
    tokenizer, _ = words
    state = model.start(1, begin=begin)
    if text:
        ids = tokenizer.encode(text)
        state = model.score(ids[None], np.array([len(ids)]), state)[1]
    p_V = np.exp(model.next(state)[0])
    return {tokenizer.piece(i): float(value) for i, value in enumerate(p_V)}


def test_word_counts_give_the_slides_numbers_with_its_slip_put_right():
    assert slide.total() == 15
    assert slide.counts(2)[("love", "you")] == 2
    assert slide.p_word("love") == Fraction(3, 15)  # the slide's 2/15 is a slip
    assert slide.p_word("I") == Fraction(3, 15)
    assert slide.p_first("I") == Fraction(3, 4)
    assert slide.p_after("you", "love") == Fraction(2, 3)


def test_an_n_gram_has_n_words():
    assert all(len(gram) == 3 for gram in slide.counts(3))
    assert sum(slide.counts(3).values()) == 2 + 2 + 2 + 1


def test_the_product_counts_end_like_a_word(words):
    assert p(words, build(words, order=1, smoothing="mle"), "")["love"] == pytest.approx(3 / 19)
    bigram = build(words, order=2, smoothing="mle")
    assert p(words, bigram, "", begin=True)["I"] == pytest.approx(3 / 4)
    assert p(words, bigram, "love")["you"] == pytest.approx(2 / 3)
    assert p(words, bigram, "tons.")["</s>"] == pytest.approx(1)


def test_laplace_by_hand_has_the_corrected_numbers():
    eps = (1, 1, 2)
    love, you, tons = (3 + 1 / 10) / 16, (2 + 1 / 10) / 16, (1 + 1 / 10) / 16
    assert slide.laplace("love", (), eps) == pytest.approx(love)
    assert slide.laplace("you", ("love",), eps) == pytest.approx((2 + you) / (3 + 1))
    assert slide.laplace("tons", CONTEXT, eps) == pytest.approx((1 + 2 * tons) / (2 + 2))


@pytest.mark.parametrize(("eps2", "eps3", "printed"), [(1, 2, 4 / 3), (2, 0.5, 0.625), (1, 1, 1)])
def test_slide_laplace_trigram_sums_to_one_only_when_corrected(eps2, eps3, printed):
    assert slide.laplace_sum(CONTEXT, (1, eps2, eps3), as_printed=True) == pytest.approx(printed)
    assert slide.laplace_sum(CONTEXT, (1, eps2, eps3)) == pytest.approx(1)


def test_the_products_laplace_is_the_slides_formula(words):
    eps = [3.0, 2.0, 0.5]
    M, N = 12, 19  # ten words, END and the unknown word; 15 words and four ends
    tons, you = (1 + 3 / M) / (N + 3), (2 + 3 / M) / (N + 3)
    model = build(words, order=3, smoothing="laplace", eps=eps)
    assert p(words, model, "love you")["tons."] == pytest.approx((1 + 0.5 * tons) / (2 + 0.5), rel=1e-6)
    assert p(words, model, "love")["you"] == pytest.approx((2 + 2 * you) / (3 + 2), rel=1e-6)


def test_eps_zero_gives_relative_frequencies_and_unigrams_where_nothing_was_seen(words):
    model = build(words, order=3, smoothing="laplace", eps=0.0)
    assert p(words, model, "love you")["tons."] == pytest.approx(1 / 2)
    assert p(words, model, "love you")["love"] == 0
    assert p(words, model, "me. Man.")["love"] == pytest.approx(3 / 19, rel=1e-6)


def test_eps_infinity_forgets_the_context(words):
    model = build(words, order=3, smoothing="laplace", eps=[1.0, math.inf, math.inf])
    unigrams = p(words, build(words, order=1, smoothing="laplace", eps=1.0), "")
    for context in ("love you", "I", "me. Man."):
        assert p(words, model, context) == pytest.approx(unigrams, rel=1e-6)


def test_eps_infinity_in_the_unigram_makes_all_words_alike(words):
    found = p(words, build(words, order=1, smoothing="laplace", eps=math.inf), "")
    assert {round(value, 7) for word, value in found.items() if word != "<s>"} == {round(1 / 12, 7)}


def test_the_slides_counts_leave_nothing_after_the_last_word_and_end_repairs_it(words):
    assert sum(slide.p_after(word, "me") for word in slide.WORDS) == 0
    assert sum(p(words, build(words, order=2, smoothing="mle"), "me.").values()) == pytest.approx(1)


def test_backoff_drops_words_only_while_the_context_is_unseen(words):
    model = build(words, order=3, smoothing="backoff")
    after = p(words, model, "Man. love")  # never seen together, so: after "love"
    assert after["you"] == pytest.approx(2 / 3)
    assert p(words, model, "love you")["love"] == 0  # seen, so it gives nothing to others


def test_all_texts_of_a_tiny_model_and_the_tail_sum_to_one(words):
    for smoothing in ("witten-bell", "modified-kneser-ney", "add", "laplace"):
        ended, alive = strings(build(words, order=3, smoothing=smoothing), 6)
        assert [a + b for a, b in zip(ended, alive, strict=True)] == pytest.approx([1.0] * 7, abs=1e-6)
        assert ended == sorted(ended)


def test_summing_in_groups_is_summing_every_single_text(words):
    """The experiment adds up texts that left the model in one state; here each text is walked alone."""
    model = build(words, order=2, smoothing="witten-bell")

    def finished(ids, left):
        state = model.start(1)
        if ids:
            state = model.score(np.array([ids]), np.array([len(ids)]), state)[1]
        p_V = np.exp(model.next(state)[0])
        total = float(p_V[END])
        if left:
            total += sum(
                p_V[i] * finished([*ids, i], left - 1) for i in range(len(p_V)) if p_V[i] > 0 and i != END
            )
        return total

    assert finished([], 2) == pytest.approx(strings(model, 2)[0][-1], abs=1e-9)


def test_some_probability_for_end_is_not_enough():
    assert leaking(3) == pytest.approx([1 / 4, 1 / 3, 3 / 8])
    assert leaking(100_000)[-1] == pytest.approx(0.5, abs=1e-5)


def test_the_tables_of_the_experiment_hold_these_numbers():
    assert {row["what"]: row["counted"] for row in by_hand().to_json()}["p(love)"] == "3/15"
    assert by_nextword().rows[0][1] == pytest.approx(3 / 19)
    assert [row[-1] for row in laplace().rows] == pytest.approx([1, 4 / 3, 0.625])
