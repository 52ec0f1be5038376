"""Words read one by one after states: what KenLM's `BaseScore` does, in plain Python or compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from nextword.core.contracts import UNKNOWN
from nextword.core.errors import DamagedError
from nextword.formats.state import State, last
from nextword.formats.walk import DAMAGED, Context, TrieWalk, Walk
from nextword.text.vocab import FIRST_WORD

if TYPE_CHECKING:
    from nextword.formats.calls import Calls
    from nextword.ngram.fast.index import Index

Text = str | bytes
Full = tuple[float, int, bool]  # log10 p, the length of the n-gram, whether the word is unknown
OTHER_MODEL = "this State belongs to another model; call BeginSentenceWrite of this one first"


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


def as_bytes(text: Text) -> bytes:
    """Return a sentence or word in UTF-8."""
    if isinstance(text, str):
        return text.encode("utf-8")
    if isinstance(text, bytes):
        return bytes(text)
    raise TypeError(f"Cannot convert {type(text)} to string")
