"""Networks and mixtures in a comparison: same text, shared tokenizer, seeds as rows of their own."""

from __future__ import annotations

import json

import numpy as np
import pytest
from comparisons import result, write
from event_streams import notes_of

from nextword.comparison.progress import RunPace
from nextword.comparison.setup import set_up
from nextword.core.events import Stage
from nextword.runs import saved
from nextword.runs.settings import changed
from nextword.training.budget import calibrate

pytest.importorskip("torch")

SMALL = {
    "model.order": 2, "model.layers": 1, "model.hidden": 8,
    "train.steps": 2, "train.batch": 2, "train.length": 16, "train.threads": 1, "text.size": 300,
}  # fmt: skip
MODELS = ("ngram", "lstm", "mixture")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("networks")
    text = write(folder / "text.txt", 400)
    return folder, text, *result(set_up([text], MODELS, sets=SMALL, out=folder / "out", seeds=2))


def test_every_seed_is_a_row_and_a_run(finished):
    folder, _, found, _ = finished
    assert sorted(row.run for row in found.rows) == [
        "lstm", "lstm-seed1", "mixture", "mixture-seed1", "ngram"
    ]  # fmt: skip
    assert {each.name: len(each.rows) for each in found.models} == {"ngram": 1, "lstm": 2, "mixture": 2}
    first, second = (saved.load(folder / "out" / run).settings.train.seed for run in ("lstm", "lstm-seed1"))
    assert second == first + 1


def test_all_share_one_tokenizer(finished):
    folder = finished[0]
    digests = {
        saved.load(folder / "out" / run).folder.manifest.files["tokenizer.json"].sha256
        for run in ("ngram", "lstm", "mixture")
    }
    assert len(digests) == 1


def test_networks_have_curves_speeds_and_parameters(finished):
    row = next(row for row in finished[2].rows if row.run == "lstm")
    assert row.curve
    assert row.of == "parameters"
    assert row.numbers > 100
    assert row.train_speed > 0
    assert row.write_speed > 0
    assert row.seed == 0
    assert len(row.blocks) == len(finished[2].models[0].first.blocks) > 5
    assert sum(row.blocks) == pytest.approx(row.bits_per_byte * row.bytes, rel=1e-6)


def test_a_mixture_is_no_worse_than_its_parts_and_says_its_weights(finished):
    by_name = {each.name: each for each in finished[2].models}
    assert by_name["mixture"].value <= by_name["ngram"].value + 0.01
    assert "ngram" in by_name["mixture"].note
    assert by_name["mixture"].first.train_seconds >= by_name["ngram"].first.train_seconds


def test_the_page_shows_curves_and_the_mixture(finished):
    text = finished[2].report.read_text()
    for part in ("How they learn", "The mixture joins", "sparsity problem", "over 2 seeds"):
        assert part in text


def test_finished_seeds_are_kept_when_more_are_asked_for(finished):
    folder, text, first, _ = finished
    again, events = result(set_up([text], MODELS, sets=SMALL, out=folder / "out", seeds=2))
    assert json.dumps(again.to_json()) == json.dumps(first.to_json())
    assert not any(" of 5: " in note for note in notes_of(events))
    _, events = result(set_up([text], ["ngram", "lstm"], sets=SMALL, out=folder / "out", seeds=3))
    told = notes_of(events)
    assert sum("already finished" in message for message in told) == 3
    assert any(message.startswith("4 of 4: lstm-seed2") for message in told)


def test_what_is_measured_is_not_what_is_tuned_on(tmp_path):
    text = write(tmp_path / "text.txt", 300)
    setup = set_up([text], MODELS, sets=SMALL, out=tmp_path / "out")
    sides = (setup.train, setup.tune, setup.held)
    parts = [b"".join(block.data for block in side.blocks()) for side in sides]
    with open(text, "rb") as file:
        assert b"".join(parts) == file.read()
    assert all(parts)
    assert set_up([text], ["ngram"], out=tmp_path / "out").tune is None


def test_several_tokenizers_stand_in_one_table(tmp_path):
    text = write(tmp_path / "text.txt", 150)
    setup = set_up([text], ["ngram", "lstm"], tokenizer=["words", "bytes"], sets=SMALL, out=tmp_path / "out")
    found, _ = result(setup)
    names = {each.name for each in found.models}
    assert names == {"ngram words", "lstm words", "ngram bytes", "lstm bytes"}
    heads = {tuple(word for word, _ in each.first.surprise[0]) for each in found.models}
    assert len(heads) == 1
    assert len({len(each.first.blocks) for each in found.models}) == 1
    assert "do not compare" in found.report.read_text()


def test_the_time_left_is_told_before_each_model(tmp_path):
    text = write(tmp_path / "text.txt", 100)
    setup = set_up([text], MODELS, out=tmp_path / "out", minutes=2, seeds=2)
    pace = RunPace(setup)
    assert pace.line(setup.entries[0]) == "1 of 5: ngram; about 5 minutes left in all"
    pace.skip(setup.entries[0])
    assert pace.line(setup.entries[1]).startswith("2 of 5: lstm, 2 minutes; about 4 minutes")


def test_stages_name_their_model(finished):
    stages = [event.name for event in finished[3] if isinstance(event, Stage)]
    assert any(name.startswith("lstm: ") for name in stages)
    assert np.mean([":" in name for name in stages]) > 0.5


def test_a_network_that_learns_nothing_does_not_stop_the_others(tmp_path):
    text = write(tmp_path / "text.txt", 100)
    wild = {"model.activation": "relu", "train.optimizer": "sgd", "train.rate": 1000.0, "train.clip": 0.0}
    wild = SMALL | wild | {"train.steps": 30}
    found, _ = result(set_up([text], ["rnn", "ngram"], sets=wild, out=tmp_path / "out"))
    failed = next(each for each in found.models if each.name == "rnn")
    assert found.models[0].name == "ngram"
    assert failed.note
    assert not failed.ranks
    assert "rnn: " in str(found)


def test_every_seed_has_the_plan_of_the_first_also_after_a_resume(tmp_path, monkeypatch):
    text = write(tmp_path / "text.txt", 200)
    sizes = iter([8, 16, 24, 32])  # what a new calibration would choose: another size each time

    def choose(candidates, prepared, conditions, allowance):
        first = next(iter(candidates))
        first.settings = changed(first.settings, {"model.hidden": next(sizes)})
        return first

    monkeypatch.setattr(calibrate, "_choose", choose)
    few = {name: value for name, value in SMALL.items() if name not in ("model.hidden", "model.order")}

    def compared(seeds):
        setup = set_up([text], ["lstm"], sets=few, out=tmp_path / "out", minutes=2.0, seeds=seeds)
        return result(setup)

    found, _ = compared(2)
    again, told = compared(3)
    assert any("the one made before for lstm" in note for note in notes_of(told))
    assert [row.run for row in found.rows + again.rows].count("lstm-seed2") == 1
    assert {row.numbers for row in again.rows} == {found.rows[0].numbers}
    hidden = {saved.load(tmp_path / "out" / row.run).settings.model.hidden for row in again.rows}
    assert hidden == {8}
    assert "planned once for its 3 seeds" in str(again)
    assert "planned once for its 3 seeds" in again.report.read_text()
    assert again.to_json()["models"][0]["plan"]["lstm"]["settings"]["model.hidden"] == 8
