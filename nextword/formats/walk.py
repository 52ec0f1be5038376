"""Word by word through a model, one sequence at a time and in plain Python: the equivalent of KenLM's states.

A context remembers the steps that were taken from it, so that repeated text costs a dictionary lookup per
word. A context keeps only the words that can still matter: the longest suffix that has extensions or
a backoff weight of its own (Li and Khudanpur 2008, as in KenLM).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from nextword.core.contracts import START, LanguageModel, context_of
from nextword.core.errors import ContextError, DamagedError
from nextword.formats.arpa.lines import LN10, ZERO_LOG10
from nextword.models.distributions import as_numpy
from nextword.ngram.arrays import Trie

if TYPE_CHECKING:
    from nextword.formats.calls import Calls
    from nextword.ngram.fast.index import Index

DAMAGED = "the offsets of the n-gram arrays point outside them; train the run again"
MAX_STEPS = 400_000  # steps remembered before all are forgotten; about 100 MB
MAX_DISTRIBUTIONS = 64  # whole distributions that are kept
Step = tuple[float, int, "Context"]  # log10 p, length of the n-gram that gave it, the context after the word


class Context:
    """What was read. ``words``: newest first; ``key``: what its walk needs; ``steps``: taken before."""

    __slots__ = ("key", "steps", "walk", "words")

    def __init__(self, walk: Walk, words: tuple[int, ...], key: Any) -> None:
        self.walk, self.words, self.key = walk, words, key
        self.steps: dict[int, Step] = {}


class Walk(Protocol):
    """A model as contexts and steps."""

    order: int

    def begin(self) -> Context:
        """Return the context that has read only START."""
        ...

    def null(self) -> Context:
        """Return the context that has read nothing."""
        ...

    def advance(self, context: Context, word: int) -> Step:
        """Read one word; the step may be remembered in ``context.steps``."""
        ...


class _Memory:
    """Contexts by their words, and a bound on the steps that are kept."""

    def __init__(self) -> None:
        self._contexts: dict[tuple[int, ...], Context] = {}
        self._steps = 0

    def _remember(self, context: Context, word: int, step: Step) -> Step:
        if self._steps >= MAX_STEPS:
            for known in self._contexts.values():
                known.steps.clear()
            self._contexts.clear()
            self._steps = 0
        self._steps += 1
        context.steps[word] = step
        return step


class TrieWalk(_Memory):
    """A model that backs off. ``zeros``: log10 p to report for words of probability zero."""

    def __init__(self, trie: Trie, zeros: dict[int, float] | None = None) -> None:
        super().__init__()
        self.order = trie.order
        self._trie = trie
        self._zeros = zeros or {}
        self._words = [_view(level.words) for level in trie.levels]
        self._probs = [_view(level.probs) for level in trie.levels]
        self._backoffs = [_view(level.backoffs) for level in trie.levels[:-1]]
        self._children = [_view(level.children) for level in trie.levels[:-1]]

    def begin(self) -> Context:
        """Return the context that has read only START; it stays even where nothing follows it."""
        return self._context((START,), (START,)) if self.order > 1 else self.null()

    def null(self) -> Context:
        """Return the context that has read nothing."""
        return self._context((), ())

    def compiled(self, shown: Sequence[bytes], index: Index | None, left: int) -> Calls:
        """Return the same in compiled code, given the words from id 3 on as sentences write them."""
        from nextword.formats.calls import Calls

        return Calls(self._trie, shown, self._zeros, index, left)

    def _context(self, words: tuple[int, ...], nodes: tuple[int, ...]) -> Context:
        found = self._contexts.get(words)
        if found is None:
            weights = [_log10(self._backoffs[n][node]) for n, node in enumerate(nodes)]
            found = self._contexts[words] = Context(self, words, (nodes, weights))
        return found

    def advance(self, context: Context, word: int) -> Step:
        """Take longer n-grams as long as they exist, then the weights of the contexts left over."""
        try:
            return self._remember(context, word, self._advance(context, word))
        except IndexError as error:
            raise DamagedError(DAMAGED) from error

    def _advance(self, context: Context, word: int) -> Step:
        contexts, weights = context.key
        nodes = [word]
        for n, node in enumerate(contexts):  # contexts of length n+1 give n-grams of length n+2
            first, last = self._children[n][node], self._children[n][node + 1]
            words = self._words[n + 1]
            at = bisect_left(words, word, first, last)
            if at == last or words[at] != word:
                break
            nodes.append(at)
        length = len(nodes)
        p = self._probs[length - 1][nodes[-1]]
        log10 = _log10(p) if p > 0 else self._zeros.get(word, ZERO_LOG10)
        log10 += sum(weights[length - 1 :])
        keep = min(length, self.order - 1)
        while keep and not self._matters(keep - 1, nodes[keep - 1]):
            keep -= 1
        after = self._context((word, *context.words[: keep - 1]) if keep else (), tuple(nodes[:keep]))
        return log10, length, after

    def _matters(self, n: int, node: int) -> bool:
        children = self._children[n]
        return bool(children[node] != children[node + 1] or self._backoffs[n][node] != 1.0)


class _Read:
    """What a context has read: the state before its last word, and the word; the state after it if needed."""

    __slots__ = ("_before", "_model", "_state", "asked", "logp_V", "word")

    def __init__(self, model: LanguageModel, before: _Read | None, word: int, state: Any = None) -> None:
        self._model, self._before, self.word, self._state = model, before, word, state
        self.asked = 0
        self.logp_V: Any = None

    @property
    def state(self) -> Any:
        """The model's state; a word that nothing follows is never read."""
        if self._state is None:
            self.read_now()
        return self._state

    def read_now(self) -> float:
        """Read the word; returns its log p."""
        assert self._before is not None
        logp_BT, self._state = self._model.score(np.array([[self.word]]), np.array([1]), self._before.state)
        self._before = None
        return float(logp_BT[0, 0])


