"""Sentences whose noun stands far back, and how far back a network recalls it."""

from __future__ import annotations

import numpy as np
import pytest

from nextword.data.batches.batch import NOT_COUNTED
from nextword.experiments import reach
from nextword.experiments.finding import Verdict


def test_the_noun_stands_as_far_back_as_it_should():
    for distance in (5, 9, 40):
        ids, nouns = reach.make_rows(np.random.default_rng(0), 6, distance)
        assert (ids[:, -distance] == nouns).all()
        others = np.delete(ids, ids.shape[1] - distance, axis=1)
        assert (others >= reach.FIRST_WORD).all()


def test_reach_ends_at_the_first_distance_that_is_not_recalled():
    assert reach.reach(np.array([0.9, 0.6, 0.5, 1.0]), (5, 7, 10, 14)) == 7
    assert reach.reach(np.array([0.1, 0.9]), (5, 7)) == 0
    assert reach.reach(np.array([1.0, 1.0]), (5, 7)) == 7


def test_only_the_noun_is_learned_from():
    batch = reach.make_batch(np.random.default_rng(3))
    assert (batch.targets_BT[:, :-1] == NOT_COUNTED).all()
    assert ((batch.targets_BT[:, -1] >= 3) & (batch.targets_BT[:, -1] < reach.FIRST_WORD)).all()


def test_about_seven_is_judged_seed_by_seed():
    assert reach.about([7, 10, 14], 7) is Verdict.HELD
    assert reach.about([14, 80], 7) is Verdict.PARTLY
    assert reach.about([320, 320], 100) is Verdict.FAILED


def test_further_means_every_seed_is():
    assert reach.further([320, 320], [14, 80]) is Verdict.HELD
    assert reach.further([40, 320], [14, 80]) is Verdict.OPEN
    assert reach.further([7, 7], [7, 80]) is Verdict.FAILED


def test_seeds_are_drawn_one_by_one_and_their_table_has_the_standard_deviation(monkeypatch):
    drawn = []
    monkeypatch.setattr(reach, "lines", lambda series, *_: drawn.extend(series) or "")
    chart = reach._picture({"rnn": np.array([[0.2, 0.4], [0.6, 0.9]])}, (5, 7))
    assert [each.points[0][1] for each in drawn] == pytest.approx([20, 60])
    assert not any(each.spreads for each in drawn)
    assert chart.table.rows[0][1] == f"40 ± {100 * float(np.std([0.2, 0.6], ddof=1)):.0f}"
    assert "± in the numbers is one standard deviation over seeds" in chart.caption
