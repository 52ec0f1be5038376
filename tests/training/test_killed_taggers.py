"""Taggers and classifiers that died go on to the same files, byte for byte."""

import json

import numpy as np
import pytest
from labelled_texts import labelled_texts, tagged_sentences
from small_trainings import TIME, finished, killed_after

from nextword.api.train import Order
from nextword.core.events import returned
from nextword.core.task import Preparation
from nextword.runs.settings import plan

DATA = {"tag": tagged_sentences, "classify": lambda: labelled_texts(160)}
SMALL = {
    "model.hidden": 8, "model.embedding": 8, "model.spelling_width": 8, "train.steps": 24, "train.batch": 2,
    "train.threads": 1, "train.valid_every": 3, "train.log_every": 1, "data.hold_out": 0.2,
}  # fmt: skip
KINDS = {
    "tag": {
        "lstm": {"model.spelling": "cnn"}, "gru": {"model.bidirectional": "tied"},
        "transformer": {"model.head": "softmax"}, "window": {"train.ema": 0.9},
    },
    "classify": {
        "lstm": {"model.dropout_weight": 0.3}, "rnn": {"model.pooling": "attention"},
        "transformer": {"train.accumulate": 2}, "convolution": {"train.average": 2, "train.patience": 5},
    },
}  # fmt: skip
CASES = [(task, model) for task, models in KINDS.items() for model in models]


def order(task, model, path, **sets):
    return Order((str(path),), task=task, model=model, sets=SMALL | KINDS[task].get(model, {}) | sets, seed=3)


def files(out):
    """Every file that a model consists of, and all rows but their time fields."""
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    rows = [{key: value for key, value in row.items() if key not in TIME} for row in rows]
    own = [path for path in sorted(out.iterdir()) if path.suffix in (".safetensors", ".npy", ".json")]
    return [rows, {path.name: path.read_bytes() for path in own if path.name not in ABOUT}]


ABOUT = ("training.json", "MANIFEST.json")  # they have times in them


@pytest.mark.parametrize(("task", "model"), CASES)
def test_a_killed_training_ends_with_the_same_bytes(task, model, tmp_path):
    path = tmp_path / ("t.conll" if task == "tag" else "t.tsv")
    path.write_text(DATA[task]())
    finished(order(task, model, path), tmp_path / "whole")
    first = True
    for step in (1, 5, 13):
        saving = order(task, model, path, **{"train.save_every": step})
        killed_after(step, saving, tmp_path / "r", resume=not first)
        first = False
    finished(order(task, model, path), tmp_path / "r", resume=True)
    whole, resumed = files(tmp_path / "whole"), files(tmp_path / "r")
    assert whole[0] == resumed[0]
    assert whole[1] == resumed[1]
    assert {"model.safetensors", "vocabulary.json"} <= set(whole[1])


@pytest.mark.parametrize("task", DATA)
def test_a_batch_follows_from_seed_epoch_and_index_alone(task, tmp_path):
    path = tmp_path / ("t.conll" if task == "tag" else "t.tsv")
    path.write_text(DATA[task]())

    def made(seed):
        settings = plan("window", task=task, sets=SMALL | {"train.seed": seed})
        about = settings.find_task()
        examples = about.examples([str(path)], (), settings)
        settings, prepared = returned(about.prepare(examples, settings, Preparation()))
        return returned(about.batches(settings, prepared, None))

    def rows(batches):
        return [batch.words_BT.tolist() for batch in batches]

    source = made(3)
    everything = rows(source.batches(1))
    assert len(everything) == source.per_epoch > 3
    assert rows(made(3).batches(1, 2)) == everything[2:]
    assert rows(source.batches(2)) != everything
    assert rows(made(4).batches(1)) != everything
    assert source.tokens == sum(batch.tokens for batch in source.batches(0))
    assert np.concatenate([np.ravel(each.lengths_B) for each in source.batches(0)]).min() > 0
