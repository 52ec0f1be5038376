"""``--estimate`` of neural models: exact in size, near in time and memory, and nothing is trained."""

import os
import time

import pytest
from small_texts import MEETING

from nextword.api import train
from nextword.training.budget import forecast


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(MEETING * 400)
    return str(path)


def order(text, model, **sets):
    return train.Order(data=(text,), model=model, tokenizer="bpe", sets={"train.threads": 1, **sets})


def test_parameters_and_disk_are_those_of_the_run(text, tmp_path):
    asked = order(text, "lstm-nano", **{"train.steps": 3})
    told = train.estimate(asked)
    run = train.train(
        text,
        model="lstm-nano",
        tokenizer="bpe",
        set={"train.threads": 1, "train.steps": 3},
        out=tmp_path / "r",
    )
    assert told["parameters"] == run.parameters
    assert told["steps"] == 3
    assert told["minutes"] == pytest.approx(told["seconds"] / 60, abs=0.01)
    disk = sum(path.stat().st_size for path in (tmp_path / "r").iterdir())
    assert abs(told["disk"] - disk) < 0.25 * disk


def test_a_mixture_adds_up_its_parts(text):
    asked = train.Order(
        data=(text,), model="mixture", minutes=0.5, sets={"model.models": ("ngram", "lstm-nano")}
    )
    told = train.estimate(asked)
    assert told["seconds"] == 30
    assert told["parameters"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("model", ["window-tiny", "rnn-tiny", "lstm-tiny", "mingru-mini", "transformer-nano"])
def test_time_and_memory_are_within_a_quarter(text, model, monkeypatch):
    """On a busy machine the time is another one each time, so it is asked for before and after."""
    monkeypatch.setattr(forecast, "process_start", time.monotonic)  # this process began long ago
    sets = {"train.steps": 120, "train.batch": 16, "train.length": 32, "model.dropout": 0.0}
    before = train.estimate(order(text, model, **sets))
    began = time.monotonic()
    run = train.train(text, model=model, tokenizer="bpe", set={"train.threads": 1, **sets})
    took = time.monotonic() - began
    after = train.estimate(order(text, model, **sets))
    assert run.facts.training["steps"] == 120
    if os.getloadavg()[0] > (os.cpu_count() or 1):
        pytest.skip("other programs use the processors")
    low, high = sorted((before["seconds"], after["seconds"]))
    assert 0.75 * low - 2 < took < 1.25 * high + 2
