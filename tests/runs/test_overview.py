"""All runs of a folder: finished, running, unfinished and damaged ones, without loading a model."""

from __future__ import annotations

import json

import pytest
from small_texts import MEETING, TWO_DOCUMENTS

import nextword
from nextword.core.events import Step
from nextword.runs.overview import POINTS, curves, overview, thinned

TINY = {"model.hidden": 8, "train.steps": 4, "train.valid_every": 2, "train.precision": "fp32"}


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text(MEETING * 20)
    return path


def test_finished_run_has_settings_and_facts(text, tmp_path):
    nextword.train(text, model="ngram", set={"model.order": 2}, out=tmp_path / "runs" / "counts")
    (found,) = overview(tmp_path / "runs")
    assert (found.name, found.state, found.model, found.tokenizer) == ("counts", "finished", "ngram", "words")
    assert found.settings["model.order"] == "2"
    assert found.tokens == nextword.load(tmp_path / "runs" / "counts").facts.data.tokens
    json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.needs("torch")
def test_curve_grows_while_a_network_trains_and_stays_when_it_is_done(tmp_path):
    from small_trainings import order

    from nextword.api.train import run

    (tmp_path / "t.txt").write_text(TWO_DOCUMENTS * 15)
    seen = []
    for event in run(order(tmp_path / "t.txt"), tmp_path / "runs" / "a"):
        if isinstance(event, Step):
            (found,) = overview(tmp_path / "runs")
            assert found.state == "running"
            seen.append((found.steps, len(found.curves.get("loss", []))))
    assert len(seen) > 1
    assert seen[0][0][1] == 14
    assert seen[-1][1] > seen[0][1]
    (found,) = overview(tmp_path / "runs")
    assert (found.state, found.steps[0]) == ("finished", 14)
    assert len(found.curves["loss"]) == 14
    assert found.curves["valid_bits_per_byte"][-1][1] > 0
    assert [each["step"] for each in found.samples] == [14, *(each["step"] for each in found.samples[1:])]
    assert all(each["text"] for each in found.samples)
    again = nextword.train(tmp_path / "t.txt", model="lstm", set=TINY)  # the same weights write the same
    alike = nextword.train(tmp_path / "t.txt", model="lstm", set=TINY)
    wrote = [[row["sample"] for row in run.metrics if "sample" in row] for run in (again, alike)]
    assert len(wrote[0]) == 2
    assert wrote[0] == wrote[1]


@pytest.mark.needs("torch")
def test_killed_run_is_unfinished_with_the_curve_of_its_checkpoint(tmp_path):
    from small_trainings import killed_after, order

    (tmp_path / "t.txt").write_text(TWO_DOCUMENTS * 15)
    killed_after(4, order(tmp_path / "t.txt", **{"train.save_every": 4}), tmp_path / "runs" / "a")
    (found,) = overview(tmp_path / "runs")
    assert (found.name, found.state, found.steps) == ("a", "unfinished", (4, None))
    assert len(found.curves["loss"]) == 4


def test_damaged_run_says_so_and_the_others_are_there(text, tmp_path):
    for name in ("good", "bad"):
        nextword.train(text, model="ngram", out=tmp_path / "runs" / name)
    (tmp_path / "runs" / "bad" / "MANIFEST.json").write_text("{")
    bad, good = overview(tmp_path / "runs")
    assert (bad.state, good.state) == ("damaged", "finished")
    assert "MANIFEST.json" in bad.problem


def test_other_folders_are_not_runs(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "file.txt").write_text("x")
    assert overview(tmp_path) == []
    assert overview(tmp_path / "missing") == []


def test_rows_that_are_not_numbers_are_left_out():
    rows = [{"seconds": 1, "tokens": 2, "loss": 3.0}, {"seconds": None, "tokens": 2, "loss": 3.0},
            {"seconds": 1, "tokens": 2, "loss": "x"}, {"plan": {}}]  # fmt: skip
    assert curves(rows) == {"loss": [[1.0, 2.0, 3.0]]}


def test_long_curve_is_thinned_to_means_and_keeps_its_end():
    points = [[float(n), 10.0 * n, 1.0] for n in range(10_000)]
    few = thinned(points)
    assert len(few) <= POINTS
    assert few[-1] == points[-1]
    assert few[0][0] == pytest.approx(16.5, abs=1)
    assert thinned(points[:5]) == points[:5]