class ContractWalk:
    """Any language model, by the contract alone. The n-gram's length is then that of the context in use.

    A second word after the same context comes from the whole distribution, which is kept for the last
    contexts that were asked so. ``order`` is 0 where a model looks back without a limit.
    """

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        context = context_of(model)
        self.order = 0 if context is None else context + 1
        self._kept: deque[_Read] = deque()

    def begin(self) -> Context:
        """Return the context that has read only START."""
        return Context(self, (START,), _Read(self._model, None, START, self._model.start(1)))

    def null(self) -> Context:
        """Return the context that has read nothing."""
        return Context(self, (), _Read(self._model, None, START, self._model.start(1, begin=False)))

    def log10(self, ids: list[int], begin: bool) -> Any:
        """Return log10 p of each word of a sentence."""
        state = self._model.start(1, None, begin)
        logp_BT, _ = self._model.score(np.array([ids], np.int64), np.array([len(ids)]), state)
        nats_T = as_numpy(logp_BT, np.float64)[0]
        return np.where(np.isfinite(nats_T), nats_T / LN10, ZERO_LOG10)

    def length(self, before: int) -> int:
        """Return the length of the n-gram that predicts a word with this many words before it."""
        return min(before + 1, self.order or before + 1)

    def advance(self, context: Context, word: int) -> Step:
        """Return the word's log p; the model reads it only when more is asked."""
        read: _Read = context.key
        read.asked += 1
        after = _Read(self._model, read, word)
        logp_V = self._distribution(read) if read.asked > 1 else None
        nats = after.read_now() if logp_V is None else float(logp_V[word])
        words = (word, *context.words)
        words = words[: self.order - 1] if self.order > 1 else words
        log10 = nats / LN10 if math.isfinite(nats) else ZERO_LOG10
        return log10, self.length(len(context.words)), Context(self, words, after)

    def _distribution(self, read: _Read) -> Any:
        """Return log p of every word; None where a model has none (mle in a context it has not seen)."""
        if read.logp_V is None:
            try:
                read.logp_V = as_numpy(self._model.next(read.state))[0]
            except ContextError:
                return None
            self._kept.append(read)
            if len(self._kept) > MAX_DISTRIBUTIONS:
                self._kept.popleft().logp_V = None
        return read.logp_V


def _view(array: Any) -> memoryview:
    """View an array for plain Python: indexing a memoryview is several times faster than NumPy."""
    return memoryview(np.ascontiguousarray(array).data)


def _log10(value: float) -> float:
    return max(math.log10(value), ZERO_LOG10) if value > 0 else ZERO_LOG10
