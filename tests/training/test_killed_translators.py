"""Encoder-decoders that died go on to the same files, byte for byte."""

import json

import pytest
from pairs import table
from small_trainings import TIME, finished, killed_after

from nextword.api.train import Order
from nextword.core.errors import ConfigError
from nextword.models.seq2seq import TRANSFORMER

SMALL = {
    "model.hidden": 8, "model.layers": 1, "train.steps": 12, "train.batch": 4, "train.threads": 1,
    "train.valid_every": 4, "train.log_every": 1, "train.precision": "fp32", "text.tokenizer": "words",
}  # fmt: skip
KINDS = {
    "gru": {"train.forcing": "scheduled(linear)", "train.ema": 0.9},
    "lstm": {"model.attend": "after", "train.metric": "bleu", "model.layers": 2},
    "transformer": {"train.average": 2, "train.accumulate": 2, "model.dropout": 0.2, "text.joint": False},
}


def files(out):
    """Return the weights, the vocabularies, and all rows but their time fields."""
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    rows = [{key: value for key, value in row.items() if key not in TIME} for row in rows]
    names = ["model.safetensors", "tokenizer.json", "languages.json"]  # the settings say how often to save
    return [rows, {name: (out / name).read_bytes() for name in names}]


@pytest.mark.parametrize("model", KINDS)
def test_a_killed_training_ends_with_the_same_bytes(model, tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text(table(60))

    def order(**sets):
        return Order((str(path),), task="translate", model=model, sets=SMALL | KINDS[model] | sets, seed=3)

    finished(order(), tmp_path / "whole")
    for number, step in enumerate((1, 7)):
        killed_after(step, order(**{"train.save_every": step}), tmp_path / "r", resume=number > 0)
    finished(order(), tmp_path / "r", resume=True)
    assert files(tmp_path / "whole") == files(tmp_path / "r")


def test_a_training_begun_before_a_default_changed_goes_on_as_it_began(tmp_path, monkeypatch):
    path = tmp_path / "t.tsv"
    path.write_text(table(60))

    def order(**sets):
        return Order((str(path),), task="translate", model="transformer", sets=SMALL | sets, seed=3)

    finished(order(**{"train.optimizer": "muon"}), tmp_path / "whole")
    with monkeypatch.context() as before:
        before.setattr(TRANSFORMER, "defaults", {**TRANSFORMER.defaults, "train.optimizer": "muon"})
        killed_after(7, order(**{"train.save_every": 7}), tmp_path / "r")
    assert "train.optimizer" not in TRANSFORMER.defaults
    made, _ = finished(Order(), tmp_path / "r", resume=True)
    assert made.settings.train.optimizer == "muon"
    assert files(tmp_path / "whole") == files(tmp_path / "r")
    killed_after(7, order(**{"train.save_every": 7}), tmp_path / "r", overwrite=True)
    with pytest.raises(ConfigError, match=r"train.optimizer was adamw and is sgd"):
        finished(order(**{"train.optimizer": "sgd"}), tmp_path / "r", resume=True)
