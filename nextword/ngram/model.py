"""The n-gram model as a `LanguageModel`: the state is the last tokens, as nodes of the trie.

p(w | context) = the probability stored with the longest n-gram seen in training, times the backoff
weights of the longer contexts that were seen without w. All rows and positions of a batch go
through one level of the trie at a time. [XMU "n-gram language models"]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nextword.core.contracts import START, UNKNOWN, never_next, refuse_source
from nextword.core.errors import ContextError, DamagedError
from nextword.ngram.arrays import Level, Trie

if TYPE_CHECKING:
    from nextword.ngram.fast.index import Index
    from nextword.ngram.quantized import QuantizedTrie

Array = np.ndarray[Any, np.dtype[Any]]
FEW = 16  # up to this many rows are stepped one by one
SMALL = 50_000  # up to this many ids are scored in plain NumPy, without compiled kernels


@dataclass(frozen=True)
class NgramState:
    """The contexts of length 1, 2, … as nodes of their levels (-1: unseen), and the number of tokens read."""

    nodes_BN: Array  # int64, one column for each context length 1 … order-1
    read_B: Array  # int64, START included


class NgramModel:
    """A count model of any smoothing; `arrays.Trie` defines what its numbers mean."""

    def __init__(
        self,
        trie: Trie,
        smoothing: str = "modified-kneser-ney",
        is_probability: bool = True,
        closed: bool = False,
        quantized: QuantizedTrie | None = None,
        exact: NgramModel | None = None,
    ) -> None:
        self.trie = trie
        self.smoothing = smoothing
        self.is_probability = is_probability  # False: `stupid` gives scores
        self.closed = closed  # UNKNOWN has no probability
        self.quantized = quantized  # how it is stored, if in few bits; `trie` is that, expanded
        self.exact = exact  # the model before it was quantized, until the loss has been measured
        self.order = trie.order
        self.vocab_size = trie.vocab_size

    # -- the contract ---------------------------------------------------------------------

    def start(self, batch: int, source: Any = None, begin: bool = True) -> NgramState:
        """Return a state that has read START, or nothing."""
        refuse_source(source)
        nodes_BN = np.full((batch, self.order - 1), -1, dtype=np.int64)
        if begin and self.order > 1:
            nodes_BN[:, 0] = START
        return NgramState(nodes_BN, np.full(batch, int(begin), dtype=np.int64))

    def next(self, state: NgramState) -> Array:
        """Return the whole distribution of every row: one slice of the trie per context length."""
        p_BV = np.empty((len(state.read_B), self.vocab_size))
        for row, (nodes_N, read) in enumerate(zip(state.nodes_BN, state.read_B, strict=True)):
            p_BV[row] = self._distribution(nodes_N, int(read))
        with np.errstate(divide="ignore", invalid="ignore"):  # NaN is an error further up
            return np.log(p_BV, out=p_BV)

    def step(self, ids_B: Array, state: NgramState) -> tuple[Array, NgramState]:
        """Read one token per row, then `next`."""
        ids_B = np.asarray(ids_B, dtype=np.int64)
        if len(ids_B) <= FEW:
            state = self._advance(ids_B, state)
        else:
            state = self.score(ids_B[:, None], np.ones(len(ids_B), dtype=np.int64), state)[1]
        return self.next(state), state

    def score(
        self, ids_BT: Array, lengths_B: Array, state: NgramState | None = None
    ) -> tuple[Array, NgramState]:
        """Return log-probabilities of all tokens of a padded batch, and the state after each row."""
        ids_BT, lengths_B = np.asarray(ids_BT, dtype=np.int64), np.asarray(lengths_B, dtype=np.int64)
        state = self.start(len(ids_BT)) if state is None else state
        rows_B, (_, T) = np.arange(len(ids_BT)), ids_BT.shape
        real_BT = np.arange(T) < lengths_B[:, None]
        ids_BT = np.where(real_BT, ids_BT, UNKNOWN)  # padding may contain anything
        self._check_ids(ids_BT)
        nodes_NBT = self._walk(ids_BT, state.nodes_BN)
        read_BT = state.read_B[:, None] + np.arange(T)
        p_BT = self._probabilities(ids_BT, nodes_NBT, read_BT)[0]
        with np.errstate(divide="ignore", invalid="ignore"):  # NaN is an error further up
            logp_BT = np.where(real_BT, np.log(p_BT), 0.0)
        last_BN = (
            np.stack([nodes[rows_B, lengths_B] for nodes in nodes_NBT[: self.order - 1]], axis=1)
            if (self.order > 1)
            else state.nodes_BN
        )
        return logp_BT, NgramState(last_BN, state.read_B + lengths_B)

    def reorder(self, state: NgramState, rows_B: Array) -> NgramState:
        """Keep these hypotheses."""
        rows_B = np.asarray(rows_B, dtype=np.int64)
        return NgramState(state.nodes_BN[rows_B], state.read_B[rows_B])

    def rows(self, state: NgramState) -> int:
        """Return how many rows a state has."""
        return len(state.read_B)

    def join(self, states: Sequence[NgramState]) -> NgramState:
        """Return the rows of several states in one."""
        nodes_BN = np.concatenate([state.nodes_BN for state in states])
        return NgramState(nodes_BN, np.concatenate([state.read_B for state in states]))

    # -- a stream of sequences in one pass --------------------------------------------------

    def score_packed(self, ids: Array) -> Array:
        """Return log p of every token of ``START w … END START …``; entries at START are 0."""
        if len(ids) > SMALL:
            from nextword.ngram.fast import scoring  # compiled

            return scoring.score_packed(self, ids)
        return self.explain_packed(ids)[0]

    def populate(self) -> Index | None:
        """Load all n-grams into memory for fast scoring; happens by itself when much is scored."""
        from nextword.ngram.fast import scoring  # compiled

        return scoring.populate(self)

    def explain_packed(self, ids: Array) -> tuple[Array, Array]:
        """Return log p of every token, and the length of the n-gram it came from (the plain version)."""
        ids_1T = np.asarray(ids, dtype=np.int64)[None]
        self._check_ids(ids_1T)
        starts_T = ids_1T[0] == START
        state = self.start(1, begin=False)
        nodes_N1T = self._walk(ids_1T, state.nodes_BN)
        places_T = np.arange(ids_1T.shape[1])
        read_T = places_T - np.maximum.accumulate(np.where(starts_T, places_T, 0))  # tokens since START
        p_1T, used_1T = self._probabilities(ids_1T, nodes_N1T, read_T[None])
        with np.errstate(divide="ignore", invalid="ignore"):  # NaN is an error further up
            return np.where(starts_T, 0.0, np.log(p_1T[0])), np.where(starts_T, 0, used_1T[0])

    # -- private ---------------------------------------------------------------------------

    def _advance(self, ids_B: Array, state: NgramState) -> NgramState:
        """Return the state after one token, row by row: faster for a few rows than a batch of length 1."""
        self._check_ids(ids_B)
        nodes_BN = np.full_like(state.nodes_BN, -1)
        for row, word in enumerate(ids_B.tolist() if self.order > 1 else ()):
            nodes_BN[row, 0] = word
            for n in range(1, self.order - 1 if word != START else 0):
                context = int(state.nodes_BN[row, n - 1])
                if context >= 0:
                    nodes_BN[row, n] = self._child(n, context, word)
        return NgramState(nodes_BN, state.read_B + 1)

    def _child(self, n: int, node: int, word: int) -> int:
        """Return the node that extends a context of n tokens by a token, or -1."""
        children, words = self.trie.levels[n - 1].children, self.trie.levels[n].words
        assert children is not None
        first, last = int(children[node]), int(children[node + 1])
        if not 0 <= first <= last <= len(words):
            raise DamagedError("the offsets of the n-gram arrays point outside them; train the run again")
        place = first + int(np.searchsorted(words[first:last], words.dtype.type(word)))
        return place if place < last and words[place] == word else -1

    def _check_ids(self, ids: Array) -> None:
        if ids.size and (ids.min() < 0 or ids.max() >= self.vocab_size):
            raise ValueError(f"token ids must be in 0 … {self.vocab_size - 1}")

    def _walk(self, ids_BT: Array, nodes_BN: Array) -> list[Array]:
        """Return, for each length n, the node of the n-gram that ends at each place (-1: not in the trie).

        Column 0 is the given state; the token at place t is column t+1.
        """
        B, T = ids_BT.shape
        found: list[Array] = []
        begins_BT = ids_BT == START
        for n, level in enumerate(self.trie.levels, start=1):
            nodes = np.full((B, T + 1), -1, dtype=np.int64)
            if n < self.order:
                nodes[:, 0] = nodes_BN[:, n - 1]
            if n == 1:
                nodes[:, 1:] = ids_BT
            else:
                context_BT = found[-1][:, :-1]
                nodes[:, 1:] = np.where(
                    begins_BT, -1, find_children(self.trie.levels[n - 2], level, context_BT, ids_BT)
                )
            found.append(nodes)
        return found

    def _probabilities(self, ids_BT: Array, nodes_NBT: list[Array], read_BT: Array) -> tuple[Array, Array]:
        """Return p of every token, and the length of the n-gram it was taken from."""
        levels, fallback = self.trie.levels, self.trie.fallback
        p_BT = levels[0].probs[ids_BT].astype(np.float64)
        used_BT = np.ones(ids_BT.shape, dtype=np.int64)
        if fallback == "shorter":
            for n in range(2, self.order + 1):
                p_BT, used_BT = self._back_off(n, nodes_NBT, p_BT, used_BT)
            return p_BT, used_BT
        # Only the whole context counts: order-1 tokens, or as many as there are since START.
        base_BT = p_BT if fallback == "unigram" else np.full(ids_BT.shape, self._uniform)
        base_BT = np.where(np.isin(ids_BT, never_next(self.closed)), 0.0, base_BT)
        for n in range(2, self.order + 1):
            whole_BT = np.minimum(read_BT, self.order - 1) == n - 1
            context_BT, node_BT = nodes_NBT[n - 2][:, :-1], nodes_NBT[n - 1][:, 1:]
            backoff = levels[n - 2].backoffs
            assert backoff is not None
            weight_BT = at_nodes(backoff, context_BT, 0.0 if fallback == "none" else 1.0)
            seen_BT = at_nodes(levels[n - 1].probs, node_BT, 0.0)
            p_BT = np.where(whole_BT, np.where(node_BT >= 0, seen_BT, weight_BT * base_BT), p_BT)
            used_BT = np.where(whole_BT & (node_BT >= 0), n, used_BT)
        return p_BT, used_BT

    def _back_off(self, n: int, nodes_NBT: list[Array], p_BT: Array, used_BT: Array) -> tuple[Array, Array]:
        """Add one token of context: use the n-gram's own probability, or the context's backoff weight."""
        context_BT, node_BT = nodes_NBT[n - 2][:, :-1], nodes_NBT[n - 1][:, 1:]
        backoff = self.trie.levels[n - 2].backoffs
        assert backoff is not None
        p_BT = p_BT * at_nodes(backoff, context_BT, 1.0)
        p_BT = np.where(node_BT >= 0, at_nodes(self.trie.levels[n - 1].probs, node_BT, 0.0), p_BT)
        return p_BT, np.where(node_BT >= 0, n, used_BT)

    @property
    def _uniform(self) -> float:
        """An equal share for all tokens that can come next."""
        return 1.0 / (self.vocab_size - len(never_next(self.closed)))

    def _distribution(self, nodes_N: Array, read: int) -> Array:
        """Return p of every token after one context, in float64."""
        levels, fallback = self.trie.levels, self.trie.fallback
        p_V = levels[0].probs.astype(np.float64)
        if fallback == "shorter":
            for n, node in enumerate(nodes_N, start=1):
                if node >= 0:
                    self._spread(n, int(node), p_V)
            return p_V
        whole = int(min(read, self.order - 1))
        if whole == 0:
            return p_V
        node = int(nodes_N[whole - 1])
        if fallback == "none" and (node < 0 or not self._followers(whole, node)):
            raise ContextError(
                f"'{self.smoothing}' has no distribution here: the last {whole} tokens were never seen "
                "together in training; use a smoothing that backs off, such as katz, or a shorter context"
            )
        if fallback == "uniform":
            p_V = np.full(self.vocab_size, self._uniform)
            p_V[list(never_next(self.closed))] = 0.0
        if node >= 0:
            self._spread(whole, node, p_V)
        return p_V

    def _followers(self, n: int, node: int) -> int:
        """Return the number of distinct tokens seen after a context of n tokens."""
        children = self.trie.levels[n - 1].children
        assert children is not None
        return int(children[node + 1]) - int(children[node])

    def _spread(self, n: int, node: int, p_V: Array) -> None:
        """Scale the fallback by the context's backoff weight, and fill in the tokens seen after it."""
        level, above = self.trie.levels[n - 1], self.trie.levels[n]
        assert level.backoffs is not None
        assert level.children is not None
        first, last = int(level.children[node]), int(level.children[node + 1])
        words = above.words[first:last]
        if not 0 <= first <= last <= len(above) or (
            len(words) and not 0 <= words.min() <= words.max() < self.vocab_size
        ):
            raise DamagedError(
                f"the n-gram arrays of order {n + 1} are damaged at node {node}; train the run again"
            )
        p_V *= float(level.backoffs[node])
        p_V[words] = above.probs[first:last]

    def __repr__(self) -> str:
        return f"<NgramModel {self.smoothing} order {self.order}, {sum(self.trie.sizes):,} n-grams>"

    @property
    def bits(self) -> int:
        """Bits of a stored probability; 0: all of them."""
        return 0 if self.quantized is None else self.quantized.bits

    @property
    def context(self) -> int:
        """Number of tokens of context that are used."""
        return self.order - 1


