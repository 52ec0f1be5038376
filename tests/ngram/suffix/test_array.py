"""The suffix array: its order, its searches, and that the compiled twin gives the same arrays."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packed_texts import pack

from nextword.core.contracts import END, START
from nextword.core.errors import DamagedError
from nextword.ngram.suffix import array as suffix

V = 6
# Small alphabets, empty sentences, repeated sentences.
sentence = st.lists(st.sampled_from([0, 3, 4, 5]), max_size=7)
texts = st.lists(sentence, min_size=1, max_size=12).flatmap(
    lambda some: st.lists(st.sampled_from(some), min_size=1, max_size=20)
)


def suffix_at(ids, place):
    words = ids[place:].tolist()
    return words[: words.index(END) + 1]


def deep_text():
    words = np.random.default_rng(0).integers(3, V, size=700).tolist()
    return pack([words, words, words[100:] + words[:300], [3] * 900])


@given(texts)
def test_places_are_sorted_by_words_up_to_end_and_then_by_place(sentences):
    ids = pack(sentences)
    order = suffix.build(ids, V, 3).order.tolist()
    assert order == sorted(range(len(ids)), key=lambda p: (suffix_at(ids, p), p))


@given(texts)
def test_shared_words_are_those_in_common_with_the_suffix_before(sentences):
    text = suffix.build(pack(sentences), V, 3)
    found = [suffix_at(text.ids, p) for p in text.order]
    for r in range(1, len(text)):
        common = 0
        while common < min(map(len, found[r - 1 : r + 1])) and found[r - 1][common] == found[r][common]:
            common += 1
        assert text.shared[r] == common
    assert text.shared[0] == 0


@given(texts)
@settings(max_examples=60, deadline=None)  # the first call compiles
def test_compiled_arrays_equal_the_plain_ones(sentences):
    same(pack(sentences))


def test_compiled_arrays_equal_the_plain_ones_for_copied_documents():
    same(deep_text())


def test_compiled_arrays_equal_the_plain_ones_in_large_buckets():
    rng = np.random.default_rng(1)
    same(pack([rng.integers(3, V, size=rng.integers(0, 12)).tolist() for _ in range(3000)]))


def same(ids):
    from nextword.ngram.suffix import stream

    plain, compiled = suffix.build(ids, V, 3), stream.build(ids, V, 3)
    for name, array in plain.named().items():
        np.testing.assert_array_equal(array, compiled.named()[name])


@given(texts, st.lists(st.sampled_from([0, START, 3, 4, 5]), min_size=1, max_size=4), st.integers(0, V - 1))
def test_intervals_hold_every_occurrence_of_a_phrase(sentences, phrase, word):
    text = suffix.build(pack(sentences), V, 3)
    low, high = text.starts[phrase[:1]], text.starts[np.array(phrase[:1]) + 1]
    for depth, next_word in enumerate(phrase[1:], start=1):
        low, high = text.extend(low, high, depth, np.array([next_word]))
    places = [p for p in range(len(text)) if suffix_at(text.ids, p)[: len(phrase)] == phrase]
    assert sorted(text.order[int(low[0]) : int(high[0])].tolist()) == places
    if not places:
        return
    followers = Counter(int(text.ids[p + len(phrase)]) for p in places)
    a, b = int(low[0]), int(high[0])
    words, counts = text.followers(a, b, len(phrase))
    assert dict(zip(words.tolist(), counts.tolist(), strict=True)) == followers
    first, last = text.extend_one(a, b, len(phrase), word)
    assert last - first == followers[word]
    assert text.locate(places[0], places[0] + len(phrase), word) == (first, last) or not followers[word]
    if len(phrase) <= 3:
        assert text.kinds(low, high, len(phrase)).tolist() == [len(followers)]


def test_followers_are_right_beyond_what_a_byte_counts():
    text = suffix.build(pack([[3] * 400, [3] * 300 + [4]]), V, 2)
    low, high = int(text.starts[3]), int(text.starts[4])
    for depth in range(1, 300):
        low, high = text.extend_one(low, high, depth, 3)
    words, counts = text.followers(low, high, 300)
    assert dict(zip(words.tolist(), counts.tolist(), strict=True)) == {END: 1, 3: 100, 4: 1}


@given(texts)
def test_counts_of_counts_are_those_of_all_phrases(sentences):
    text = suffix.build(pack(sentences), V, 3)
    for n, found in enumerate(text.counts_of_counts(5), start=1):
        grams = [tuple(suffix_at(text.ids, p)[:n]) for p in range(len(text))]
        values = list(Counter(g for g in grams if len(g) == n).values())
        assert found == (values.count(1), values.count(2))


def test_marks_count_kinds_in_large_intervals():
    rng = np.random.default_rng(2)
    text = suffix.build(pack([rng.integers(3, 60, size=10).tolist() for _ in range(900)]), 60, 2)
    low, high = text.starts[:-1], text.starts[1:]
    low, high = low[low < high], high[low < high]
    words = text.ids[text.order[low]]
    low, high = low[words != END], high[words != END]
    expected = [len(text.followers(int(a), int(b), 1)[0]) for a, b in zip(low, high, strict=True)]
    assert text.kinds(low, high, 1).tolist() == expected


def test_places_outside_the_text_are_our_error():
    good = suffix.build(pack([[3, 4], [3, 5], [4]]), V, 2)
    bad = replace(good, order=np.full_like(good.order, 2**32 - 1))
    low, high = bad.starts[3:4], bad.starts[4:5]
    with pytest.raises(DamagedError):
        bad.extend(low, high, 1, np.array([4]))
    with pytest.raises(DamagedError):
        bad.extend_one(int(low[0]), int(high[0]), 1, 4)
    with pytest.raises(DamagedError):
        bad.followers(int(low[0]), int(high[0]), 1)
