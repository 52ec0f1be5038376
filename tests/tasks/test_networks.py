"""Networks of the language-model task: what the held-out text tells of the finished network."""

from __future__ import annotations

import json

import pytest
from small_texts import SENTENCES

import nextword
from nextword.runs.settings import from_toml, plan

TINY = {
    "model.layers": 1, "model.hidden": 16, "model.context": 16, "train.steps": 3, "train.batch": 2,
    "data.hold_out": 0.2,
}  # fmt: skip
UNMASKED = {"model.head_bias": False, "model.mask_impossible": False}
MASKED = {"model.head_bias": True, "model.mask_impossible": True}


def _run(folder, options):
    (folder / "text.txt").write_text(SENTENCES * 20)
    sets = TINY | options
    run = nextword.train(
        folder / "text.txt", model="transformer", tokenizer="bpe", out=folder / "run", set=sets
    )
    return run, json.loads((folder / "run" / "training.json").read_text())["training"]


def test_the_mass_that_the_mask_removes_is_a_fact_and_on_the_card(tmp_path):
    run, facts = _run(tmp_path, UNMASKED)
    assert 0.0 < facts["removed_mass"] < 1.0
    assert (
        "probability of START and UNKNOWN, which is removed" in (tmp_path / "run" / "README.md").read_text()
    )
    total = dict(run.next("the", top=None))
    assert sum(total.values()) == pytest.approx(1.0, abs=1e-5)
    assert total.get("<s>", 0.0) == 0.0


def test_a_run_whose_loss_leaves_start_and_unknown_out_has_no_such_fact(tmp_path):
    _, facts = _run(tmp_path, MASKED)
    assert "removed_mass" not in facts
    assert "which is removed" not in (tmp_path / "run" / "README.md").read_text()


@pytest.mark.parametrize("options", [MASKED, UNMASKED])
def test_a_saved_run_scores_as_before_it_was_saved(tmp_path, options):
    run, _ = _run(tmp_path, options)
    text = "the cat sat on the mat"
    assert nextword.load(tmp_path / "run").score(text).nll == pytest.approx(run.score(text).nll, abs=1e-5)


def test_a_config_without_the_settings_of_the_head_has_a_bias_and_the_mask():
    text = plan("transformer", sets=UNMASKED).to_toml()
    assert not from_toml(text, "config.toml").model.head_bias
    lines = [line for line in text.split("\n") if not line.startswith(("head_bias", "mask_impossible"))]
    earlier = from_toml("\n".join(lines), "config.toml").model
    assert earlier.head_bias
    assert earlier.mask_impossible
