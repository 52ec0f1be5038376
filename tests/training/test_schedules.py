"""Rates over a training, and plans that are revised while the minutes run."""

import math
import sys
import types

import pytest

from nextword.core import catalog
from nextword.models.training import NeuralTrainSettings
from nextword.training.optimizers import rate_factor


@pytest.mark.parametrize("name", ["cosine", "linear", "sqrt"])
def test_rate_rises_then_falls_to_zero(name):
    settings = NeuralTrainSettings(schedule=name, warmup=0.1)
    assert rate_factor(settings, 0.05) == pytest.approx(0.5)
    assert rate_factor(settings, 0.1) == 1.0
    assert rate_factor(settings, 1.0) == pytest.approx(0.0, abs=1e-12)
    falling = [rate_factor(settings, 0.1 + 0.009 * i) for i in range(101)]
    assert falling == sorted(falling, reverse=True)


def test_rate_stays_until_the_last_share_of_the_training():
    settings = NeuralTrainSettings(schedule="sqrt", warmup=0.0, decay=0.2)
    assert rate_factor(settings, 0.79) == 1.0
    assert rate_factor(settings, 0.85) == pytest.approx(1 - math.sqrt(0.25))
    assert rate_factor(NeuralTrainSettings(schedule="constant", warmup=0.0), 0.99) == 1.0
    assert rate_factor(NeuralTrainSettings(schedule="linear", warmup=0.0, decay=0.0), 1.0) == 1.0


def test_a_schedule_registered_from_outside_is_used(monkeypatch):
    monkeypatch.setitem(catalog.SLOTS["schedule"], "squared", "schedules_of_mine:squared")
    mine = types.ModuleType("schedules_of_mine")
    mine.squared = lambda x: (1 - x) ** 2
    monkeypatch.setitem(sys.modules, "schedules_of_mine", mine)
    settings = NeuralTrainSettings(schedule="squared", warmup=0.0)
    assert [rate_factor(settings, x) for x in (0.25, 0.5, 1.0)] == [0.5625, 0.25, 0.0]
