"""The texts of the benchmarks as ids, the way the peers number them: words with `<eos>`, or characters."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nextword.data.corpora import corpus_files


@dataclass
class Numbered:
    """A text for training and one for testing, in the same numbers."""

    train: np.ndarray
    test: np.ndarray
    vocab: int


def corpus_folder(name: str) -> Path:
    """Where a corpus lies; one that is not here ends the benchmark with a sentence."""
    files = corpus_files(name)
    if not files:
        raise SystemExit(f"the corpus `{name}` is not here; set NEXTWORD_DATA to a folder that has it")
    return files[0].parent


def words(train: Path, *others: Path) -> Numbered:
    """Words at white space, `<eos>` after every line, a vocabulary of all files, as PyTorch's example.

    The last of the other files is the test text.
    """
    number: dict[str, int] = {}
    found = [_word_ids(path, number) for path in (train, *others)]
    return Numbered(found[0], found[-1], len(number))


def _word_ids(path: Path, number: dict[str, int]) -> np.ndarray:
    ids = []
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            ids += [number.setdefault(word, len(number)) for word in [*line.split(), "<eos>"]]
    return np.array(ids, dtype=np.int32)


def characters(train: Path, test: Path) -> Numbered:
    """Characters, numbered over both texts, as nanoGPT does it."""
    texts = [np.frombuffer(p.read_text(encoding="utf-8").encode("utf-32-le"), "<u4") for p in (train, test)]
    alphabet, ids = np.unique(np.concatenate(texts), return_inverse=True)
    ids = ids.astype(np.int32)
    return Numbered(ids[: len(texts[0])], ids[len(texts[0]) :], len(alphabet))
