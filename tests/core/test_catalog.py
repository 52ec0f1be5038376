"""The catalog: names are found, imported late, and suggested when mistyped."""

import importlib
from importlib.metadata import EntryPoint

import pytest

from nextword.core import catalog
from nextword.core.errors import ConfigError, MissingPart
from nextword.models import presets


@pytest.mark.parametrize("slot", ["model", "tokenizer", "smoothing", "decode", "lab", "probe"])
def test_every_name_of_the_catalog_can_be_imported(slot):
    for name in catalog.names(slot):
        assert catalog.find(slot, name) is not None


@pytest.mark.parametrize(
    ("slot", "name", "message"),
    [
        ("model", "ngrm", "unknown model 'ngrm'; did you mean 'ngram'? Allowed: ngram"),
        ("smoothing", "kneserney", "did you mean 'kneser-ney'?"),
        ("tokenizer", "Wrds", "did you mean 'words'?"),
        ("tokenizer", "qqqqqqqq", "unknown tokenizer 'qqqqqqqq'; allowed: words"),
        ("modle", "ngram", "unknown slot 'modle'; did you mean 'model'?"),
        ("model", "trans", "did you mean 'transformer'?"),
        ("ffn", "experts2", "did you mean 'experts'?"),
    ],
)
def test_unknown_name_suggests_the_nearest(slot, name, message):
    with pytest.raises(ConfigError) as caught:
        catalog.find(slot, name)
    assert message in str(caught.value)


def test_plugin_is_found_through_its_entry_point(monkeypatch):
    catalog._plugins.cache_clear()
    entry = EntryPoint("mine", "collections:OrderedDict", "nextword.model")
    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda group: [entry] if group == "nextword.model" else []
    )
    try:
        assert "mine" in catalog.names("model")
        assert catalog.find("model", "mine") is importlib.import_module("collections").OrderedDict
    finally:
        catalog._plugins.cache_clear()


def test_missing_package_of_a_plugin_is_named(monkeypatch):
    monkeypatch.setitem(catalog.SLOTS["model"], "needy", "a_package_that_is_not_there.x:Y")
    with pytest.raises(MissingPart, match="a_package_that_is_not_there"):
        catalog.find("model", "needy")


def test_preset_is_a_family_with_settings():
    assert presets.find("ngram-mle").settings == {"model.smoothing": "mle"}
    assert presets.find("ngram").family == "ngram"
    with pytest.raises(ConfigError, match="unknown model 'ngram-mel'; did you mean 'ngram-mle'"):
        presets.find("ngram-mel")


def test_case_of_a_name_does_not_matter():
    assert catalog.spelled("model", "LSTM") == "lstm"
    assert catalog.find_path("smoothing", "Katz") == catalog.find_path("smoothing", "katz")
    assert catalog.names("Model") == catalog.names("model")


def test_unknown_model_is_answered_with_the_families_and_where_the_sizes_are():
    assert (presets.find("LSTM").family, presets.find("Ngram-Katz").name) == ("lstm", "ngram-katz")
    with pytest.raises(ConfigError) as caught:
        presets.find("lstmm")
    assert str(caught.value).startswith("unknown model 'lstmm'; did you mean 'lstm'? Families: auto, ngram, ")
    assert "nextword presets shows" in str(caught.value)
    assert "lstm-" not in str(caught.value)
