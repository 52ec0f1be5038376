"""The names of the package: the agreed ones, loaded late, and verbs stay verbs."""

from importlib.metadata import version
from pathlib import Path

import pytest

import nextword

NAMES = {
    "Next", "NextwordError", "Run", "Score", "Text", "Token", "__version__", "check_data", "compare",
    "compress", "decompress", "doctor", "estimate", "evaluate", "export", "filter", "generate", "import_",
    "inspect", "lab", "list_data", "load", "mix", "next", "predict", "rescore", "score", "train",
    "train_tokenizer",
}  # fmt: skip


def test_exported_names_are_the_agreed_ones():
    assert set(nextword.__all__) == NAMES
    assert set(dir(nextword)) == NAMES
    assert set(nextword._PUBLIC) == NAMES - {"__version__"}


@pytest.mark.parametrize("name", sorted(NAMES - {"__version__"}))
def test_every_exported_name_is_there_and_can_be_called(name):
    assert callable(getattr(nextword, name))


def test_no_folder_has_the_name_of_a_verb():
    folders = {path.stem for path in Path(nextword.__file__).parent.iterdir()}
    assert folders & NAMES == set()  # importing such a folder would hide the verb


def test_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        nextword.trian  # noqa: B018


def test_version_is_the_installed_one():
    assert nextword.__version__ == version("nextword")
