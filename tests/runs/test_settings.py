"""The configuration of a run is written complete and read back."""

import pytest

from nextword.core.errors import ConfigError
from nextword.runs.settings import from_toml, plan


def test_configuration_is_written_complete_and_read_back():
    settings = plan("ngram-katz", tokenizer="characters", seed=3, sets={"train.memory": "1G"})
    assert from_toml(settings.to_toml(), "config.toml") == settings
    with pytest.raises(ConfigError, match="unknown task 'speech'"):
        plan("ngram", task="speech")


@pytest.mark.parametrize(
    ("task", "key", "value"),
    [("tag", "train.bptt", "truncated(3)"), ("tag", "train.smoothing", 0.1), ("classify", "train.length", 9),
     ("classify", "train.forcing", "free"), ("classify", "train.unigram", True)],
)  # fmt: skip
def test_a_setting_that_changes_nothing_is_refused_unless_it_is_the_default(task, key, value):
    with pytest.raises(ConfigError, match=rf"'{key}' has no effect on the model 'lstm' of the task '{task}'"):
        plan("lstm", task=task, sets={key: value})
    group, name = key.split(".")
    default = dict(plan("lstm", task=task).groups[group])[name]
    assert plan("lstm", task=task, sets={key: default}).task == task


def test_the_settings_of_a_run_are_a_recipe_for_the_same(tmp_path):
    made = plan("lstm", task="tag", sets={"model.hidden": 9})
    (tmp_path / "c.toml").write_text(made.to_toml())
    assert plan(recipe=tmp_path / "c.toml", task="tag").to_toml() == made.to_toml()


@pytest.mark.parametrize("task", ["tag", "classify"])
def test_a_tokenizer_is_for_language_models(task):
    with pytest.raises(ConfigError, match=f"tokenizer.* is for language models, and the task is '{task}'"):
        plan("lstm", task=task, tokenizer="words")
