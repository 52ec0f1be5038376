"""The text that the benchmarks share: the corpus `books`, or a folder with train and test as text or gzip."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import numpy as np

from nextword.core.contracts import Block
from nextword.data.corpora import corpus_files
from nextword.text.settings import TextSettings
from nextword.text.words import WordTokenizer


def folder_of(data: Path | None) -> Path:
    """The folder that was named, or that of the corpus."""
    if data is not None:
        return data
    files = corpus_files("books")
    if not files:
        raise SystemExit("the corpus `books` is not here; set NEXTWORD_DATA or give --data FOLDER")
    return files[0].parent


def plain(data: Path, name: str, work: Path) -> Path:
    """Everybody reads plain text, so that nobody is measured on decompression."""
    target = work / f"{name}.txt"
    if (data / f"{name}.txt").exists():
        shutil.copyfile(data / f"{name}.txt", target)
    else:
        with gzip.open(data / f"{name}.txt.gz") as source, open(target, "wb") as sink:
            shutil.copyfileobj(source, sink)
    return target


def packed(data: Path, work: Path) -> tuple[np.ndarray, np.ndarray]:
    """The ids of both texts; words that the training text lacks are unknown."""
    train, test = (plain(data, name, work).read_bytes() for name in ("train", "test"))
    fitting = WordTokenizer.fit_encode([Block(train, True)], TextSettings())
    ids = np.concatenate([part.ids for part in fitting])
    return ids, np.concatenate([part.ids for part in fitting.tokenizer.encode_blocks([Block(test, True)])])
