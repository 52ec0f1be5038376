"""Distinct n-grams by hand."""

from __future__ import annotations

import pytest

from nextword.evaluation.pairs.distinct import DIALOGUE, distinct


def test_distinct_ngrams_by_hand():
    texts = ["i do not know", "i do not care"]
    assert distinct(texts, 1) == 5 / 8
    assert distinct(texts, 2) == 4 / 6
    assert distinct(["a"], 2) == 0.0


def test_the_same_reply_to_everything_is_not_varied():
    same = DIALOGUE.find(["i do not know"] * 50, [["x"]] * 50).other
    assert same["distinct_1"] == 4 / 200
    assert same["different_replies"] == pytest.approx(1 / 50)
    assert same["words_a_reply"] == 4
