"""Word by word through a model, one sequence at a time and in plain Python: what KenLM's states are.

A context remembers the steps that were taken from it, so that text that repeats itself costs a dictionary
lookup a word. A context keeps only the words that can still matter: the longest suffix that has extensions or
a backoff weight of its own (Li and Khudanpur 2008, as in KenLM).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from nextword.core.contracts import START, UNKNOWN, LanguageModel
from nextword.core.errors import DamagedError
from nextword.formats.arpa_lines import LN10, ZERO_LOG10
from nextword.ngram.arrays import Trie

_DAMAGED = "the offsets of the n-gram arrays point outside them; train the run again"
MAX_STEPS = 400_000  # steps remembered before all are forgotten; about 100 MB
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
        """Only START was read."""
        ...

    def null(self) -> Context:
        """Nothing was read."""
        ...

    def advance(self, context: Context, word: int) -> Step:
        """Read one word; the step is remembered in ``context.steps``."""
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
        """Only START was read; it stays even where nothing follows it."""
        return self._context((START,), (START,)) if self.order > 1 else self.null()

    def null(self) -> Context:
        """Nothing was read."""
        return self._context((), ())

    def compiled(self) -> Callable[[list[int], bool], float]:
        """log10 p of a list of ids, compiled: loading it takes a second, which pays for many sentences."""
        from nextword.formats.walk_kernels import layout, score

        table = layout(self._trie)
        unknown, start = (self._zeros.get(word, ZERO_LOG10) for word in (UNKNOWN, START))

        def total(ids: list[int], begin: bool) -> float:
            found: float = score(table, np.array(ids, dtype=np.int32), begin, unknown, start)
            if found != found:
                raise DamagedError(_DAMAGED)
            return found

        return total

    def _context(self, words: tuple[int, ...], nodes: tuple[int, ...]) -> Context:
        found = self._contexts.get(words)
        if found is None:
            weights = [_log10(self._backoffs[n][node]) for n, node in enumerate(nodes)]
            found = self._contexts[words] = Context(self, words, (nodes, weights))
        return found

    def advance(self, context: Context, word: int) -> Step:
        """Ever longer n-grams as long as they exist; then the weights of the contexts left over."""
        try:
            return self._remember(context, word, self._advance(context, word))
        except IndexError as error:
            raise DamagedError(_DAMAGED) from error

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


class ContractWalk(_Memory):
    """Any language model, by the contract alone. The n-gram's length is then that of the context in use."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self._model = model
        self.order = int(getattr(model, "order", 0)) or int(getattr(model, "context", 0)) + 1

    def begin(self) -> Context:
        """Only START was read."""
        return Context(self, (START,), self._model.start(1))

    def null(self) -> Context:
        """Nothing was read."""
        return Context(self, (), self._model.start(1, begin=False))

    def advance(self, context: Context, word: int) -> Step:
        """One call of `score` with one word."""
        logp_BT, state = self._model.score(np.array([[word]]), np.array([1]), context.key)
        nats = float(logp_BT[0, 0])
        words = (word, *context.words)[: self.order - 1] if self.order > 1 else (word, *context.words)
        length = min(len(context.words) + 1, self.order) if self.order > 1 else 1
        log10 = nats / LN10 if math.isfinite(nats) else ZERO_LOG10
        return self._remember(context, word, (log10, length, Context(self, words, state)))


def _view(array: Any) -> memoryview:
    """The array for plain Python: indexing a memoryview is several times quicker than indexing NumPy."""
    return memoryview(np.ascontiguousarray(array).data)


def _log10(value: float) -> float:
    return max(math.log10(value), ZERO_LOG10) if value > 0 else ZERO_LOG10
