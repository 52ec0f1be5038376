"""The documents name only what is there: files, links, models, experiments, commands."""

from __future__ import annotations

import re

import pytest
from places import ROOT

from nextword.cli.app import app
from nextword.core import catalog
from nextword.runs.settings import plan

FOLDERS = sorted(path.parent.name for path in (ROOT / "nextword").glob("*/__init__.py"))
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_and_files_that_are_named_are_there(document):
    text = document.read_text()
    for link in re.findall(r"\]\((?!http)([^)#]+)\)", text):
        if "benchmarks" not in link:
            assert (document.parent / link).exists(), link
    for name in re.findall(r"`((?:tests|configs)/[\w/.-]+)`", text):
        assert (ROOT / name).exists(), name
    for name in re.findall(rf"`((?:{'|'.join(FOLDERS)})/[\w/.]+\.py)`", text):
        assert (ROOT / "nextword" / name).exists(), name


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_commands_that_are_shown_exist(document):
    known = {command.name for command in app.registered_commands} | {
        group.name for group in app.registered_groups
    }
    for command in re.findall(r"(?:^|`|\| |\$ )nextword ([a-z-]+)", document.read_text(), re.MULTILINE):
        assert command in known, command


def test_the_readme_has_the_two_commands_and_every_smoothing():
    text = (ROOT / "README.md").read_text()
    assert "make demo" in text
    assert "make test" in text
    assert all(f"`{name}`" in text for name in catalog.names("smoothing"))


def test_every_experiment_is_in_the_lectures_map():
    text = (ROOT / "docs" / "lectures.md").read_text()
    assert all(f"`{name}`" in text for name in catalog.names("lab"))


def test_every_path_of_the_lectures_map_exists():
    """Its columns "code" and "tests" hold a path and nothing else between backticks."""
    rows = [
        line for line in (ROOT / "docs" / "lectures.md").read_text().split("\n") if line.startswith("| L")
    ]
    paths = [name for row in rows for name in re.findall(r"`([\w/]+\.(?:py|toml))`", row)]
    assert len(paths) > 2 * len(rows)
    for name in paths:
        folder = ROOT if name.startswith(("tests/", "configs/")) else ROOT / "nextword"
        assert (folder / name).is_file(), name


def test_the_picture_of_the_report_is_small():
    assert (ROOT / "docs" / "report.png").stat().st_size < 300_000


RECIPES = sorted((ROOT / "configs").glob("*.toml"))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_recipes_hold_only_settings_that_exist_and_say_how_they_are_run(recipe):
    settings = plan(recipe=recipe)
    assert settings.family in catalog.names("model")
    assert f"configs/{recipe.name}" in recipe.read_text()


def test_the_recipe_for_reuters_reads_title_and_body():
    assert plan(recipe=ROOT / "configs" / "reuters.toml").data.text_column == "title,body"
