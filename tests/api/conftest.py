"""A small corpus for the tests of the Python interface."""

from __future__ import annotations

from pathlib import Path

import pytest

import nextword

LINES = [
    "the students opened their books",
    "the students opened their minds",
    "the teacher opened the window",
    "a teacher read the books",
    "the students read",
    "",
]


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six lines, one of them blank."""
    path = tmp_path_factory.mktemp("corpus") / "school.txt"
    path.write_text("".join(line + "\n" for line in LINES))
    return path


@pytest.fixture(scope="session")
def run(corpus: Path) -> nextword.Run:
    """A trigram model of them, in memory."""
    return nextword.train(corpus, model="ngram", set={"model.order": 3})
