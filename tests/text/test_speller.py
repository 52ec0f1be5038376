"""Spelling a word: probabilities sum to one, and words like those seen are cheaper."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nextword.text.speller import SYMBOLS, Speller


@given(
    st.lists(st.binary(min_size=1, max_size=5).filter(lambda w: 0 not in w), max_size=6),
    st.binary(min_size=3, max_size=3),
)
def test_spelling_probabilities_sum_to_one(words: list[bytes], context: bytes) -> None:
    p = Speller(words).distribution(context)
    assert len(p) == SYMBOLS
    assert math.isclose(p.sum(), 1.0, abs_tol=1e-12)
    assert (p > 0).all()


@given(
    st.lists(st.binary(min_size=1, max_size=5).filter(lambda w: 0 not in w), max_size=6),
    st.lists(st.binary(min_size=1, max_size=9).filter(lambda w: 0 not in w), min_size=1, max_size=5),
)
def test_the_cost_of_many_words_is_the_cost_of_each(taught: list[bytes], words: list[bytes]) -> None:
    speller = Speller(taught)
    each = [-sum(math.log(p[i]) for p, i in speller.symbols(word)) for word in words]
    assert np.allclose(speller.costs(words), each, rtol=1e-12, atol=1e-12)


def test_words_like_those_seen_are_cheaper_to_spell() -> None:
    speller = Speller([b"walking", b"talking", b"walked", b"talked"])
    likely, unlikely = speller.costs([b"walks", b"xqzzv"])
    assert likely < unlikely


def test_distributions_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nextword.text.speller._KEPT", 2)
    speller = Speller([b"abc"])
    first = speller.distribution(b"\0\0\0")
    for byte in range(5):
        speller.distribution(bytes([byte, 1, 1]))
    assert np.array_equal(speller.distribution(b"\0\0\0"), first)
