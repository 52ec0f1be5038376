"""The range coder: any token of any distribution, at the cost of its surprise."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nextword.evaluation.compress.coder import IntegerDistribution, RangeDecoder, RangeEncoder


@settings(max_examples=20, deadline=None)
@given(size=st.integers(2, 3000), seed=st.integers(0, 100), sharp=st.floats(0.01, 3))
def test_any_word_of_any_distribution_is_coded_and_costs_its_surprise(size, seed, sharp):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(size, sharp)) if sharp > 0.02 else np.eye(size)[0]
    with np.errstate(divide="ignore"):
        weights = IntegerDistribution(np.log(p))
    words = [*rng.choice(size, p=p, size=200).tolist(), 0, size - 1]
    encoder = RangeEncoder()
    for word in words:
        encoder.word(weights, word)
    data = encoder.finish()
    decoder = RangeDecoder(data)
    assert [decoder.word(weights) for _ in words] == words
    surprise = -np.log2(np.maximum(p[words], 2.0**-32)).sum()
    assert len(data) * 8 <= surprise * 1.005 + 96


def test_no_distribution_at_all_is_coded_as_any_word():
    weights = IntegerDistribution(np.full(10, -np.inf))
    assert len(set(weights.weights)) == 1
