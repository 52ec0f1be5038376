"""Faults of numbers, settings, text and machine while a network learns or is taken up again.

What was measured is never made worse in silence; a resume with anything else is refused with the difference.
Numbers are those of the list of faults in docs/reliability.md.
"""

import math
import shutil
from dataclasses import replace

import pytest
import torch
from small_trainings import TEXT, disturbed, files, finished, killed_after, order

from nextword.api.train import run
from nextword.core.errors import ConfigError, DataError, RunError, TrainingError
from nextword.core.events import Done
from nextword.store.checkpoints import find_last
from nextword.system import processor, products, threads
from nextword.system.processor import Processor
from nextword.training import update

SAVING = {"train.save_every": 4}


@pytest.fixture(scope="module")
def killed(text, tmp_path_factory):
    """A training with checkpoints of steps 4 and 8."""
    out = tmp_path_factory.mktemp("killed") / "r"
    killed_after(8, order(text, **SAVING), out)
    return out


def poison(monkeypatch, step, value):
    """At the update of a step, for once, a gradient that is no number."""
    real, left = update.clip, [step]

    def poisoned(parameters, *rest):
        left[0] -= 1
        if left[0] == 0:
            parameters[0].grad[0] = value
        return real(parameters, *rest)

    monkeypatch.setattr(update, "clip", poisoned)


@pytest.mark.parametrize("precision", ["fp32", pytest.param("bf16", marks=pytest.mark.needs("bf16"))])
@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_gradient_that_is_no_number_stops_or_is_left_out(value, precision, text, tmp_path, monkeypatch):
    """28, 29."""
    sets = {"train.precision": precision, "train.save_every": 2}
    with monkeypatch.context() as patch:
        poison(patch, 6, value)
        with pytest.raises(
            TrainingError, match=r"the gradient is (inf|nan) at step 6 \(batch 6 of epoch 1\)"
        ):
            finished(order(text, **sets), tmp_path / "stopped")
    assert find_last(tmp_path / "stopped").checkpoint.step == 4
    poison(monkeypatch, 6, value)
    made, notes = finished(order(text, **sets, **{"train.on_nan": "skip"}), tmp_path / "skipped")
    assert any("at step 6" in note and "the batch is skipped" in note for note in notes)
    assert (made.facts.training["skipped"], made.facts.training["steps"]) == (1, 14)


def test_training_that_left_a_batch_out_goes_on_exactly(text, tmp_path, monkeypatch):
    """28: what was left out stays left out after a resume."""
    sets = {"train.on_nan": "skip", "train.save_every": 4}
    for out, act in ((tmp_path / "whole", finished), (tmp_path / "r", lambda *how: killed_after(4, *how))):
        with monkeypatch.context() as patch:
            poison(patch, 3, math.nan)
            act(order(text, **sets), out)
    finished(order(text, **sets), tmp_path / "r", resume=True)
    assert files(tmp_path / "whole") == files(tmp_path / "r")


@pytest.mark.parametrize("family", ["rnn", "transformer"])
@pytest.mark.parametrize("longest", [0, 1])
def test_rate_a_hundred_times_too_high_never_saves_worse_than_it_was(family, longest, text, tmp_path):
    """30: it stops with a sentence, or what is kept is the best that was measured, in numbers."""
    spike = {"train.rate": 100.0, "train.clip": longest, "train.schedule": "constant", "train.valid_every": 1}
    _, error, made = ended(order(text, family, **spike), tmp_path / "r")
    if error is not None:
        assert "set a lower train.rate" in str(error)
        assert not (tmp_path / "r" / "model.safetensors").exists()
        return
    measured = {row["step"]: row["valid_nll"] for row in made.metrics if "valid_nll" in row}
    assert all(torch.isfinite(each).all() for each in made.model.network.state_dict().values())
    assert made.facts.training["best_step"] == min(measured, key=measured.get)


def ended(asked, out):
    """Notes, error and run: one of the last two is None."""
    try:
        made, notes = finished(asked, out)
    except TrainingError as error:
        return [], error, None
    return notes, None, made


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"text.min_count": 3}, r"text\.min_count was \d+ and is 3"),
        ({"train.seed": 4}, r"train\.seed was 3 and is 4"),
        ({"train.length": 9}, r"train\.length was 8 and is 9"),
        ({"data.hold_out": 0.2}, r"data\.hold_out was 0\.05 and is 0\.2"),
        ({"train.precision": "bf16"}, r"train\.precision was auto and is bf16"),
    ],
)
def test_changed_setting_is_refused_with_the_difference(change, words, killed, text, tmp_path):
    """31."""
    shutil.copytree(killed, tmp_path / "r")
    with pytest.raises(ConfigError, match=words):
        finished(order(text, **SAVING, **change), tmp_path / "r", resume=True)


FASTER = dict.fromkeys((f"{kind} {width}" for kind in products.TIMED for width in products.WIDTHS), 2.0)


