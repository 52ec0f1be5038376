"""A batch of training data, the stream of tokens that it is cut from, and batches that read it in columns.

A batch has tokens, the tokens to predict after them, and where the state is reset. A source of batches is a
pure function of (seed, epoch, index), so that training can stop and resume anywhere: `Columns` where a state
is carried from batch to batch, `windows.Windows` where every block is independent, and
`sentences.Sentences` where the documents are short.

Columns: the stream is cut into B columns of equal length; each batch reads the next T tokens of all of them,
so that a recurrent model keeps its state [IITD-1 "Training a RNN Language Model"; Zaremba et al. 2014].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from nextword.core.catalog import find
from nextword.core.contracts import START
from nextword.core.errors import ConfigError
from nextword.core.task import Batches

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Ids = npt.NDArray[Any]  # packed ids, int32, in memory or memory-mapped
Kind = str  # a name of the slot "batches"

_PIECE = 1 << 22  # ids searched at a time for STARTs
NOT_COUNTED = -1  # a target excluded from the loss: START, and padding


@dataclass(frozen=True)
class Rows:
    """A record of arrays with one row per example; a subclass names its fields (None: not there)."""

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self._arrays().values())))

    def cut(self, rows: slice) -> Self:
        """Return these rows alone, of every field."""
        return replace(self, **{name: array[rows] for name, array in self._arrays().items()})

    def _arrays(self) -> dict[str, Any]:
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: array for name, array in found.items() if array is not None}


@dataclass(frozen=True)
class Batch(Rows):
    """``targets_BT[b, t]`` is the token after ``inputs_BT[b, t]``; `NOT_COUNTED` where there is none."""

    inputs_BT: Ints
    targets_BT: Ints
    resets_BT: Bools | None = None  # the state is reset before this position is read

    @property
    def tokens(self) -> int:
        """Number of predictions in the loss."""
        return int(np.count_nonzero(self.targets_BT != NOT_COUNTED))

    def blank(self) -> Self:
        """Return one row of which nothing is learned."""
        row = self.cut(slice(0, 1))
        return replace(row, targets_BT=np.full_like(row.targets_BT, NOT_COUNTED), resets_BT=None)

    def piece(self, positions: slice) -> Self:
        """Return these positions of every row."""
        return replace(self, **{name: array[:, positions] for name, array in self._arrays().items()})


class Stream:
    """Packed ids as a neural model reads them; memory-mapped ids stay on disk.

    With ``carry``, a START inside a document is dropped: END alone separates its lines. ``documents`` are
    the offsets of the STARTs that start a document (None: each does).
    """

    def __init__(self, ids: Ids, documents: Sequence[int] | Ints | None, carry: bool) -> None:
        self._ids = ids
        starts = find_starts(ids)
        self.starts: Ints = starts  # offsets in the packed ids of the STARTs kept
        self._left_out: Ints | None = None
        self._gaps: Ints | None = None  # a place is shifted by the number of gaps at or before it
        if carry and documents is not None and len(documents) < len(starts):
            self.starts = np.asarray(documents, np.int64)
            self._left_out = np.setdiff1d(starts, self.starts, assume_unique=True)
            self._gaps = self._left_out - np.arange(len(self._left_out))
        self._count = len(ids) - (0 if self._left_out is None else len(self._left_out))

    def __len__(self) -> int:
        return self._count

    @property
    def pairs(self) -> int:
        """Positions that have a successor."""
        return max(0, len(self) - 1)

    @property
    def tokens(self) -> int:
        """Tokens to predict: all but the STARTs."""
        return len(self) - len(self.starts)

    def at(self, places: Ints) -> Ints:
        """Return the tokens at these places of the stream."""
        return np.asarray(self._ids[self.offsets(places)], np.int64)

    def offsets(self, places: Ints) -> Ints:
        """Convert places of the stream to offsets in the packed ids."""
        return places if self._gaps is None else places + np.searchsorted(self._gaps, places, side="right")

    def places(self, offsets: Ints) -> Ints:
        """Convert offsets in the packed ids to places of the stream."""
        return offsets if self._left_out is None else offsets - np.searchsorted(self._left_out, offsets)

    def batch(self, pairs_BT: Ints, real_BT: Bools) -> Batch:
        """Return the tokens at these places and their successors; padding is excluded from the loss."""
        pairs_BT = np.where(real_BT, pairs_BT, 0)
        inputs_BT, next_BT = self.at(pairs_BT), self.at(pairs_BT + 1)
        targets_BT = np.where(real_BT & (next_BT != START), next_BT, NOT_COUNTED)
        return Batch(inputs_BT, targets_BT, (inputs_BT == START) & real_BT)


class Columns:
    """Batches (B, T) of a stream cut into B columns; each batch continues from the state of the last one.

    Every epoch starts at another place of the stream, drawn from (seed, epoch), and wraps around: the cuts
    between columns move, and each token is still learned exactly once. A short text has fewer columns.
    """

    def __init__(
        self,
        ids: Ids,
        documents: Sequence[int] | Ints | None = None,
        carry: bool = True,
        batch: int = 20,
        length: int = 35,
        seed: int = 0,
    ) -> None:
        self._stream, self._seed, self._length = Stream(ids, documents, carry), seed, length
        check_length(length, self._stream)
        pairs = self._stream.pairs
        self._rows = max(1, min(batch, pairs // length))
        self._column = -(-pairs // self._rows)
        self.per_epoch = -(-self._column // length)
        self.tokens = self._stream.tokens

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """Yield the batches of an epoch; the first one resets every column."""
        pairs = self._stream.pairs
        shift = int(generator(self._seed, epoch).integers(pairs)) if epoch else 0
        first_B1 = np.arange(self._rows)[:, None] * self._column
        for index in range(start, self.per_epoch):
            places_T = np.arange(index * self._length, min((index + 1) * self._length, self._column))
            places_BT = first_B1 + places_T
            batch = self._stream.batch((places_BT + shift) % pairs, places_BT < pairs)
            if index == 0 and batch.resets_BT is not None:
                batch.resets_BT[:, 0] = True
            yield batch


def find_starts(ids: Ids) -> Ints:
    """Return the offsets of every START, searching piece by piece."""
    found = [np.flatnonzero(ids[at : at + _PIECE] == START) + at for at in range(0, len(ids), _PIECE)]
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def check_length(length: int, stream: Stream) -> None:
    """Raise a ConfigError if one batch would need more context than there is data."""
    if length > stream.pairs:
        raise ConfigError(
            f"'train.length' is {length:,} tokens at a time, but the whole text has only {stream.pairs:,}; "
            f"set at most {max(1, stream.pairs):,}, or provide more text"
        )


def count_ids(ids: Ids, vocab_size: int) -> Ints:
    """Count how often each token has to be predicted; START never."""
    counts = np.zeros(vocab_size, np.int64)
    for at in range(0, len(ids), _PIECE):
        counts += np.bincount(ids[at : at + _PIECE], minlength=vocab_size)
    counts[START] = 0
    return counts


def generator(seed: int, epoch: int) -> np.random.Generator:
    """Return the random generator of one epoch."""
    return np.random.default_rng((seed, epoch))


def make_batches(
    kind: Kind,
    ids: Ids,
    documents: Sequence[int] | Ints | None = None,
    carry: bool = True,
    batch: int = 20,
    length: int = 35,
    seed: int = 0,
) -> Batches:
    """Create the source of batches of this kind."""
    source: Batches = find("batches", kind)(ids, documents, carry, batch, length, seed)
    return source


def choose_kind(
    ids: Ids, documents: Sequence[int] | Ints | None, carry: bool, length: int, recurrent: bool
) -> Kind:
    """Choose columns if a state is carried, windows if not, and sentences if documents are short.

    A document shorter than one batch's length would reset the state within most rows, whereas rows of one
    document each need no resets at all.
    """
    if not recurrent:
        return "windows"
    stream = Stream(ids, documents, carry)
    return "sentences" if len(stream) < length * len(stream.starts) else "columns"
