"""A setting that names a part takes the names of its slot, whoever added them; a size has a unit."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint

import pytest
from pydantic import Field

from nextword.core import catalog, config
from nextword.core.errors import ConfigError
from nextword.core.settings import Settings, Slot, allowed, parse_size


class Parts(Settings):
    head: Slot["head"] = Field("softmax", description="output layer")  # noqa: UP037
    place: Slot["norm_place", "auto"] = Field("auto", description="where norms stand")  # noqa: F821, UP037
    size: int = 3


def built(**values: str) -> Parts:
    made = config.build({"model": Parts}, {f"model.{key}": value for key, value in values.items()})["model"]
    assert isinstance(made, Parts)
    return made


def test_a_name_of_the_slot_is_a_plain_string():
    made = built(head="adaptive")
    assert type(made.head) is str
    assert made.head == "adaptive"


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            {"head": "sofmax"},
            "'model.head' is 'sofmax'; did you mean 'softmax'? Allowed: softmax, adaptive, softmaxes, sphere",
        ),
        ({"head": "zzzzzz"}, "'model.head' is 'zzzzzz'; allowed: softmax, adaptive, softmaxes, sphere"),
        (
            {"place": "pree"},
            "'model.place' is 'pree'; did you mean 'pre'? "
            f"Allowed: {', '.join(['auto', *catalog.names('norm_place')])}",
        ),
    ],
)
def test_an_unknown_name_is_one_sentence_with_the_nearest_and_all_names(values, sentence):
    with pytest.raises(ConfigError) as caught:
        built(**values)
    assert str(caught.value) == sentence


def test_a_special_word_may_stand_beside_the_names():
    assert built().place == "auto"
    assert built(place="post").place == "post"


def test_names_that_are_allowed_are_listed_and_go_into_the_schema():
    assert allowed(Parts.model_fields["place"]) == ["auto", *catalog.names("norm_place")]
    assert allowed(Parts.model_fields["size"]) == []
    assert Parts.model_json_schema()["properties"]["head"]["enum"] == catalog.names("head")


def test_it_is_written_back_as_a_string():
    text = config.to_toml({"model": built(head="adaptive")}, {})
    assert tomllib.loads(text)["model"] == {"head": "adaptive", "place": "auto", "size": 3}


def test_a_part_added_later_counts(monkeypatch):
    monkeypatch.setitem(catalog.SLOTS["head"], "mine", "collections:OrderedDict")
    assert built(head="mine").head == "mine"


def test_a_part_of_another_package_counts(monkeypatch):
    catalog._plugins.cache_clear()
    entry = EntryPoint("theirs", "collections:OrderedDict", "nextword.head")
    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda group: [entry] if group == "nextword.head" else []
    )
    try:
        assert built(head="theirs").head == "theirs"
    finally:
        catalog._plugins.cache_clear()


def test_checking_a_name_imports_no_torch():
    code = (
        "import sys; from nextword.core.settings import Settings, Slot\n"
        "class S(Settings):\n    head: Slot['head'] = 'softmax'\n"
        "S(head='adaptive'); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("text", "count"),
    [("500M", 500_000_000), ("1.5 GB", 1_500_000_000), ("1Gi", 2**30), ("300000", 300_000), ("2k", 2000)],
)
def test_size_is_read_as_people_write_it(text, count):
    assert parse_size(text) == count
