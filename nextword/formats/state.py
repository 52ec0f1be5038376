"""A state of KenLM's interface: what was read, made by plain Python or by compiled code.

One that plain Python made has a context of `walk`; one that compiled code made is a row of numbers, see
`walk_kernels`, in the bytes that a `State` consists of. So a new one costs hardly anything, and compiled
code finds its numbers without asking for an attribute.
"""

from __future__ import annotations

import struct
from typing import Any, Protocol
from weakref import WeakValueDictionary

import numpy as np

# The first columns of a row: words held, length of the last n-gram, whether its word is unknown, whose it
# is, how many of its words can still matter (-1: not asked yet). Then the nodes and the words.
COLUMNS = struct.Struct("5q")


class Maker(Protocol):
    """Compiled code that makes states: `calls.Calls`."""

    def matter(self, context: Any) -> int:
        """Return how many words of a context can still matter."""
        ...


MAKERS: WeakValueDictionary[int, Maker] = WeakValueDictionary()  # those alive, by their numbers


class State(bytearray):
    """What a model remembers of the preceding words: only as many as can still matter.

    Two states are equal if every continuation has the same probability after both. States can be compared,
    hashed and copied. A new one is empty: `Model.BeginSentenceWrite` or `NullContextWrite` sets it.
    """

    __slots__ = ("_context",)
    _context: Any  # a `walk.Context`, set by plain Python; it counts where there are no bytes

    def _be(self, context: Any) -> None:
        self.clear()
        self._context = context

    def _words(self) -> tuple[int, ...]:
        """Return the words that can still matter, newest first."""
        if not len(self):
            return tuple(self._context.words) if hasattr(self, "_context") else ()
        held, _, _, maker, matter = COLUMNS.unpack_from(self)
        if matter < 0:
            calls = MAKERS.get(maker)  # without its model, a state goes by all words
            matter = held if calls is None else calls.matter(np.frombuffer(self, np.int64))
            struct.pack_into("q", self, COLUMNS.size - 8, matter)
        first = (len(self) + COLUMNS.size) // 2  # as many nodes as words
        return struct.unpack_from(f"{matter}q", self, first)

    def _maker(self) -> int:
        """Return the number of the compiled code that made this state; 0: none did."""
        return int(COLUMNS.unpack_from(self)[3]) if len(self) else 0

    def _key(self) -> tuple[int, tuple[int, ...]]:
        words = self._words()
        return len(words), words

    def __eq__(self, other: object) -> bool:
        return self._words() == other._words() if isinstance(other, State) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return self._words() != other._words() if isinstance(other, State) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self._key() < other._key() if isinstance(other, State) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self._key() <= other._key() if isinstance(other, State) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return self._key() > other._key() if isinstance(other, State) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self._key() >= other._key() if isinstance(other, State) else NotImplemented

    def __hash__(self) -> int:  # type: ignore[override]  # unlike other bytes, a state has one
        return hash(self._words())

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<State of {len(self._words())} words>"

    def __copy__(self) -> State:
        copied = State(self)
        if hasattr(self, "_context"):
            copied._context = self._context
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> State:
        return self.__copy__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("a State cannot be pickled: it belongs to a model that is in memory")


def last(state: State) -> tuple[int, bool]:
    """Return the length of the n-gram of the last word that was read, and whether it is unknown."""
    _, length, is_unknown, _, _ = COLUMNS.unpack_from(state)
    return length, bool(is_unknown)
