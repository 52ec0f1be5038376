"""Parts from a user's own file: loaded when the user says so, never because a run does."""

from __future__ import annotations

import pytest

from nextword.cli.options import without_parts
from nextword.core import catalog, own_parts
from nextword.core.config import Stored, Typed, build
from nextword.core.errors import ConfigError
from nextword.core.settings import Settings, Slot

SOURCE = "class MyFFN:\n    ratio = 4.0\n"


class Model(Settings):
    ffn: Slot["ffn"] = "relu"  # noqa: UP037


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(own_parts, "_loaded", {})
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    return path


def made(value) -> str:
    return build({"model": Model}, {"model.ffn": value})["model"].ffn


def test_a_part_that_the_user_types_is_loaded_and_stored_with_its_digest(file):
    name = made(Typed(f"{file}:MyFFN"))
    assert name.startswith("mine.py:MyFFN@")
    assert len(name.partition("@")[2]) == 64
    assert catalog.find("ffn", name).ratio == 4.0
    assert made(name) == name  # as a run's file says it, once it was loaded


def test_a_value_of_a_file_or_a_resumed_run_loads_nothing(file):
    for value in (f"{file}:MyFFN", Stored(f"{file}:MyFFN")):
        with pytest.raises(ConfigError):
            made(value)
    assert own_parts._loaded == {}


def test_a_stored_part_needs_its_file_and_no_other(file):
    name = made(Typed(f"{file}:MyFFN"))
    own_parts._loaded.clear()
    with pytest.raises(ConfigError, match=r"never loaded because a run says so; .*--parts mine\.py"):
        made(name)
    file.write_text(SOURCE + "# changed\n")
    assert without_parts(["eval", "--parts", str(file), "run"]) == ["eval", "run"]
    with pytest.raises(ConfigError, match="but the run was trained with 'MyFFN' of one with"):
        made(name)
    file.write_text(SOURCE)
    without_parts([f"--parts={file}"])
    assert made(name) == name
    assert made(Stored(f"{file}:MyFFN")) == name


@pytest.mark.parametrize(
    ("source", "words"),
    [("x = 1 / 0\n", "mine.py:1, .*ZeroDivisionError"), ("def\n", "mine.py:1, .*SyntaxError")],
)
def test_a_file_that_does_not_run_says_where(file, source, words):
    file.write_text(source)
    with pytest.raises(ConfigError, match=words):
        made(Typed(f"{file}:MyFFN"))


def test_a_class_or_a_file_that_is_not_there_is_named(file):
    with pytest.raises(ConfigError, match="has no 'Other'"):
        made(Typed(f"{file}:Other"))
    with pytest.raises(ConfigError, match="cannot be read"):
        made(Typed(f"{file.parent}/nothing.py:MyFFN"))
    with pytest.raises(ConfigError, match="--parts has no file"):
        without_parts(["eval", "--parts"])


def test_what_follows_two_dashes_is_left_alone(file):
    assert without_parts(["next", "--", "--parts", "x"]) == ["next", "--", "--parts", "x"]
