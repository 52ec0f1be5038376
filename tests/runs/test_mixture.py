"""A mixture of saved runs as a run of its own."""

from pathlib import Path

import numpy as np

import nextword
from nextword.core.contracts import Block
from nextword.evaluation.lm.perplexity import evaluate
from nextword.runs import saved
from nextword.runs.facts import DataFacts, collect
from nextword.runs.mixture import Component, mixed, settings_like
from nextword.runs.saved import Trained
from nextword.store.writing import new_run

TEXT = "the cat sat\nthe dog sat\na cat ran\n" * 5


def make_parts(folder: Path) -> list[Trained]:
    text = folder / "t.txt"
    text.write_text(TEXT)
    for order in (1, 2):
        nextword.train(str(text), model="ngram", out=str(folder / f"n{order}"), set={"model.order": order})
    return [saved.load(folder / "n1"), saved.load(folder / "n2")]


def test_a_mixture_of_runs_is_saved_and_opens_to_equal_numbers(tmp_path: Path) -> None:
    parts = make_parts(tmp_path)
    components = [
        Component(part.folder.path.name, part.model, part.folder) for part in parts if part.folder is not None
    ]
    first = parts[0]
    settings = settings_like(first.settings, "both")
    made = mixed(settings, components, (0.25, 0.75), first.tokenizer, collect(0, DataFacts(), 0.0), [])
    assert (made.settings.name, made.settings.family) == ("both", "mixture")
    assert made.settings.text == first.settings.text
    assert made.settings.model.model_dump()["runs"] == ("n1", "n2")
    assert made.settings.model.model_dump()["of"] == ()
    with new_run(tmp_path / "m") as folder:
        saved.write(made, folder)
    opened = saved.load(tmp_path / "m")
    block = [Block(TEXT.encode(), True)]
    assert (
        evaluate(opened.model, opened.tokenizer, block).nll == evaluate(made.model, made.tokenizer, block).nll
    )
    start = opened.model.next(opened.model.start(1))
    expected = sum(
        weight * np.exp(part.model.next(part.model.start(1)))
        for weight, part in zip((0.25, 0.75), parts, strict=True)
    )
    np.testing.assert_allclose(np.exp(start), expected, atol=1e-12)
