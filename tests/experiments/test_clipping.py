"""The cliff: its slope is that of its loss, and only a full step from it is thrown far away."""

from __future__ import annotations

import numpy as np
import pytest

from nextword.experiments import clipping
from nextword.experiments.finding import Verdict
from nextword.experiments.small import Learned


def test_the_slope_of_the_cliff_is_that_of_its_loss():
    for w in (4.5, 4.94, 5.3):
        numeric = (clipping.unit_loss(w + 1e-6)[0] - clipping.unit_loss(w - 1e-6)[0]) / 2e-6
        assert clipping.unit_loss(w)[1] == pytest.approx(numeric, rel=1e-3, abs=1e-6)


def test_a_full_step_from_the_cliff_raises_the_loss_for_long_and_a_clipped_one_does_not():
    free, cut = clipping.descend(0.0), clipping.descend(clipping.CUT)
    edge, lands = clipping._thrown(free)
    assert edge - lands > 1
    assert min(cut.weights) == clipping.WEIGHT
    half = clipping.DESCENT // 2
    assert min(free.losses[half:]) > free.losses[0] > max(cut.losses[half:])


def test_clipped_steps_are_no_longer_than_rate_times_c():
    steps = np.abs(np.diff(clipping.descend(clipping.CUT).weights))
    assert steps.max() == pytest.approx(clipping.RATE * clipping.CUT)


def learned(first, last, broke=""):
    return Learned(None, [first, *[last] * clipping.LAST], [1.0, 5000.0], broke=broke)


def judged(free, cut):
    found = {(kind, rate): [runs] for kind, runs in ((False, free), (True, cut)) for rate in clipping.RATES}
    findings = clipping._judged(found, clipping.descend(0.0), clipping.descend(clipping.CUT), quick=False)
    return {each.claim: each.verdict for each in findings}


def test_clipping_is_on_course_only_if_fewer_diverge_and_the_loss_is_lower():
    assert judged(learned(4, 3, "NaN"), learned(4, 3))[clipping.COURSE] is Verdict.HELD
    assert judged(learned(4, 2), learned(4, 3))[clipping.COURSE] is Verdict.FAILED
    assert judged(learned(4, 3.5), learned(4, 3))[clipping.COURSE] is Verdict.PARTLY


def test_a_run_that_ends_above_its_first_loss_has_diverged():
    assert clipping.diverged(learned(4, 5))
    assert not clipping.diverged(learned(4, 3))
    assert clipping.diverged(learned(4, 3, "the loss is NaN"))
