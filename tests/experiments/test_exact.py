"""Exact search finds what trying everything finds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from table_models import make_table_model

from nextword.core.contracts import END, UNKNOWN
from nextword.experiments import exact


@given(st.integers(0, 50), st.integers(1, 4))
def test_exact_search_finds_what_trying_everything_finds(seed, length):
    model = make_table_model(5, seed, sharp=3.0)
    best = exact.search(model, (), length, (UNKNOWN,))
    found = {}
    for n in range(1, length + 1):
        for ids in itertools.product(range(2, 5), repeat=n):
            if END in ids[:-1] or (n < length and ids[-1] != END):
                continue
            found[ids] = float(np.sum(model.score(np.array([ids]), np.array([n]))[0]))
    assert best.logprob == pytest.approx(max(found.values()))
    assert found[best.ids] == pytest.approx(best.logprob)


def test_exact_search_gives_up_where_it_was_told_to():
    assert exact.search(make_table_model(6, 0), (), 6, (UNKNOWN, END), most=3) is None
