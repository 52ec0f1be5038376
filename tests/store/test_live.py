"""What a training run reports while it is running."""

from __future__ import annotations

from pathlib import Path

import pytest

from nextword.core.events import Done, Measure, Note, Step, Valid
from nextword.store.live import LIVE, reported, running
from nextword.store.reading import open_run
from nextword.store.writing import new_run


def _step(step: int) -> Step:
    return Step(step, 10, 1.5, 4.5, 100 * step, 2.0, 0.1, 1.0, 50.0, 0)


def test_rows_and_the_last_step_are_there_while_it_runs(tmp_path):
    events = [Note("begins"), Measure({"step": 1, "loss": 3.0}), _step(1), _step(2),
              Valid(2, 2.0, 200, {"nll": 1.0}, "1 nat", True), Done("made")]  # fmt: skip
    with new_run(tmp_path / "a") as folder:
        for event in reported(events, folder):
            if isinstance(event, Valid):
                (found,) = running(tmp_path)
                assert found.target == tmp_path / "a"
                assert found.rows == [{"step": 1, "loss": 3.0}]
                assert (found.last["step"], found.last["seconds_left"]) == (2, 4.5)
                assert found.last["shown"] == "1 nat"
    assert running(tmp_path) == []
    assert LIVE not in open_run(tmp_path / "a").names


def test_half_a_line_and_other_rubbish_are_skipped(tmp_path):
    with new_run(tmp_path / "a") as folder:
        (folder.path / LIVE).write_bytes(b'{"step": 1}\n[1]\n{"now": 3}\nnull\n\xff\n{"step": 2')
        (found,) = running(tmp_path)
        (folder.path / LIVE).unlink()
    assert found.rows == [{"step": 1}, {"now": 3}]
    assert found.last == {}


def test_folder_of_a_killed_run_is_not_running(tmp_path):
    (tmp_path / f".a.new-1-{'0' * 16}").mkdir()
    assert running(tmp_path) == []


def test_nothing_is_left_when_it_fails(tmp_path):
    def failing():
        yield Measure({"step": 1})
        raise KeyError("stop")

    with new_run(tmp_path / "a") as folder:
        with pytest.raises(KeyError):
            list(reported(failing(), folder))
        assert not (folder.path / LIVE).exists()


def test_folder_that_is_missing_has_no_runs():
    assert running(Path("/nowhere/at/all")) == []
