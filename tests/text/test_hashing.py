"""Hashed features equal those of the plain twin, whatever the text."""

import hashed_features as plain
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nextword.text import hashing

TEXTS = st.lists(st.text(max_size=40), max_size=4)


def of_each(hashes):
    return [
        hashes.values[start:stop].tolist()
        for start, stop in zip(hashes.bounds[:-1], hashes.bounds[1:], strict=True)
    ]


@settings(max_examples=150, deadline=None)
@given(TEXTS, st.integers(0, 4), st.integers(1, 4), st.integers(0, 6))
def test_features_equal_the_plain_twin(texts, word_ngrams, min_n, max_n):
    found = of_each(hashing.features(texts, word_ngrams, min_n, max_n))
    assert [sorted(each) for each in found] == [
        plain.features(text, word_ngrams, min_n, max_n) for text in texts
    ]


@settings(max_examples=150, deadline=None)
@given(TEXTS, st.booleans())
def test_tokens_equal_the_plain_twin(texts, characters):
    assert of_each(hashing.tokens(texts, characters)) == [plain.tokens(text, characters) for text in texts]


@settings(max_examples=50, deadline=None)
@given(TEXTS, st.integers(1, 10))
def test_buckets_are_the_distinct_low_bits(texts, power):
    hashes = hashing.features(texts, 2, 2, 3)
    found = of_each(hashing.buckets(hashes, 1 << power))
    assert all(len(set(each)) == len(each) for each in found)
    assert [set(each) for each in found] == [
        {value & ((1 << power) - 1) for value in each} for each in of_each(hashes)
    ]


def test_a_text_of_long_words_has_room():
    text = "x" * 5000
    assert len(hashing.features([text], 8, 1, 20).values) == len(plain.features(text, 8, 1, 20))


def test_case_and_spaces_do_not_matter_but_order_does():
    same = hashing.features(["Good  FILM!", "good film !"], 2, 0, 0)
    assert np.array_equal(*of_each(same))
    one, two = of_each(hashing.features(["a b", "b a"], 2, 0, 0))
    assert sorted(one) != sorted(two)


def test_the_number_of_different_features_is_about_right():
    texts = [f"word{number % 3000} and word{number * 7 % 5000}" for number in range(20_000)]
    hashes = hashing.features(texts, 2, 2, 4)
    assert hashing.about_distinct(hashes) == pytest.approx(len(np.unique(hashes.values)), rel=0.02)
    assert hashing.about_distinct(hashing.features([""], 2, 0, 0)) == 0