@pytest.mark.needs("bf16")
@pytest.mark.parametrize("then", ["auto", "bf16"])
@pytest.mark.parametrize(
    "here", [Processor("crashes", why="bf16 products crash"), Processor("missing", why="emulated")]
)
def test_type_that_cannot_be_used_here_is_changed_on_request_only(here, then, text, tmp_path, monkeypatch):
    asked, out = order(text, **SAVING, **{"train.precision": then}), tmp_path / "r"
    monkeypatch.setattr(processor, "_answer", Processor("works", ratios=FASTER))
    killed_after(4, asked, out)
    monkeypatch.setattr(processor, "_answer", here)
    with pytest.raises(ConfigError, match=r"trained in bf16, .* add --set train\.precision=fp32"):
        finished(asked, out, resume=True)
    made, notes = finished(order(text, **SAVING, **{"train.precision": "fp32"}), out, resume=True)
    assert "precision was bf16 before and is fp32 now, so numbers differ slightly from here on" in notes
    assert made.facts.training["precision"] == "fp32"
    assert made.facts.training["steps"] == 14


@pytest.mark.needs("bf16")
def test_chosen_type_is_a_setting_of_the_run_and_kept_on_resume(text, tmp_path, monkeypatch):
    asked, out = order(text, **SAVING, **{"train.precision": "auto"}), tmp_path / "r"
    monkeypatch.setattr(processor, "_answer", Processor("works", ratios=FASTER))
    killed_after(4, asked, out)
    monkeypatch.setattr(processor, "_answer", Processor("works", ratios=dict.fromkeys(FASTER, 0.5)))
    made, notes = finished(asked, out, resume=True)
    assert made.facts.training["precision"] == "bf16"
    assert 'precision = "bf16"' in (out / "config.toml").read_text()
    assert not any("digits" in note for note in notes)


def test_another_tokenizer_or_family_is_refused(killed, text, tmp_path):
    """31."""
    shutil.copytree(killed, tmp_path / "r")
    with pytest.raises(ConfigError, match=r"text\.tokenizer was words and is characters"):
        finished(replace(order(text), tokenizer="characters"), tmp_path / "r", resume=True)
    with pytest.raises(ConfigError, match="family was rnn and is lstm"):
        finished(order(text, "lstm"), tmp_path / "r", resume=True)


@pytest.mark.parametrize("new", [TEXT[:-20], TEXT + "one more line\n", TEXT.replace("mat", "map")])
def test_text_that_was_shortened_lengthened_or_edited_is_refused(new, tmp_path):
    """32."""
    mine = tmp_path / "t.txt"
    mine.write_text(TEXT)
    killed_after(4, order(mine, **SAVING), tmp_path / "r")
    mine.write_text(new)
    with pytest.raises(RunError, match=r"is not the one that .* was started with"):
        finished(order(mine, **SAVING), tmp_path / "r", resume=True)


def test_text_that_grows_while_a_model_learns_changes_nothing_until_it_is_resumed(text, tmp_path):
    """32: what was read at the start is what is learned; a resume notices."""
    mine = tmp_path / "t.txt"
    mine.write_text(TEXT)

    def append():
        with open(mine, "a") as file:
            file.write("one more line\n")

    finished(order(text, **SAVING), tmp_path / "whole")
    events, error = disturbed(order(mine, **SAVING), tmp_path / "r", append)
    assert error is None
    assert isinstance(events[-1], Done)
    assert files(tmp_path / "r") == files(tmp_path / "whole")
    mine.write_text(TEXT)
    killed_after(4, order(mine, **SAVING), tmp_path / "s")
    append()
    with pytest.raises(RunError, match=r"it had [\d,]+ bytes and has [\d,]+"):
        finished(order(mine, **SAVING), tmp_path / "s", resume=True)


def test_text_that_changes_between_two_passes_over_it_is_refused(tmp_path):
    """32: held-out part, tokenizer and ids would be of different texts."""
    mine = tmp_path / "t.txt"
    mine.write_text(TEXT)
    events = run(order(mine), tmp_path / "r")
    next(events)
    mine.write_text(TEXT + "one more line\n")
    with pytest.raises(DataError, match=r"t\.txt: the file changed while being read"):
        list(events)
    assert not (tmp_path / "r").exists()


def test_another_number_of_processors_is_told(text, tmp_path, monkeypatch):
    """33: where the settings leave it to the machine."""
    asked = order(text, **SAVING, **{"train.threads": 0})
    monkeypatch.setattr(threads, "allowed", lambda: 1)
    killed_after(4, asked, tmp_path / "r")
    monkeypatch.setattr(threads, "allowed", lambda: 2)
    _, notes = finished(asked, tmp_path / "r", resume=True)
    assert "threads was 1 before and is 2 now, so the last digits may differ" in notes
