"""The n-grams of a model as sorted arrays: a trie, context first.

Level n holds every n-gram once, sorted by its tokens from first to last. The n-grams that extend
node i of level n by one token are the nodes ``children[i] … children[i+1]`` of level n+1, sorted
by that token: the whole next-token distribution of a context is one slice. The arrays are plain
``.npy`` files that are memory-mapped, so opening a model of any size is instant.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from nextword.core.errors import DamagedError

# Where the probability of a token unseen after its context goes:
#   shorter  to the context without its first token, times the context's backoff weight
#   unigram  straight to the unigram distribution (the slide's Laplace formula)
#   uniform  to an equal share for every token (add-delta)
#   none     nowhere: the probability is 0, and an unseen context has no distribution (mle)
Fallback = Literal["shorter", "unigram", "uniform", "none"]
Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Level:
    """All n-grams of one order. ``backoffs`` and ``children`` are None at the highest order."""

    words: Array  # int32: the last token of each n-gram; at level 1 this is 0 … V-1
    probs: Array  # float32: p(last token | the tokens before it), not its logarithm
    backoffs: Array | None  # float32: multiplies the fallback when this n-gram is the context
    children: Array | None  # uint32 or uint64, one more than words: where the extensions start

    def __len__(self) -> int:
        return len(self.probs)


@dataclass(frozen=True)
class Trie:
    """The levels 1 … order, and the fallback for unseen tokens."""

    levels: tuple[Level, ...]
    fallback: Fallback = "shorter"

    @property
    def order(self) -> int:
        """The longest n-gram."""
        return len(self.levels)

    @property
    def vocab_size(self) -> int:
        """V: level 1 has a node for every token."""
        return len(self.levels[0])

    @property
    def sizes(self) -> list[int]:
        """Number of n-grams of each order."""
        return [len(level) for level in self.levels]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays on disk."""
        return sum(array.nbytes for array in self.named().values())

    def named(self) -> dict[str, Array]:
        """Map file names to arrays; level 1 needs no words, since node = token."""
        found: dict[str, Array] = {}
        for n, level in enumerate(self.levels, start=1):
            if n > 1:
                found[f"ngram-{n}.words.npy"] = level.words
            found[f"ngram-{n}.probs.npy"] = level.probs
            if level.backoffs is not None and level.children is not None:
                found[f"ngram-{n}.backoffs.npy"] = level.backoffs
                found[f"ngram-{n}.children.npy"] = level.children
        return found

    @classmethod
    def load(cls, folder: Path, order: int, fallback: Fallback) -> Trie:
        """Memory-map the arrays of a folder; shapes and types are checked, contents are not."""
        return cls(tuple(_load_level(folder, n, order) for n in range(1, order + 1)), fallback)


def _load_level(folder: Path, n: int, order: int) -> Level:
    probs = _map(folder / f"ngram-{n}.probs.npy", ("<f4",))
    words = (
        np.arange(len(probs), dtype=np.int32)
        if n == 1
        else _map(folder / f"ngram-{n}.words.npy", ("<i4",), len(probs))
    )
    if n == order:
        return Level(words, probs, None, None)
    backoffs = _map(folder / f"ngram-{n}.backoffs.npy", ("<f4",), len(probs))
    children = _map(folder / f"ngram-{n}.children.npy", ("<u4", "<u8"), len(probs) + 1)
    return Level(words, probs, backoffs, children)


def _map(path: Path, types: tuple[str, ...], length: int | None = None) -> Array:
    """Memory-map a one-dimensional array read-only; anything else is a DamagedError."""
    try:
        # "c" maps privately: read-only arrays would make numba compile the kernels again.
        array: Array = np.asarray(np.load(path, mmap_mode="c", allow_pickle=False))
    except FileNotFoundError as error:
        raise DamagedError(f"{path} is missing; the run is incomplete, train it again") from error
    except Exception as error:  # a damaged header can raise nearly anything
        raise DamagedError(f"{path} is not a valid array file ({error}); train the run again") from error
    if array.ndim != 1 or array.dtype.str not in types:
        raise DamagedError(
            f"{path} contains {array.dtype} {array.shape}, expected one row of {' or '.join(types)}"
        )
    if length is not None and len(array) != length:
        raise DamagedError(f"{path} has {len(array):,} entries, expected {length:,}; train the run again")
    return array
