"""What takes long says so before it begins."""

from __future__ import annotations

from nextword.api import lab
from nextword.core import catalog
from nextword.core.events import Done, Note
from nextword.experiments import durations, everything


def first_of(name, monkeypatch, **options):
    def nothing(**_):
        yield Done("made")

    monkeypatch.setattr(catalog, "find", lambda slot, name: nothing)
    monkeypatch.setattr(everything, "run_all", nothing)
    return next(iter(lab.experimenting(name, **options)))


def test_every_experiment_has_a_duration():
    assert set(durations.SECONDS) == set(catalog.names("lab"))


def test_a_long_experiment_says_beforehand_how_long_it_takes(monkeypatch):
    first = first_of("reach", monkeypatch)
    assert isinstance(first, Note)
    assert "takes about" in first.message
    assert first_of("all", monkeypatch).message.endswith("minutes on one core, longer if the machine is busy")


def test_a_short_one_or_a_quick_one_says_nothing(monkeypatch):
    assert isinstance(first_of("counts", monkeypatch), Done)
    assert isinstance(first_of("reach", monkeypatch, quick=True), Done)
    assert isinstance(first_of("reach", monkeypatch, run="somewhere"), Done)


def test_seconds_and_minutes_are_rounded():
    assert [durations._shown(seconds) for seconds in (34, 89, 90, 400)] == [
        "30 seconds", "90 seconds", "2 minutes", "7 minutes",
    ]  # fmt: skip
