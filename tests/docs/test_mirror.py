"""Tests mirror the package: ``nextword/<folder>/<file>.py`` is tested in ``tests/<folder>/test_<file>.py``.

A file of tests about several modules together has a name of its own, in the folder of what it tests.
"""

from __future__ import annotations

from pathlib import Path

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


def test_folder_of_tests_is_a_folder_of_the_package() -> None:
    folders = {path.parent.as_posix() for path in TESTS}
    assert [name for name in sorted(folders) if not (PACKAGE / name / "__init__.py").is_file()] == []


def test_file_with_the_name_of_a_module_is_in_its_folder() -> None:
    where = {path.as_posix(): folders_of(path.stem.removeprefix("test_")) for path in TESTS}
    wrong = {path: found for path, found in where.items() if found and str(Path(path).parent) not in found}
    assert not wrong, "\n".join(
        f"tests/{path}: a module of this name is in {found}" for path, found in wrong.items()
    )


def test_names_are_found_in_folders_within_folders() -> None:
    assert "evaluation/lm" in folders_of("perplexity")
    assert "ngram" in folders_of("smoothing")  # a folder, tested as a whole
    assert folders_of("no_such_module") == set()
