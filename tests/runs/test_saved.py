"""A saved run gives back all that was written, and damage is named."""

import os

import numpy as np
import pytest
from trained_runs import train as train_run

from nextword.core.errors import DamagedError
from nextword.runs import saved
from nextword.runs.settings import plan
from nextword.store.writing import new_run


def test_saved_run_gives_back_settings_facts_metrics_and_numbers(two_documents, tmp_path):
    settings = plan("ngram-absolute", sets={"model.order": 3})
    made = train_run(two_documents, settings)
    with new_run(tmp_path / "r") as folder:
        saved.write(made, folder)
    found = saved.load(tmp_path / "r", verify=True)
    assert found.settings == made.settings
    assert found.facts == made.facts
    assert found.metrics == made.metrics
    ids = np.array([[3, 4, 5, 2]])
    assert np.array_equal(found.model.score(ids, np.array([4]))[0], made.model.score(ids, np.array([4]))[0])


@pytest.mark.parametrize(
    ("text_of_config", "words"),
    [
        ("x = ", "not valid TOML"),
        ("name = 3\n", "does not name its family"),
        ('family = "ngrm"\n', "unknown model 'ngrm'"),
    ],
)
def test_configuration_that_cannot_be_is_a_damaged_run(text_of_config, words, two_documents, tmp_path):
    settings = plan("ngram")
    made = train_run(two_documents, settings)
    with new_run(tmp_path / "r") as folder:
        saved.write(made, folder)
        (folder.path / "config.toml").write_text(text_of_config)
        folder._records.pop("config.toml")  # so that the manifest fits the file
    with pytest.raises(DamagedError, match=words):
        saved.load(tmp_path / "r")


@pytest.mark.parametrize(
    ("model", "mode"),
    [("ngram", 0o700), ("unbounded", 0o700), ("rnn", 0o755)],
    ids=["ngram", "unbounded", "rnn"],
)
def test_only_the_owner_can_read_a_run_that_holds_its_text(model, mode, two_documents, tmp_path):
    small = {"train.steps": 1, "model.hidden": 8, "train.threads": 1} if model == "rnn" else {}
    made = train_run(two_documents, plan(model, sets=small))
    before = os.umask(0o022)
    try:
        with new_run(tmp_path / "r") as folder:
            saved.write(made, folder)
    finally:
        os.umask(before)
    assert (tmp_path / "r").stat().st_mode & 0o777 == mode
    files = {path.stat().st_mode & 0o777 for path in (tmp_path / "r").rglob("*") if path.is_file()}
    assert files == {mode & 0o666}
    assert ("verbatim" in (tmp_path / "r" / "README.md").read_text()) == (mode == 0o700)


@pytest.mark.parametrize("name", ["README.md", "metrics.jsonl", "training.json"])
@pytest.mark.parametrize("how", ["edit", "delete"])
def test_run_opens_without_the_files_that_only_describe_it(name, how, two_documents, tmp_path, caplog):
    made = train_run(two_documents, plan("ngram"))
    with new_run(tmp_path / "r") as folder:
        saved.write(made, folder)
    before = saved.load(tmp_path / "r")
    assert caplog.messages == []
    if how == "edit":
        (tmp_path / "r" / name).write_text("my own notes")
    else:
        (tmp_path / "r" / name).unlink()
    found = saved.load(tmp_path / "r", verify=True)
    (message,) = caplog.messages
    assert name in message
    assert ("is missing" if how == "delete" else "was changed") in message
    ids = np.array([[3, 4, 2]])
    assert np.array_equal(found.model.score(ids, np.array([3]))[0], before.model.score(ids, np.array([3]))[0])
    assert saved.fingerprint(found.folder) == saved.fingerprint(before.folder)


@pytest.mark.parametrize("name", ["config.toml", "tokenizer.json"])
def test_what_a_model_is_made_of_is_verified(name, two_documents, tmp_path):
    made = train_run(two_documents, plan("ngram"))
    with new_run(tmp_path / "r") as folder:
        saved.write(made, folder)
    with open(tmp_path / "r" / name, "a") as file:
        file.write("\n")
    with pytest.raises(DamagedError, match=name):
        saved.load(tmp_path / "r")
