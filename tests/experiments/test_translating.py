"""The experiments of translation: their languages, and what they count."""

from __future__ import annotations

import numpy as np
import pytest

from nextword.core.events import returned
from nextword.experiments import languages
from nextword.experiments.alignment import SMALL, aligned, walk_through, weights_of
from nextword.experiments.babble import judged
from nextword.experiments.bottleneck import arrived
from nextword.experiments.complexity import fit, operations
from nextword.experiments.languages import SLIDE, Words
from nextword.experiments.learners import train_translator, translated
from nextword.experiments.small import Count


def test_the_made_language_moves_every_word():
    one, two = languages.of_length(2, 2, 0)
    for each in (one, two):
        source, target = each.source.split(), each.target.split()
        assert len(source) == len(target) == 11
        assert sorted(word[::-1] for word in target) == sorted(source)
        assert target[4] == source[2][::-1]  # the verb of the first clause stands at its end
    assert one != two


def test_sentences_have_all_numbers_of_clauses():
    lengths = {len(each.source.split()) for each in languages.sentences(30, 5, 0)}
    assert lengths == {5, 11, 17, 23, 29}


def test_hindi_has_the_slides_words_and_never_the_slides_sentence():
    pairs = languages.hindi(200)
    assert len(set(pairs)) == 200
    assert SLIDE.source not in {each.source for each in pairs}
    words = {word for each in pairs for word in each.source.split()}
    assert set(SLIDE.source.split()) <= words
    assert next(each for each in pairs if "नहीं" in each.source).target.split()[1:3] == ["did", "not"]


def test_sampled_words_of_two_translations_are_mixed():
    held = [Words("a b", "x y")] * 3  # or, from the end and in capitals, "Y X"
    found = judged(["x y", "Y X", "x X"], held)
    assert found[:3] == (1.0, pytest.approx(2 / 3), pytest.approx(1 / 3))


def test_words_are_aligned_with_those_that_they_translate():
    held = [Words("राम ने रावण को मारा", "Ram killed Ravan")]
    right_TS = np.zeros((4, 6))
    right_TS[[0, 1, 2], [0, 4, 2]] = 1
    assert aligned([right_TS], held) == (1.0, 3)
    wrong_TS = np.zeros((4, 6))
    wrong_TS[:, 3] = 1
    assert aligned([wrong_TS], held) == (0.0, 3)


@pytest.fixture(scope="module")
def translator():
    sets = {**SMALL, "train.steps": 3}
    return returned(train_translator("gru-torch", languages.hindi(20), 0, sets, Count()))


def test_attention_by_hand_is_that_of_the_network(translator):
    walk = walk_through(translator, SLIDE)
    assert walk.gap < 1e-5
    assert walk.weights_S.sum() == pytest.approx(1, abs=1e-5)
    assert walk.weights_S == pytest.approx(weights_of(translator, SLIDE)[0], abs=1e-5)


def test_translations_come_in_order_and_are_bounded(translator):
    texts = translated(translator, [SLIDE.source, "राम"])
    assert len(texts) == 2
    assert len(texts[1].split()) <= 3


def test_operations_are_split_into_words_and_pairs():
    counts = {(n, m): 7 + 3 * n + 5 * m + 2 * n * m for n in (1, 2, 4) for m in (1, 3, 5)}
    found = fit({place: float(count) for place, count in counts.items()})
    assert (found.constant, found.read, found.written, found.product) == (7, 3, 5, 2)
    assert found.error < 1e-6


def test_reading_twice_as_much_takes_more_operations(translator):
    assert operations(translator, 8, 4) > operations(translator, 4, 4) > 0


def test_symbols_that_arrive_are_counted_at_their_places():
    held = [Words("a b", "a b"), Words("c d", "c d"), Words("e", "e")]
    found = arrived(["a b", "d d x", ""], held)
    assert {length: shares.tolist() for length, shares in found.items()} == {1: [0.0], 2: [1.0, 0.5]}