def at_nodes(values: Array, nodes: Array, absent: float) -> Array:
    """Return values[nodes], and `absent` where there is no node; a level may be empty."""
    if not len(values):
        return np.full(nodes.shape, absent)
    return np.where(nodes >= 0, values[nodes], absent)


def find_children(level: Level, above: Level, context: Array, words: Array) -> Array:
    """Return the nodes of `above` that extend each context by each token, or -1, found by bisection.

    Offsets come from a file, so each is checked against its array before use.
    """
    children = level.children
    assert children is not None
    if not len(level) or not len(above):
        return np.full(context.shape, -1, dtype=np.int64)
    known = context >= 0
    at = np.where(known, context, 0)
    low = children[at].astype(np.int64)
    high = children[at + 1].astype(np.int64)
    if np.any((low > high) | (high > len(above)) | (low < 0)):
        raise DamagedError("the offsets of the n-gram arrays point outside them; train the run again")
    low, high = np.where(known, low, 0), np.where(known, high, 0)
    end = high
    last = len(above) - 1
    while np.any(low < high):  # lower bound of `words` in each range
        middle = (low + high) >> 1
        smaller = (above.words[np.minimum(middle, last)] < words) & (low < high)
        low = np.where(smaller, middle + 1, low)
        high = np.where(smaller, high, np.where(low < high, middle, high))
    hit = (low < end) & (above.words[np.minimum(low, last)] == words)
    return np.where(hit, low, -1)
