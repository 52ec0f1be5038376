"""Counting: the plain way against a dictionary, the kernels against the plain way."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from packed_texts import VOCABULARY, texts, zipf_text

from nextword.core.contracts import END, START
from nextword.ngram.counts import CountTrie, count
from nextword.ngram.fast import estimate


def paths(counts: CountTrie, n: int) -> list[tuple[int, ...]]:
    """The words of every n-gram of order n, in the order of the level."""
    nodes = np.arange(len(counts.levels[n - 1]))
    words = []
    for k in range(n, 0, -1):
        words.append(counts.levels[k - 1].words[nodes])
        if k > 1:
            nodes = counts.parents(k)[nodes]
    return [tuple(int(w) for w in row) for row in np.stack(words[::-1], axis=1)]


@given(texts(), st.integers(1, 5))
def test_every_ngram_is_counted_once_in_sorted_order(ids, order):
    counts = count(ids, VOCABULARY, order)
    for n in range(1, order + 1):
        expected, before = Counter(), defaultdict(set)
        for i in range(len(ids) - n + 1):
            gram = tuple(int(w) for w in ids[i : i + n])
            if END not in gram[:-1]:
                expected[gram] += 1
                before[gram].add(int(ids[i - 1]))
        found = paths(counts, n)
        level = counts.levels[n - 1]
        assert found == sorted(found)
        assert {g: int(c) for g, c in zip(found, level.counts, strict=True) if c} == dict(expected)
        for gram, adjusted, plain in zip(found, level.adjusted, level.counts, strict=True):
            if gram in expected:
                assert adjusted == (plain if gram[0] == START else len(before[gram]))


@given(texts(), st.integers(2, 5))
def test_links_lead_to_the_ngram_without_its_first_word(ids, order):
    counts = count(ids, VOCABULARY, order)
    for n, links in enumerate(counts.links(), start=2):
        below = paths(counts, n - 1)
        assert [gram[1:] for gram in paths(counts, n)] == [below[link] for link in links]


@given(texts(most=30), st.integers(1, 9))
def test_kernels_count_as_the_plain_way(ids, order):
    assert_equal(estimate.count(ids, VOCABULARY, order).trie(), count(ids, VOCABULARY, order))


@pytest.mark.parametrize(("words", "order"), [(5, 15), (60, 5), (4000, 3), (300_000, 5), (2_500_000, 4)])
def test_kernels_count_as_the_plain_way_at_every_key_width(words, order):
    ids = zipf_text(3000, words, seed=words)  # buckets large enough for the radix sort
    assert_equal(estimate.count(ids, words, order).trie(), count(ids, words, order))


def test_counts_that_are_not_wanted_are_not_kept(text):
    flat = estimate.count(text, 60, 4, adjusted=True, raw=False)
    whole = count(text, 60, 4)
    assert np.array_equal(flat.counts_of(4), whole.levels[3].counts)
    assert all(np.array_equal(flat.of(n, flat.adjusted), whole.levels[n - 1].adjusted) for n in (1, 2, 3))


def assert_equal(found: CountTrie, expected: CountTrie) -> None:
    for n, (a, b) in enumerate(zip(found.levels, expected.levels, strict=True), start=1):
        assert np.array_equal(a.words, b.words)
        assert np.array_equal(a.counts, b.counts)
        assert (a.children is None) == (b.children is None)
        assert a.children is None or np.array_equal(a.children, b.children)
        if n < expected.order:
            assert np.array_equal(a.adjusted, b.adjusted)
