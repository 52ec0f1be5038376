"""Words read one by one after states: what KenLM's `BaseScore` does, in plain Python or compiled.

A state that plain Python made has a context of `walk`; one that compiled code made is a row of numbers, see
`walk_kernels`, in the bytes that a `State` consists of. So a new one costs hardly anything, and compiled
code finds its numbers without asking for an attribute.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from nextword.core.contracts import UNKNOWN
from nextword.core.errors import DamagedError
from nextword.formats.walk import DAMAGED, Context, TrieWalk, Walk
from nextword.text.vocab import FIRST_WORD

if TYPE_CHECKING:
    from nextword.formats.calls import Calls
    from nextword.ngram.fast.index import Index

Text = str | bytes
Full = tuple[float, int, bool]  # log10 p, the length of the n-gram, whether the word is unknown
OTHER_MODEL = "this State belongs to another model; call BeginSentenceWrite of this one first"
# The first columns of a row: words held, length of the last n-gram, whether its word is unknown, whose it
# is, how many of its words can still matter (-1: not asked yet). Then the nodes and the words.
COLUMNS = struct.Struct("5q")


class State(bytearray):
    """What a model remembers of the preceding words: only as many as can still matter.

    Two states are equal if every continuation has the same probability after both. States can be compared,
    hashed and copied. A new one is empty: `Model.BeginSentenceWrite` or `NullContextWrite` sets it.
    """

    __slots__ = ("_context",)
    _context: Context  # set by plain Python; it counts where there are no bytes

    def _be(self, context: Context) -> None:
        self.clear()
        self._context = context

    def _words(self) -> tuple[int, ...]:
        """Return the words that can still matter, newest first."""
        if not len(self):
            return self._context.words if hasattr(self, "_context") else ()
        held, _, _, maker, matter = COLUMNS.unpack_from(self)
        if matter < 0:
            from nextword.formats.calls import ALIVE

            calls = ALIVE.get(maker)  # without its model, a state goes by all words
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


class Steps:
    """A model that reads words after states: in plain Python until ``letters`` were read, then compiled.

    ``index``: the ids of all words as sentences write them.
    """

    def __init__(self, model: Any, walk: Walk, index: Mapping[bytes, int], letters: int) -> None:
        self.model, self.walk, self.index = model, walk, index
        self.begin, self.null = walk.begin(), walk.null()
        self.calls: Calls | None = None
        self.plain_left = letters
        self.place = np.zeros(1, np.int64)  # the address of the compiled code's head
        self._earlier: list[int] = []  # compiled code whose states still may be used

    def compile(self, index: Index | None = None, worthwhile: bool = True) -> None:
        """Let compiled code take over; with ``index`` it looks n-grams up in memory.

        Without, the trie is searched until half as many words are read as there are n-grams; then putting
        these into memory is worthwhile, if there is room.
        """
        if isinstance(self.walk, TrieWalk):
            shown = [word for word, found in self.index.items() if found >= FIRST_WORD]
            left = sum(self.model.trie.sizes) // 2 if worthwhile else 2**62
            self.calls = self.walk.compiled(shown, index, left)
            self.place[0] = self.calls.head.ctypes.data

    def recover(self) -> None:
        """Find out why a compiled call failed: load all n-grams into memory if it is time, or raise."""
        assert self.calls is not None
        if not self.calls.is_used_up:
            raise DamagedError(DAMAGED)
        from nextword.ngram.fast import index, scoring  # compiled

        self._earlier.append(self.calls.number)
        fits = 3 * index.bytes_needed(self.model.trie) < scoring.free_memory()
        self.compile(self.model.populate() if fits else None, worthwhile=False)

    def count(self, letters: int) -> None:
        """Count what is read in plain Python: much of it is worth the compiled code."""
        self.plain_left -= letters
        if self.plain_left <= 0 and self.calls is None:
            self.compile()

    def write(self, state: State, begin: bool) -> None:
        """Set a state to the start of a sentence, or to an empty context."""
        if self.calls is None:
            state._be(self.begin if begin else self.null)
        else:
            state[:] = self.calls.start if begin else self.calls.null

    def score(self, in_state: State, word: Text, out_state: State) -> float:
        """Return log10 p of a word after a state; ``out_state`` becomes the state after the word."""
        return self.full_score(in_state, word, out_state)[0]

    def full_score(self, in_state: State, word: Text, out_state: State) -> Full:
        """Return log10 p of a word after a state, the n-gram's length, and whether the word is unknown."""
        data = as_bytes(word)
        for state in (in_state, out_state):
            if not isinstance(state, State):
                raise TypeError(f"a State is needed, not {type(state).__name__}")
        index = self.index.get(data, UNKNOWN)
        if self.calls is None:
            log10, length, context = self.step(self._own(in_state), index)
            out_state._be(context)
            self.count(len(data))
            return log10, length, index == UNKNOWN
        before = self._converted(in_state, self.calls)
        found = self.calls.step(before, index, out_state)
        if found is None:
            self.recover()
            return self.full_score(in_state, word, out_state)
        return found, *last(out_state)

    def step(self, context: Context, index: int) -> tuple[float, int, Context]:
        """Read a word in plain Python."""
        return context.steps.get(index) or self.walk.advance(context, index)

    def _converted(self, state: State, calls: Calls) -> State:
        """Return a state that was made before this code took over, or is empty, as one of it."""
        maker = state._maker()
        if maker == calls.number:
            return state
        words = state._words()
        if not maker:
            self._own(state)
        elif maker not in self._earlier:
            raise ValueError(OTHER_MODEL)
        state[:] = calls.start if words == self.begin.words else calls.read(words[::-1])
        return state

    def _own(self, state: State) -> Context:
        """Return the context of a state that plain Python made."""
        if state._maker():
            raise ValueError(OTHER_MODEL)
        context = getattr(state, "_context", self.null)
        if context.walk is not self.walk:
            raise ValueError(OTHER_MODEL)
        return context


def last(state: State) -> tuple[int, bool]:
    """Return the length of the n-gram of the last word that was read, and whether it is unknown."""
    _, length, is_unknown, _, _ = COLUMNS.unpack_from(state)
    return length, bool(is_unknown)


def as_bytes(text: Text) -> bytes:
    """Return a sentence or word in UTF-8."""
    if isinstance(text, str):
        return text.encode("utf-8")
    if isinstance(text, bytes):
        return bytes(text)
    raise TypeError(f"Cannot convert {type(text)} to string")
