"""What a name of the catalog means is read from the source, without importing it."""

import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

from nextword.core import catalog, descriptions


@pytest.mark.parametrize("slot", [slot for slot in catalog.slots() if slot != "precision"])
def test_every_name_of_ours_is_described_in_one_line(slot):
    for name in catalog.SLOTS[slot]:
        said = descriptions.describe(slot, name)
        assert said, name
        assert "\n" not in said
        assert descriptions.origin(slot, name) == "built in"


def test_description_is_the_docstring_of_a_class_a_function_or_an_object():
    assert descriptions.describe("smoothing", "absolute").startswith("Absolute discounting")
    assert descriptions.describe("schedule", "linear") == "Return 1 - x"
    assert descriptions.describe("model", "LSTM").startswith("Long short-term memory")
    assert descriptions.describe("model", "ngram") == "n-gram models of any order and smoothing"


def test_description_loads_no_torch():
    code = (
        "import sys; from nextword.api import list as listed; listed.names('cell'); listed.names('model');"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_name_of_another_package_comes_from_it(tmp_path, monkeypatch):
    (tmp_path / "plugged.py").write_text('class Mine:\n    """My own smoothing."""\n')
    monkeypatch.syspath_prepend(tmp_path)
    entry = EntryPoint("mine", "plugged:Mine", "nextword.smoothing")
    monkeypatch.setattr(descriptions, "entry_points", lambda group: [entry])
    monkeypatch.setattr(catalog, "_plugins", lambda slot: {"mine": "plugged:Mine"})
    assert descriptions.describe("smoothing", "mine") == "My own smoothing"
    assert descriptions.origin("smoothing", "mine") == "plugged"
