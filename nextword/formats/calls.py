"""A model for single calls in compiled code: what `walk.TrieWalk` is in plain Python.

Loading it takes a second, which pays off for many calls. The arrays that its kernels read by address live as
long as the object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

import numpy as np
from numba import typeof

from nextword.core.contracts import SPECIALS, START, UNKNOWN
from nextword.core.errors import DamagedError
from nextword.formats import walk_kernels as kernels
from nextword.formats.arpa.lines import ZERO_LOG10
from nextword.ngram.arrays import Trie
from nextword.ngram.fast.index import Index
from nextword.ngram.settings import LONGEST
from nextword.text import kernels as words
from nextword.text.vocab import FIRST_WORD

Array = np.ndarray[Any, np.dtype[Any]]
DAMAGED = "the offsets of the n-gram arrays point outside them; train the run again"
_SLOTS_PER_WORD = 4
UNLIMITED = 2**62
Room = tuple[Array, Array, Array]
Place = tuple[int, Array]  # of a context: its address, and the block that it is a row of
_ROWS = 128  # contexts of a block


class Calls:
    """The kernels with the row of addresses they need, ``head``, and contexts by their addresses.

    ``shown``: the words from id 3 on as sentences write them; ``zeros``: log10 p to report for words of
    probability zero; ``index``: hash tables of the n-grams, where they are in memory. Without them, ``left``
    words are searched in the trie; then every call fails, `is_used_up` says so, and tables are worthwhile.
    """

    __slots__ = (
        "_full_scores", "_kept", "_rooms", "_size", "copy", "head", "null", "rows", "score", "start", "step",
    )  # fmt: skip

    def __init__(
        self,
        trie: Trie,
        shown: Sequence[bytes],
        zeros: Mapping[int, float],
        index: Index | None = None,
        left: int = UNLIMITED,
    ) -> None:
        self.head, self._kept = _layout(trie, shown, zeros, index)
        self.head[kernels.LEFT] = UNLIMITED
        self._size = kernels.NODES + 2 * trie.order
        self._rooms: list[Room] = []
        self.rows: Iterator[Place] = iter(())
        # Called with `head` as first argument: nothing is in between. NaN: damaged arrays, or used up.
        self.score = _direct(kernels.score, self.head, b"", True, True)
        self.null, self.start = self.place(), self.place()
        self.step = _direct(kernels.step, self.start[0], UNKNOWN, self.start[0])
        self.copy = _direct(kernels.copy, self.null[0], self.start[0])
        self._full_scores = _direct(kernels.full_scores, self.head, b"", True, True, *_arrays(2))
        self.head[kernels.LEFT] = left
        if trie.order > 1:
            context = view(self.start)
            context[kernels.HELD] = 1
            context[kernels.NODES] = context[kernels.NODES + trie.order] = START

    @property
    def is_used_up(self) -> bool:
        """Whether so many words were searched in the trie that tables are worthwhile."""
        return bool(self.head[kernels.LEFT] < 0)

    def place(self) -> Place:
        """Return room for a context, empty; rows come in blocks, each alive as long as one of its rows."""
        found = next(self.rows, None)
        if found is not None:
            return found
        block = np.zeros((_ROWS, self._size), np.int64)
        block[:, kernels.HEAD] = self.head.ctypes.data
        first, width = block.ctypes.data, block.strides[0]
        self.rows = zip(range(first, first + block.nbytes, width), repeat(block), strict=False)
        return next(self.rows)

    def full_scores(
        self, sentence: bytes, begin: bool, end: bool
    ) -> Iterator[tuple[float, int, bool]] | None:
        """Return log10 p of each word, the length of its n-gram, whether it is unknown; None: see `score`."""
        most = len(sentence) // 2 + 2
        room = self._rooms.pop() if self._rooms else _arrays(256)  # arrays are used by one thread at a time
        if len(room[0]) < most:
            room = _arrays(2 * most)
        count = self._full_scores(self.head, sentence, begin, end, *room)
        if count < 0:
            return None
        log10, length, is_unknown = room
        found = zip(log10[:count].tolist(), length[:count].tolist(), is_unknown[:count].tolist(), strict=True)
        self._rooms.append(room)
        return found

    def read(self, ids: Sequence[int]) -> Place:
        """Return the context after these words, oldest first."""
        place = self.place()
        for word in ids:
            if np.isnan(self.step(place[0], word, place[0])):
                raise DamagedError(DAMAGED)
        return place

    def last(self, place: Place) -> tuple[int, bool]:
        """Return the length of the n-gram of the last word that was read, and whether it is unknown."""
        context = view(place)
        return int(context[kernels.LENGTH]), bool(context[kernels.IS_UNKNOWN])

    def words(self, place: Place) -> tuple[int, ...]:
        """Return the words of a context that can still matter, newest first."""
        context = view(place)
        keep = kernels.matter(self.head, context)
        if keep < 0:
            raise DamagedError(DAMAGED)
        first = kernels.NODES + int(self.head[kernels.ORDER])
        return tuple(context[first : first + keep].tolist())


def view(place: Place) -> Array:
    """Return the row of numbers at a place."""
    at, block = place
    row: Array = block[(at - block.ctypes.data) // block.strides[0]]
    return row


def _direct(kernel: Any, *args: Any) -> Callable[..., Any]:
    """Return a kernel compiled for arguments of these types, which every call must have.

    The kernel itself finds out their types at each call, which takes longer than scoring a word.
    """
    kernel(*args)
    found: Callable[..., Any] = kernel.get_overload(tuple(map(typeof, args)))
    return found


def _arrays(size: int) -> Room:
    return np.empty(size), np.empty(size, np.int64), np.empty(size, np.bool_)


def _layout(
    trie: Trie, shown: Sequence[bytes], zeros: Mapping[int, float], index: Index | None
) -> tuple[Array, list[Any]]:
    """Return the head, and what must live as long as it."""
    slots, shift, arena, starts = _word_table(shown)
    constants = np.array([zeros.get(word, ZERO_LOG10) for word in (UNKNOWN, START)])
    head = np.zeros(kernels.FIXED + kernels.LEVEL * trie.order, np.int64)
    head[kernels.ORDER], head[kernels.INDEXED] = trie.order, index is not None
    head[kernels.SLOTS], head[kernels.SLOT_COUNT], head[kernels.SHIFT] = slots.ctypes.data, len(slots), shift
    head[kernels.ARENA], head[kernels.ARENA_SIZE] = arena.ctypes.data, len(arena)
    head[kernels.STARTS], head[kernels.STARTS_SIZE] = starts.ctypes.data, len(starts)
    unigrams = np.ones((trie.vocab_size, 2), np.float32)
    unigrams[:, 0] = trie.levels[0].probs
    if trie.levels[0].backoffs is not None:
        unigrams[:, 1] = trie.levels[0].backoffs
    head[kernels.ZEROS], head[kernels.UNIGRAMS] = constants.ctypes.data, unigrams.ctypes.data
    cells = (LONGEST + 1) * (kernels.BLOCK + 1) + kernels.BLOCK
    ids, numbers = np.zeros(cells, np.int64), np.zeros(cells)
    head[kernels.BLOCK_IDS], head[kernels.BLOCK_NUMBERS] = ids.ctypes.data, numbers.ctypes.data
    for row, level in zip(head[kernels.FIXED :].reshape(trie.order, -1), trie.levels, strict=True):
        row[kernels.WORDS], row[kernels.PROBS] = level.words.ctypes.data, level.probs.ctypes.data
        row[kernels.SIZE] = len(level)
        if level.backoffs is not None and level.children is not None:
            row[kernels.BACKOFFS], row[kernels.CHILDREN] = (
                level.backoffs.ctypes.data,
                level.children.ctypes.data,
            )
            row[kernels.WIDE] = level.children.itemsize == 8
    tables = () if index is None else index.tables
    for n, table in enumerate(tables, start=1):
        row = head[kernels.FIXED + n * kernels.LEVEL :]
        row[kernels.TABLE], row[kernels.PLACES] = table.ctypes.data, len(table)
    return head, [trie, index, slots, arena, starts, constants, unigrams, ids, numbers]


def _word_table(shown: Sequence[bytes]) -> tuple[Array, int, Array, Array]:
    """Return the hash table of all words: slots, shift, the words' bytes, and where each starts."""
    arena = np.frombuffer(b"".join(word + b"\n" for word in shown) + b"\n", np.uint8).copy()
    lengths = np.fromiter((len(word) + 1 for word in shown), np.int64, len(shown))
    starts = np.zeros(len(shown) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    bits = max(12, int(_SLOTS_PER_WORD * len(shown)).bit_length())
    slots, shift = np.zeros(2 << bits, np.uint64), 64 - bits
    for number, name in enumerate(SPECIALS):
        special, first = np.frombuffer(name.encode() + b"\n", np.uint8).copy(), np.zeros(1, np.int64)
        words.fill(slots, np.uint64(shift), special, first, first + number)
    ids = np.arange(FIRST_WORD, FIRST_WORD + len(shown))
    words.fill(slots, np.uint64(shift), arena, starts[:-1], ids)
    return slots, shift, arena, starts
