"""Tests mirror the package: ``nextword/<folder>/<file>.py`` is tested in ``tests/<folder>/test_<file>.py``.

A file of tests about several modules together has a name of its own, in the folder of what it tests.
"""

from __future__ import annotations

import pytest
from places import ROOT

# Other programs, the lectures, what tests share, and documents have no folder in the package.
APART = {"agree", "docs", "slides", "support"}
PACKAGE = ROOT / "nextword"
TESTS = [
    path.relative_to(ROOT / "tests")
    for path in sorted((ROOT / "tests").rglob("test_*.py"))
    if path.relative_to(ROOT / "tests").parts[0] not in APART
]


def folders_of(stem: str) -> set[str]:
    """Where a module or a folder of this name is in the package."""
    found = {path.parent for path in PACKAGE.rglob(f"{stem}.py")} | {
        path.parent for path in PACKAGE.rglob(stem)
    }
    return {path.relative_to(PACKAGE).as_posix() for path in found}


@pytest.mark.parametrize("folder", sorted({path.parent.as_posix() for path in TESTS}))
def test_folder_of_tests_is_a_folder_of_the_package(folder: str) -> None:
    assert (PACKAGE / folder / "__init__.py").is_file()


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.as_posix())
def test_file_with_the_name_of_a_module_is_in_its_folder(path) -> None:
    folders = folders_of(path.stem.removeprefix("test_"))
    assert not folders or path.parent.as_posix() in folders


def test_names_are_found_in_folders_within_folders() -> None:
    assert "evaluation/lm" in folders_of("perplexity")
    assert "ngram" in folders_of("smoothing")  # a folder, tested as a whole
    assert folders_of("no_such_module") == set()
