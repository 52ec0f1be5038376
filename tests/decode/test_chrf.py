"""chrF of all pairs at once is sacrebleu's, pair by pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nextword.decode.chrf import chrf

texts = st.lists(st.text(alphabet="ab c\n\u00e9\u0930\u093e\U0001f600", max_size=20), min_size=1, max_size=5)


@settings(max_examples=60, deadline=None)
@given(hypotheses=texts, references=texts)
@example(["", "the cat sat"], ["", "the cat sat", "a"])
@example(["the cat sat on the mat"], ["the cat was sitting on the mat", "mat the on sat cat the"])
def test_chrf_is_sacrebleus(hypotheses, references):
    theirs = pytest.importorskip("sacrebleu").sentence_chrf
    expected = [[theirs(own, [other]).score for other in references] for own in hypotheses]
    assert np.allclose(chrf(hypotheses, references), expected, atol=1e-9)


def test_a_text_agrees_with_itself():
    assert chrf(["राम ने रावण को मारा"], ["राम ने रावण को मारा"])[0, 0] == pytest.approx(100)
    assert chrf(["", "x"], ["x", ""]).tolist() == [[0, 0], [pytest.approx(100), 0]]
