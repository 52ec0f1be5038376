"""``docs/architecture.md`` and its picture show the tree as it is; a command can be followed."""

import re
import runpy
import tomllib
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()


def folders():
    return {path.name for path in (ROOT / "nextword").iterdir() if (path / "__init__.py").exists()}


def test_every_folder_has_a_phrase_and_is_in_the_picture():
    table = PAGE.split("## The tree")[1].split("## Three walks")[0]
    named = {
        name
        for row in table.split("\n")
        if row.startswith("| `")
        for name in re.findall(r"`(\w+)`", row.split("|")[1])
    }
    drawn = set(re.findall(r'font-weight="600"[^>]*>(\w+)<', (ROOT / "docs" / "layers.svg").read_text()))
    assert named == drawn == folders()


def test_every_file_that_is_named_exists():
    for path in re.findall(r"`((?:\w+/)+\w+\.py)`", PAGE):
        places = (ROOT / path, ROOT / "nextword" / path)
        assert any(place.exists() for place in places), path


def test_the_picture_has_the_order_of_the_layers():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(each for each in contracts if each["type"] == "layers")["layers"]
    order = [name.strip(" ()") for line in layers for name in line.split("|")]
    drawn = re.findall(r'font-weight="600"[^>]*>(\w+)<', (ROOT / "docs" / "layers.svg").read_text())
    assert drawn == [name for name in order if name in folders()]


def test_following_a_training_run_takes_few_files_and_changes_of_folder(tmp_path):
    benchmark = runpy.run_path(str(ROOT / "benchmarks" / "architecture.py"))
    (tmp_path / "text.txt").write_text((ROOT / "README.md").read_text() * 20)
    files = benchmark["walk"](ROOT, benchmark["WALKS"]["train lstm"], tmp_path)
    folders = [str(Path(file).parent) for file in files]
    story = [file for file in files if file.split("/")[0] in benchmark["STORY"]]
    assert len(files) <= 75, files
    assert sum(one != other for one, other in pairwise(folders)) <= 35, files
    assert len(story) <= 30, story
