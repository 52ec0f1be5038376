"""A whole bench on a small text: planned once, resumed run by run, written in four forms."""

from __future__ import annotations

import json
import shutil

import pytest
from benches import quick, setup_of
from comparisons import write
from event_streams import notes_of, until_done

from nextword.comparison.bench import bench as story
from nextword.comparison.bench.bench import bench
from nextword.comparison.bench.plan import key_of
from nextword.comparison.bench.setup import set_up
from nextword.core.errors import ConfigError
from nextword.core.events import Measure, Note
from nextword.runs import saved


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    write(folder / "text.txt", 600)
    with pytest.MonkeyPatch.context() as patch:
        quick(patch)
        yield folder, *until_done(bench(setup_of(folder)))


def test_every_row_has_its_numbers(finished):
    _, found, events = finished
    rows = {row.preset: row.first for row in found.standing.rows}
    assert set(rows) == {"narang/vanilla", "narang/swiglu", "narang/elu"}
    for run in rows.values():
        assert run.steps == -(-1500 // 64)
        assert run.tokens >= 1500
        assert 0 < run.bits_per_byte < 8
        assert run.early > 0
        assert run.final > 0
        assert run.speed > 0
        assert run.operations > 0
        assert len(run.losses) >= 2
        assert 0.001 < run.rate < 0.09
    assert rows["narang/vanilla"].relative_speed == 1.0
    notes = notes_of(events)
    assert any("pilot: 2 seeds of the baseline" in note for note in notes)
    assert any(note.startswith("3 rows x 1 seeds, 1,500 tokens for each run") for note in notes)


def test_the_files_hold_what_is_shown(finished):
    folder, found, _ = finished
    out = folder / "out"
    assert found.report == out / "report.html"
    names = sorted(path.name for path in (out / "rows").iterdir())
    assert names == ["narang-elu.json", "narang-swiglu.json", "narang-vanilla.json"]
    for name in ("table.csv", "table.md", "table.tex"):
        assert "SwiGLU" in (out / name).read_text()
    assert len(json.loads(json.dumps(found.to_json()))["rows"]) == 3


def test_a_run_is_opened_from_anywhere(finished, tmp_path):
    """It holds its tokenizer, and does not look for the file that all rows shared."""
    folder, _, _ = finished
    moved = shutil.copytree(folder / "out" / "runs" / "narang-swiglu", tmp_path / "moved")
    shared = folder / "out" / "tokenizers"
    shared.rename(folder / "hidden")
    try:
        assert saved.load(moved).tokenizer.name == "bpe"
    finally:
        (folder / "hidden").rename(shared)


def test_another_machine_continues_with_its_own_precision_but_not_with_another_model(finished):
    folder, _, _ = finished
    other = setup_of(folder, sets={"train.precision": "bf16", "train.threads": 2})
    assert key_of(other, "narang/elu") == key_of(setup_of(folder), "narang/elu")
    wider = setup_of(folder, sets={"model.inner": 48})
    assert key_of(wider, "narang/elu") != key_of(setup_of(folder), "narang/elu")


def test_a_finished_run_is_not_trained_again_even_without_its_model(finished, monkeypatch):
    folder, first, _ = finished
    shutil.rmtree(folder / "out" / "runs" / "narang-elu")
    monkeypatch.setattr(story, "train", None)  # nothing may be trained
    again, events = until_done(bench(setup_of(folder)))
    assert "3 of 3 runs are already finished" in notes_of(events)
    assert str(again) == str(first)


def test_another_seed_adds_its_runs_and_keeps_the_plan(finished):
    folder, _, _ = finished
    plans = {path.name: path.read_text() for path in (folder / "out" / "plans").iterdir()}
    found, events = until_done(bench(setup_of(folder, seeds=2)))
    assert "3 of 6 runs are already finished" in notes_of(events)
    assert any("for the 3 runs that are left" in note for note in notes_of(events))
    assert all(len(row.runs) == 2 for row in found.standing.rows)
    assert {path.name: path.read_text() for path in (folder / "out" / "plans").iterdir()} == plans


def test_parameters_are_matched_by_the_width(tmp_path, monkeypatch):
    quick(monkeypatch)
    write(tmp_path / "text.txt", 300)
    found, _ = until_done(bench(setup_of(tmp_path, "untied", tokens=300, match="parameters")))
    counts = {row.preset: row.first.parameters for row in found.standing.rows}
    assert counts["narang/untied"] == pytest.approx(counts["narang/vanilla"], rel=0.3)
    plan = json.loads((tmp_path / "out" / "plans" / "narang-untied.json").read_text())
    assert "model.hidden" in plan["sizes"]


def test_operations_are_matched_by_the_steps(tmp_path, monkeypatch):
    quick(monkeypatch)
    write(tmp_path / "text.txt", 300)
    more = {"sets": {"model.layers": 2}, "tokens": 1500, "match": "operations"}
    found, _ = until_done(bench(setup_of(tmp_path, "mixture-of-softmaxes", **more)))
    first, second = sorted((row.first for row in found.standing.rows), key=lambda run: run.operations)
    assert second.operations > first.operations
    assert second.steps * second.operations == pytest.approx(first.steps * first.operations, rel=0.1)


def test_a_killed_run_continues_from_its_last_checkpoint(tmp_path, monkeypatch):
    quick(monkeypatch)
    sets = {"sets": {"train.save_every": 5}}
    found = {}
    for name in ("killed", "whole"):
        folder = tmp_path / name
        folder.mkdir()
        write(folder / "text.txt", 300)
        if name == "killed":
            events, is_run = bench(setup_of(folder, "vanilla", **sets)), False
            for event in events:
                is_run = is_run or (isinstance(event, Note) and event.message.startswith("1 of 1"))
                if is_run and isinstance(event, Measure) and event.values.get("step", 0) >= 12:
                    break
            events.close()
        done, _ = until_done(bench(setup_of(folder, "vanilla", **sets)))
        found[name] = done.standing.rows[0].first
    run = tmp_path / "killed" / "out" / "runs" / "narang-vanilla"
    assert json.loads((run / "training.json").read_text())["training"]["resumed"] == [10]
    assert found["killed"].bits_per_byte == found["whole"].bits_per_byte


@pytest.mark.parametrize("key", ["train.steps", "train.rate", "train.seed"])
def test_what_the_bench_chooses_cannot_be_set(tmp_path, key):
    write(tmp_path / "text.txt", 60)
    with pytest.raises(ConfigError, match=f"'{key}' cannot be set for --rows"):
        setup_of(tmp_path, sets={key: 1})


def test_a_model_that_counts_has_no_budget(tmp_path):
    write(tmp_path / "text.txt", 60)
    with pytest.raises(ConfigError, match="does not learn by steps"):
        set_up([tmp_path / "text.txt"], "ngram", tokens=10, out=tmp_path / "out")
