"""Settings: what is typed becomes values, and every mistake is one sentence that helps."""

import math
import tomllib
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, field_validator, model_validator

from nextword.core import config
from nextword.core.errors import ConfigError
from nextword.core.settings import Settings, Size


class Model(Settings):
    order: int = Field(5, ge=1, le=15, description="n")
    smoothing: str = Field("kn", description="how")
    rate: float = Field(0.5, gt=0.0, lt=1.0)
    prune: list[int] | int = 0
    compat: bool = False
    mode: Literal["spell", "literal"] = "spell"
    memory: Size = 0

    @field_validator("prune")
    @classmethod
    def _positive(cls, prune):
        if isinstance(prune, int) and prune < 0:
            raise ValueError("must not be negative")
        return prune

    @model_validator(mode="after")
    def _fits(self):
        if self.order == 1 and self.compat:
            raise ValueError("order 1 has nothing to be compatible with")
        return self


class Text(Settings):
    tokenizer: str = "auto"
    column: str = ""


GROUPS = {"model": Model, "text": Text}


def build(*assignments):
    return config.build(GROUPS, config.parse_sets(assignments))


@pytest.mark.parametrize(
    ("assignment", "group", "name", "value"),
    [
        ("model.order=3", "model", "order", 3),
        ("model.order = 3 ", "model", "order", 3),
        ("model.smoothing=witten-bell", "model", "smoothing", "witten-bell"),
        ('model.smoothing="witten-bell"', "model", "smoothing", "witten-bell"),
        ("model.prune=[0, 1, 2]", "model", "prune", [0, 1, 2]),
        ("model.prune=2", "model", "prune", 2),
        ("model.compat=true", "model", "compat", True),
        ("model.mode=literal", "model", "mode", "literal"),
        ("model.memory=500M", "model", "memory", 500_000_000),
        ("model.rate=1e-3", "model", "rate", 0.001),
        ("text.column=1", "text", "column", "1"),  # a text setting takes what was typed
        ("text.column=true", "text", "column", "true"),
        ("text.column=a=b", "text", "column", "a=b"),
    ],
)
def test_value_after_set_is_toml_and_bare_words_are_text(assignment, group, name, value):
    assert getattr(build(assignment)[group], name) == value


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("model.ordr=3", ["unknown setting 'model.ordr'", "did you mean 'model.order'?", "model.smoothing"]),
        ("modl.order=3", ["unknown setting 'modl.order'", "did you mean 'model.order'?"]),
        ("order=3", ["unknown setting 'order'", "did you mean 'model.order'?"]),
        ("model.zzzzzz=3", ["unknown setting 'model.zzzzzz'", "allowed: model.order"]),
        ("model.order=0", ["'model.order' is 0", "it must be 1 or more"]),
        ("model.order=99", ["'model.order' is 99", "it must be 15 or less"]),
        ("model.order=many", ["'model.order' is 'many'", "whole number"]),
        ("model.order=2.5", ["'model.order' is 2.5", "whole number"]),
        ("model.order=true", ["'model.order' is true"]),
        ("model.order=", ["'model.order' is ''", "whole number"]),
        ("model.rate=1", ["'model.rate' is 1", "less than 1"]),
        ("model.rate=0.0", ["'model.rate' is 0.0", "more than 0"]),
        ("model.rate=x", ["'model.rate' is 'x'", "a number"]),
        ("model.compat=perhaps", ["'model.compat' is 'perhaps'", "true or false"]),
        ("model.mode=maybe", ["'model.mode' is 'maybe'", "'spell' or 'literal'"]),
        ("model.memory=lots", ["'model.memory' is 'lots'", "500M"]),
        ("model.prune=-1", ["'model.prune' is -1", "must not be negative"]),
        ("model.order", ["has no value", "key=value"]),
        ("=3", ["has no value"]),
    ],
)
def test_wrong_setting_gets_one_sentence_with_the_value_and_what_is_allowed(assignment, words):
    with pytest.raises(ConfigError) as caught:
        build(assignment)
    message = str(caught.value)
    assert all(word in message for word in words), message
    assert "\n" not in message


def test_rule_over_several_settings_is_told_as_such():
    with pytest.raises(ConfigError, match="'model' contradict each other: order 1 has nothing"):
        build("model.order=1", "model.compat=true")


def test_later_source_wins_over_an_earlier_one():
    assert config.build(GROUPS, {"model.order": 2}, {"model.order": 4})["model"].order == 4


def test_complete_configuration_is_written_back_and_read_again():
    built = build("model.order=3", 'text.column=a "quoted" \\ name', "model.prune=[0,0,1]")
    text = config.to_toml(built, {"family": "ngram"})
    tree = tomllib.loads(text)
    assert tree.pop("family") == "ngram"
    assert config.build(GROUPS, config.flatten(tree)) == built
    assert "order = 3  # n" in text


@given(st.text(), st.floats(allow_nan=False), st.lists(st.integers()))
def test_any_text_number_and_list_survive_the_toml_writer(text, number, items):
    class Anything(Settings):
        text: str
        number: float
        items: list[int]

    if any("\ud800" <= c <= "\udfff" for c in text):
        return
    settings = Anything(text=text, number=number, items=items)
    tree = tomllib.loads(config.to_toml({"a": settings}, {}))
    assert Anything(**tree["a"]) == settings


def test_infinity_is_a_number_that_toml_knows():
    class Limit(Settings):
        eps: float = math.inf

    assert tomllib.loads(config.to_toml({"a": Limit()}, {}))["a"]["eps"] == math.inf


def test_bad_toml_names_the_file_and_the_line(tmp_path):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text("[model]\norder = = 3\n")
    with pytest.raises(ConfigError, match=r"recipe\.toml is not valid TOML.*line 2"):
        config.read_toml(recipe)
    with pytest.raises(ConfigError, match=r"none\.toml cannot be read: No such file"):
        config.read_toml(tmp_path / "none.toml")
    recipe.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not valid TOML"):
        config.read_toml(recipe)
    with pytest.raises(ConfigError, match=r"x\.toml is not valid TOML"):
        config.parse_toml("a = ", "x.toml")
