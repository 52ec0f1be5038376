"""A model for single calls in compiled code: what `walk.TrieWalk` is in plain Python.

Loading it takes a second, which pays off for many calls. The arrays that its kernels read by address live as
long as the object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
from numba import typeof

from nextword.core.contracts import SPECIALS, START, UNKNOWN
from nextword.core.errors import DamagedError
from nextword.formats import walk_kernels as kernels
from nextword.formats.arpa.lines import ZERO_LOG10
from nextword.formats.state import MAKERS, State
from nextword.ngram.arrays import Trie
from nextword.ngram.fast.index import Index
from nextword.ngram.settings import LONGEST
from nextword.text import kernels as words
from nextword.text.vocab import FIRST_WORD

Array = np.ndarray[Any, np.dtype[Any]]
_SLOTS_PER_WORD = 1.5  # at least; more make the table larger than a cache, which costs more than it saves
UNLIMITED = 2**62
Room = tuple[Array, Array, Array]
_numbers = count(1)
DAMAGED = "the offsets of the n-gram arrays point outside them; train the run again"


class Calls:
    """The kernels with the row of addresses they need, ``head``; ``number`` is in the states it makes.

    ``shown``: the words from id 3 on as sentences write them; ``zeros``: log10 p to report for words of
    probability zero; ``index``: hash tables of the n-grams, where they are in memory. Without them, ``left``
    words are searched in the trie; then every call fails, `is_used_up` says so, and tables are worthwhile.
    """

    __slots__ = (
        "__weakref__", "_full_scores", "_kept", "_rooms", "head", "null", "number", "score", "start",
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
        self.number = next(_numbers)
        MAKERS[self.number] = self
        self._rooms: list[Room] = []
        # Called with `head` as first argument: nothing is in between. NaN: damaged arrays, or used up.
        self.score = _direct(kernels.score, self.head, b"", True, True)
        self._full_scores = _direct(kernels.full_scores, self.head, b"", True, True, *_arrays(2))
        self.head[kernels.LEFT] = left
        context = np.zeros(kernels.NODES + 2 * trie.order, np.int64)
        context[kernels.MAKER], context[kernels.MATTER] = self.number, -1
        self.null = context.tobytes()  # contexts as the bytes of a `State`
        self.head[kernels.NUMBER], self.head[kernels.BYTES] = self.number, context.nbytes
        self.head[kernels.KIND] = id(State)
        if trie.order > 1:
            context[kernels.HELD] = context[kernels.MATTER] = 1  # START stays even where nothing follows it
            context[kernels.NODES] = context[kernels.NODES + trie.order] = START
        self.start = context.tobytes()

    @property
    def is_used_up(self) -> bool:
        """Whether so many words were searched in the trie that tables are worthwhile."""
        return bool(self.head[kernels.LEFT] < 0)

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

    def step(self, before: State, word: int, after: State) -> float | None:
        """Return log10 p of a word after a state, and write the state after it; None: see `score`."""
        if len(after) != len(self.null):
            after[:] = self.null
        log10 = kernels.step(self.head, np.frombuffer(before, np.int64), word, np.frombuffer(after, np.int64))
        return None if np.isnan(log10) else log10

    def read(self, ids: Sequence[int]) -> State:
        """Return the state after these words, oldest first."""
        state = State(self.null)
        for word in ids:
            if self.step(state, word, state) is None:
                raise DamagedError(DAMAGED)
        return state

    def matter(self, context: Array) -> int:
        """Return how many words of a context can still matter."""
        found = int(kernels.matter(self.head, context))
        if found < 0:
            raise DamagedError(DAMAGED)
        return found


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
