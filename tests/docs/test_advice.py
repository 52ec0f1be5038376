"""What a message advises exists: every option and setting that a string of the package names.

A user who follows the advice must not be answered with "no such option".
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import typer.main
from places import ROOT

from nextword.cli.app import app
from nextword.core import catalog, config
from nextword.data.settings import DataSettings
from nextword.decode.settings import DecodeSettings
from nextword.evaluation.lines.filter import FilterSettings
from nextword.mixtures.dynamic import DynamicSettings
from nextword.runs.settings import groups_of, task_of
from nextword.text.settings import TextSettings

PACKAGE = ROOT / "nextword"
OPTION = re.compile(r"(?<![\w(-])--[a-z][a-z0-9-]*")
# Options of other programs, where these words stand: compile-lm, pip, torchrun.
OTHERS = {"compile-lm": {"--text"}, "is too old": {"--upgrade"}, "torchrun": {"--max-restarts"}}
PICTURES = PACKAGE / "drawing"  # custom properties of CSS look like options
ENDINGS = {"npy", "json", "toml", "safetensors", "txt", "jsonl", "md", "py", "csv", "html", "svg", "bin"}


def _strings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield every string of a module that is not a docstring, f-strings with gaps for their values."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            inside.add(id(node.value))  # a docstring
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in node.values}
            parts = [str(part.value) if isinstance(part, ast.Constant) else "\0" for part in node.values]
            yield node.lineno, "".join(parts)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.lineno, node.value


def _all_strings() -> list[tuple[str, str]]:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if PICTURES not in path.parents:
            found += [(f"{path.relative_to(ROOT)}:{line}", text) for line, text in _strings(path)]
    return found


def _options() -> set[str]:
    found = {"--help", "--version"}
    waiting = [typer.main.get_command(app)]
    while waiting:
        command = waiting.pop()
        waiting += list(getattr(command, "commands", {}).values())
        for parameter in command.params:
            found |= {*parameter.opts, *parameter.secondary_opts}
    return found


def _settings() -> set[str]:
    groups = {"data": [DataSettings], "text": [TextSettings], "filter": [FilterSettings]}
    groups |= {"decode": [DecodeSettings], "dynamic": [DynamicSettings], "model": [], "train": []}
    for task in map(task_of, catalog.names("task")):
        for name in catalog.names(task.families):
            for group, kind in groups_of(catalog.find(task.families, name)).items():
                groups[group].append(kind)
    for name in catalog.names("memory"):
        groups[name] = [catalog.find("memory", name).Settings]
    keys = {key for group, kinds in groups.items() for kind in kinds for key in config.keys({group: kind})}
    return keys | {key.rpartition(".")[0] for key in keys if key.count(".") > 1}  # and groups of options


def test_every_option_that_a_string_names_exists() -> None:
    options, wrong = _options(), []
    for place, text in _all_strings():
        known = options | {option for program, given in OTHERS.items() if program in text for option in given}
        wrong += [f"{place}: {option} in {text!r}" for option in OPTION.findall(text) if option not in known]
    assert not wrong, "\n".join(wrong)


def test_every_setting_that_a_string_names_exists() -> None:
    settings, wrong = _settings(), []
    groups = "|".join(sorted({key.partition(".")[0] for key in settings}))
    pattern = re.compile(rf"(?:'|--set |\b)((?:{groups})\.([a-z][a-z_]*))(?=\b)(?!\()")
    for place, text in _all_strings():
        for key, name in pattern.findall(text):
            if key not in settings and name not in ENDINGS and f"nextword.{key}" not in text:
                wrong.append(f"{place}: {key} in {text!r}")
    assert not wrong, "\n".join(wrong)


def test_the_search_finds_what_does_not_exist(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text('"""Not --this."""\nn = 1\nx = f"use --no-such-option={n} or --set data.nothing=1"\n')
    ((line, text),) = _strings(path)
    assert (line, OPTION.findall(text)) == (3, ["--no-such-option", "--set"])
    assert "--no-such-option" not in _options()
    assert "data.nothing" not in _settings()
    assert "data.on_error" in _settings()
