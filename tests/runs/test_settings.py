"""The configuration of a run is written complete and read back."""

import pytest

from nextword.core.errors import ConfigError
from nextword.runs.settings import from_toml, plan


def test_configuration_is_written_complete_and_read_back():
    settings = plan("ngram-katz", tokenizer="characters", seed=3, sets={"train.memory": "1G"})
    assert from_toml(settings.to_toml(), "config.toml") == settings
    with pytest.raises(ConfigError, match="unknown task 'speech'"):
        plan("ngram", task="speech")
