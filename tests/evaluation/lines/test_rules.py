"""Rules that say which lines are kept."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nextword.core.errors import ConfigError
from nextword.evaluation.lines.rules import BUCKETS, KeepRule

WRONG = ["", "bes", "head", "head:0", "head:101", "head:x", "below:0", "below:-1", "below:1.2.3"]


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_rules_are_refused_with_the_allowed_ones(wrong):
    with pytest.raises(ConfigError, match="--keep"):
        KeepRule.parse(wrong)


def test_a_difference_may_be_limited_by_any_number():
    assert KeepRule.parse("below:-0.5", difference=True).limit == -0.5


few = st.lists(st.sampled_from([0.5, 1.0, 1.5, np.inf]), min_size=1, max_size=40)


@given(scores=few, percent=st.floats(1, 100))
def test_rules_keep_exact_counts_and_the_best_first(scores, percent):
    scores = np.array(scores, np.float32)
    mask = KeepRule.parse(f"head:{percent:.3f}").mask(scores)
    count = math.floor(len(scores) * float(f"{percent:.3f}") / 100 + 0.5)
    assert mask.sum() == count
    order = np.argsort(scores, kind="stable")
    assert np.array_equal(np.flatnonzero(mask), np.sort(order[:count]))


def test_buckets_hold_every_line_with_a_score_once():
    scores = np.array([3.0, np.nan, 1.0, 2.0, 5.0, 4.0, 6.0], np.float32)
    rule = KeepRule.parse("buckets")
    assert rule.mask(scores).all()
    found = rule.buckets(scores)
    assert [BUCKETS[place] if place >= 0 else None for place in found] == [
        "middle", None, "head", "head", "tail", "middle", "tail",
    ]  # fmt: skip
    assert KeepRule.parse("head:30").buckets(scores) is None
    with pytest.raises(ConfigError, match="head and tail have P percent each, at most 50"):
        KeepRule.parse("buckets:60")
