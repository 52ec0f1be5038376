"""Rates over a training, and plans that are revised while the minutes run."""

import math
import sys
import types

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nextword.core import catalog
from nextword.models.training import NeuralTrainSettings
from nextword.training.progress import Plan
from nextword.training.schedules import factor


@pytest.mark.parametrize("name", ["cosine", "linear", "sqrt"])
def test_rate_rises_then_falls_to_zero(name):
    settings = NeuralTrainSettings(schedule=name, warmup=0.1)
    assert factor(settings, 0.05) == pytest.approx(0.5)
    assert factor(settings, 0.1) == 1.0
    assert factor(settings, 1.0) == pytest.approx(0.0, abs=1e-12)
    falling = [factor(settings, 0.1 + 0.009 * i) for i in range(101)]
    assert falling == sorted(falling, reverse=True)


def test_rate_stays_until_the_last_share_of_the_training():
    settings = NeuralTrainSettings(schedule="sqrt", warmup=0.0, decay=0.2)
    assert factor(settings, 0.79) == 1.0
    assert factor(settings, 0.85) == pytest.approx(1 - math.sqrt(0.25))
    assert factor(NeuralTrainSettings(schedule="constant", warmup=0.0), 0.99) == 1.0
    assert factor(NeuralTrainSettings(schedule="linear", warmup=0.0, decay=0.0), 1.0) == 1.0


def test_a_schedule_registered_from_outside_is_used(monkeypatch):
    monkeypatch.setitem(catalog.SLOTS["schedule"], "squared", "schedules_of_mine:squared")
    mine = types.ModuleType("schedules_of_mine")
    mine.squared = lambda x: (1 - x) ** 2
    monkeypatch.setitem(sys.modules, "schedules_of_mine", mine)
    settings = NeuralTrainSettings(schedule="squared", warmup=0.0)
    assert [factor(settings, x) for x in (0.25, 0.5, 1.0)] == [0.5625, 0.25, 0.0]


def test_progress_of_a_fixed_plan_is_the_middle_of_each_step():
    plan = Plan.of(4)
    assert [plan.progress(step) for step in (1, 2, 3, 4)] == pytest.approx([0.125, 0.375, 0.625, 0.875])


@given(st.lists(st.integers(1, 500), min_size=1, max_size=6), st.data())
def test_revised_plan_never_goes_back_and_ends_at_one(totals, data):
    plan, step, before = Plan.of(totals[0]), 0, 0.0
    for total in totals[1:]:
        for _ in range(data.draw(st.integers(0, 5))):
            step += 1
            assert plan.progress(step) >= before
            before = plan.progress(step)
        plan.revise(step, step + total)
    assert Plan.from_json(plan.to_json()) == plan
    assert plan.progress(plan.steps) <= 1.0
    assert plan.progress(plan.steps + 1) == pytest.approx(1.0)


def test_what_was_spent_before_a_revision_stays_spent():
    plan = Plan.of(100)
    plan.revise(50, 60)
    assert plan.progress(55) == pytest.approx(0.5 + 0.5 * 4.5 / 10)
    assert plan.progress(20) == pytest.approx(0.195)
