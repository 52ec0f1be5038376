"""A small corpus and a trained run that the tests of the command line share."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from nextword.cli.main import run as run_command

TEXT = "\n".join(
    f"the {animal} {verb} on the {place} ." for animal in ("cat", "dog", "bird", "cow")
    for verb in ("sat", "slept", "sang") for place in ("mat", "log", "roof")
) + "\n"  # fmt: skip


@dataclass
class Result:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, which must be one JSON value and nothing else."""
        return json.loads(self.out)


@pytest.fixture
def nextword(capfd: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Run a command in this process."""

    def run(*arguments: object) -> Result:
        capfd.readouterr()
        code = run_command([str(argument) for argument in arguments])
        found = capfd.readouterr()
        return Result(code, found.out, found.err)

    return run


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty-six lines."""
    path = tmp_path_factory.mktemp("corpus") / "animals.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture(scope="session")
def saved_run(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trigram model of them."""
    path = tmp_path_factory.mktemp("runs") / "animals"
    assert (
        run_command(["train", str(corpus), "--model", "ngram", "--set", "model.order=3", "--out", str(path)])
        == 0
    )
    return path


@pytest.fixture
def here(tmp_path: Path) -> Any:
    """An empty current folder."""
    before = os.getcwd()
    os.chdir(tmp_path)
    yield tmp_path
    os.chdir(before)
