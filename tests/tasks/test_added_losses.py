"""What parts add to the loss reaches every task, and is shown by its name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from labelled_texts import labelled_texts, tagged_sentences
from pairs import table

import nextword

SMALL = {
    "model.hidden": 16, "model.layers": 1, "model.ffn": "experts", "train.precision": "fp32",
    "train.threads": 1, "train.steps": 1, "train.log_every": 1, "train.save_every": 1000, "train.batch": 4,
}  # fmt: skip
TEXTS = {
    "lm": ("text.txt", lambda: "the cat sat on the mat\n" * 40, {"model.context": 16}),
    "tag": ("train.conll", tagged_sentences, {"model.embedding": 16}),
    "classify": ("train.tsv", labelled_texts, {"model.embedding": 16}),
    "translate": ("train.tsv", table, {"text.tokenizer": "words"}),
}


@pytest.mark.parametrize("task", TEXTS)
def test_the_balance_of_experts_is_learned_in_every_task(task, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name, text, more = TEXTS[task]
    Path(name).write_text(text())
    z = {"train.z_loss": 1e-3, "model.ahead": 1} if task in ("lm", "translate") else {}
    nextword.train(name, task=task, model="transformer", set=SMALL | more | z, out="run")
    first = json.loads(Path("run/metrics.jsonl").read_text().split("\n")[0])
    assert first["loss_balance"] > 0
    assert ("loss_z" in first) == ("loss_ahead 2" in first) == bool(z)
