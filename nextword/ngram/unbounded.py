"""The unbounded n-gram: the longest context that occurs in the training text, found in a suffix array.

The context is the longest suffix of the input that occurs in the text and continues there; p(w | context)
is the share of its places that continue with w (Liu et al. 2024, "Infini-gram"; the back-off of [XMU
"Backoff"]: tokens are dropped only while the context is unseen). Alone (``smoothing = "none"``) that gives 0
to every token never seen there; by default shorter contexts are mixed in, down to the unigrams:

    p_k(w) = (n(c_k w) - D [n > 0] + (a + D) T(c_k) p_{k-1}(w)) / (n(c_k) + a T(c_k))

with c_k the last k tokens, T the number of distinct tokens after c_k, k = 1 … `backoff_levels` and then the
longest match; a = 1, D = 0 is Witten-Bell, a = 0, D > 0 absolute discounting. No context crosses START.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import Field

from nextword.core.contracts import END, START, LanguageModel, Tokenizer, refuse_source
from nextword.core.display import show_size
from nextword.core.errors import ConfigError, DamagedError
from nextword.core.events import Done, Event, Note, Stage
from nextword.core.family import Budget, Cost
from nextword.core.settings import Settings, TrainSettings
from nextword.ngram import estimate
from nextword.ngram.estimation import SMALL
from nextword.ngram.smoothing.estimate import predictable
from nextword.ngram.smoothing.interpolated import WittenBell
from nextword.ngram.suffix import array as suffix
from nextword.ngram.suffix.array import SuffixArray
from nextword.ngram.suffix.walk import Matches, UnboundedState, walk
from nextword.store.reading import RunFolder
from nextword.store.writing import NewRun

Array = np.ndarray[Any, np.dtype[Any]]
Mixing = Literal["absolute", "witten-bell", "none"]
_FACTS = "unbounded.json"
_DISCOUNT = 0.75  # used if the text is too small to estimate it
_PLAIN = 50_000  # up to this many tokens are searched in plain NumPy, without compiled kernels
_BYTES, _BASE = 22, 260_000_000  # memory for building, per id and fixed


class UnboundedSettings(Settings):
    """How the longest match becomes a distribution over all tokens."""

    smoothing: Mixing = Field(
        "absolute", description="how shorter contexts are mixed in; none: the longest match alone"
    )
    discount: float = Field(
        0.0, ge=0.0, lt=1.0, description="absolute: discount of counts; 0: estimated for each length"
    )
    backoff_levels: int = Field(
        5, ge=1, le=64, description="shorter contexts to mix in: the last 1, 2, … tokens up to this"
    )


@dataclass(frozen=True)
class Evidence:
    """What the training text contains about a context."""

    length: int  # number of its last tokens that occur together in the text
    count: int  # occurrences
    followers: list[tuple[int, int]]  # next tokens and their counts, most frequent first


class UnboundedModel:
    """The model on a suffix array; see the module's docstring for the equations."""

    context = None  # any number of tokens before a token is looked at
    is_probability = True

    def __init__(
        self,
        text: SuffixArray,
        settings: UnboundedSettings,
        closed: bool = False,
        discounts: list[float] | None = None,  # one per level and one for the longest match
    ) -> None:
        self.text = text
        self.settings = settings
        self.closed = closed  # UNKNOWN has no probability
        self.vocab_size = text.vocab_size
        self.levels = text.levels
        self.kind = float(settings.smoothing == "witten-bell")
        self.discounts = discounts or _discounts(text, settings)
        self.alone = settings.smoothing == "none"
        counts = np.diff(text.starts).astype(np.float64)
        counts[START] = 0.0
        self.counts_V = counts
        self.unigrams_V = (
            counts / max(counts.sum(), 1.0) if self.alone
            else WittenBell().unigrams(counts, np.zeros(4), predictable(self.vocab_size, closed))
        )  # fmt: skip

    # -- the contract ---------------------------------------------------------------------

    def start(self, batch: int, source: Any = None, begin: bool = True) -> UnboundedState:
        """Return a state that has read START, or nothing."""
        refuse_source(source)
        low_BK, high_BK = (np.zeros((batch, self.levels), dtype=np.int64) for _ in range(2))
        long_B3 = np.zeros((batch, 3), dtype=np.int64)
        if begin:
            low_BK[:, 0], high_BK[:, 0] = self.text.starts[START : START + 2]
            long_B3[:] = [low_BK[0, 0], high_BK[0, 0], 1] if batch else 0
        return UnboundedState(low_BK, high_BK, long_B3)

    def next(self, state: UnboundedState) -> Array:
        """Return the whole distribution of every row; the continuations are a slice of the suffix array."""
        rows = zip(state.low_BK, state.high_BK, state.long_B3, strict=True)
        found = [self._distribution(*row) for row in rows]
        with np.errstate(divide="ignore"):
            logp_BV: Array = np.log(np.stack(found) if found else np.empty((0, self.vocab_size)))
        return logp_BV

    def step(self, ids_B: Array, state: UnboundedState) -> tuple[Array, UnboundedState]:
        """Read one token per row, then `next`."""
        ids_B = np.asarray(ids_B, dtype=np.int64)
        state = self.score(ids_B[:, None], np.ones(len(ids_B), dtype=np.int64), state)[1]
        return self.next(state), state

    def score(
        self, ids_BT: Array, lengths_B: Array, state: UnboundedState | None = None
    ) -> tuple[Array, UnboundedState]:
        """Return log-probabilities of all tokens of a padded batch, and the state after each row."""
        ids_BT, lengths_B = np.asarray(ids_BT, dtype=np.int64), np.asarray(lengths_B, dtype=np.int64)
        state = self.start(len(ids_BT)) if state is None else state
        real_BT = np.arange(ids_BT.shape[1]) < lengths_B[:, None]
        self._check_ids(ids_BT[real_BT])
        if ids_BT.size > self._plain:
            from nextword.ngram.suffix import stream  # compiled

            p_BT, state = stream.score(self, ids_BT, lengths_B, state)
        else:
            p_BT, _, state = walk(self, np.where(real_BT, ids_BT, -1), lengths_B, state)
        with np.errstate(divide="ignore"):
            return np.where(real_BT, np.log(p_BT), 0.0), state

    def reorder(self, state: UnboundedState, rows_B: Array) -> UnboundedState:
        """Keep these hypotheses."""
        rows_B = np.asarray(rows_B, dtype=np.int64)
        return UnboundedState(state.low_BK[rows_B], state.high_BK[rows_B], state.long_B3[rows_B])

    def rows(self, state: UnboundedState) -> int:
        """Return how many rows a state has."""
        return len(state.long_B3)

    def join(self, states: Sequence[UnboundedState]) -> UnboundedState:
        """Return the rows of several states in one."""
        parts = zip(*((state.low_BK, state.high_BK, state.long_B3) for state in states), strict=True)
        return UnboundedState(*(np.concatenate(part) for part in parts))

    # -- streams and queries ----------------------------------------------------------------

    def score_packed(self, ids: Array) -> Array:
        """Return log p of every token of ``START w … END START …``; entries at START are 0."""
        with np.errstate(divide="ignore"):
            return np.log(self._packed(ids)[0])

    def match_packed(self, ids: Array) -> Matches:
        """Return the longest match before every token of a packed stream, and the token's count after it."""
        return self._packed(ids)[1]

    def match(self, contexts: Sequence[Array], words: Array) -> Matches:
        """Return the longest match of each context, and how often each token followed it, in bulk."""
        from nextword.ngram.suffix import stream  # compiled

        sizes = np.fromiter((len(context) for context in contexts), dtype=np.int64, count=len(contexts))
        flat = np.concatenate([*contexts, np.empty(0, dtype=np.int32)]).astype(np.int32)
        for ids in (flat, np.asarray(words)):
            self._check_ids(ids)
        return stream.match(self, flat, sizes, np.asarray(words, dtype=np.int32))

    def evidence(self, context: Sequence[int] | Array, top: int = 10) -> Evidence:
        """Return what the training text contains about a context (START first if it begins a sequence)."""
        ids = np.asarray(context, dtype=np.int64).reshape(1, -1)
        begun = ids.size > 0 and int(ids[0, 0]) == START
        ids = ids[:, 1:] if begun else ids
        state = self.score(ids, np.array([ids.shape[1]]), self.start(1, begin=begun))[1]
        words, counts = self.followers(*(int(x) for x in state.long_B3[0]))
        best = np.lexsort((words, -counts))[:top]
        found = list(zip(words[best].tolist(), counts[best].astype(int).tolist(), strict=True))
        return Evidence(int(state.long_B3[0, 2]), int(counts.sum()), found)

    # -- private ---------------------------------------------------------------------------

    @property
    def _plain(self) -> int:
        """Up to this many tokens are searched in plain NumPy."""
        return _PLAIN if len(self.text) <= SMALL else 1024

    def _packed(self, ids: Array) -> tuple[Array, Matches]:
        ids = np.asarray(ids)
        self._check_ids(ids)
        if len(ids) > self._plain:
            from nextword.ngram.suffix import stream  # compiled

            return stream.packed(self, ids)
        p_1T, matches, _ = walk(
            self, ids.astype(np.int64)[None], np.array([len(ids)]), self.start(1, begin=False)
        )
        return p_1T[0], Matches(matches.lengths[0], matches.totals[0], matches.hits[0])

    def _check_ids(self, ids: Array) -> None:
        if ids.size and (ids.min() < 0 or ids.max() >= self.vocab_size):
            raise ValueError(f"token ids must be in 0 … {self.vocab_size - 1}")

    def followers(self, low: int, high: int, length: int) -> tuple[Array, Array]:
        """Return the tokens after a match (its suffixes and its length; 0: any place), and their counts."""
        if length:
            return self.text.followers(low, high, length)
        words = np.flatnonzero(self.counts_V)
        return words, self.counts_V[words]

    def _distribution(self, low_K: Array, high_K: Array, long_3: Array) -> Array:
        """Return p of every token after one context, in float64."""
        length = int(long_3[2])
        p_V: Array = self.unigrams_V.copy()
        if self.alone:
            if length:
                words, counts = self.followers(int(long_3[0]), int(long_3[1]), length)
                p_V[:] = 0.0
                p_V[words] = counts / counts.sum()
            return p_V
        shorter = range(1, min(length, self.levels) + 1)
        contexts = [(int(low_K[k - 1]), int(high_K[k - 1]), k) for k in shorter]
        if length > self.levels:
            contexts.append((int(long_3[0]), int(long_3[1]), length))
        for low, high, k in contexts:
            words, counts = self.followers(low, high, k)
            total = counts.sum() + self.kind * len(words)
            D = self.discounts[min(k, self.levels + 1) - 1]
            p_V *= (self.kind + D) * len(words) / total
            p_V[words] += (counts - D) / total
        return p_V

    def __repr__(self) -> str:
        return f"<UnboundedModel {self.settings.smoothing} on {len(self.text):,} ids>"


class UnboundedFamily:
    """n-grams of any length, directly from the text."""

    name = "unbounded"
    Settings = UnboundedSettings
    task = "lm"
    Training = TrainSettings
    defaults: Mapping[str, Any] = {}
    measures = False
    default_tokenizer = "words"
    holds_text = True

    def fit(
        self, ids: Array, tokenizer: Tokenizer, settings: UnboundedSettings, budget: Budget
    ) -> Iterator[Event]:
        """Sort the places of the text into a suffix array."""
        _check_size(len(ids), tokenizer.vocab_size, budget.memory)
        ids = np.asarray(ids)
        if not len(ids) or int(ids[-1]) != END:
            raise ValueError("a packed text must end with END")
        if len(ids) > SMALL:
            from nextword.ngram.fast import kernels

            if not kernels.is_cached():
                yield Note("compiling the kernels on their first use, which takes a few seconds")
        yield Stage("sorting the places of the text", len(ids), "tokens")
        yield Done(build(ids, tokenizer.vocab_size, settings, tokenizer.closed))

    def estimate(self, settings: UnboundedSettings, size: int, text: Any) -> Cost:
        """Return what sorting a text of this size in bytes takes, roughly as counting its 5-grams."""
        return estimate.cost(size, text.tokenizer)

    def save(self, model: LanguageModel, folder: NewRun) -> None:
        """Write the text, its suffix array, and what they mean."""
        assert isinstance(model, UnboundedModel)
        for name, array in model.text.named().items():
            folder.write_array(name, array, wait=False)
        folder.write_json(
            _FACTS,
            {
                "ids": len(model.text),
                "levels": model.levels,
                "closed": model.closed,
                "discounts": model.discounts,
            },
        )

    def load(self, folder: RunFolder, settings: UnboundedSettings, tokenizer: Tokenizer) -> UnboundedModel:
        """Memory-map the arrays and check that they are consistent."""
        facts, place = folder.read_json(_FACTS), folder.path / _FACTS
        try:
            levels, closed = int(facts["levels"]), bool(facts["closed"])
            discounts = [float(D) for D in facts["discounts"]]
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise DamagedError(f"{place} does not describe the arrays; train the run again") from error
        fits = levels == settings.backoff_levels == len(discounts) - 1
        if not fits or not all(0 <= D <= 1 for D in discounts):
            raise DamagedError(
                f"{place} does not match the settings ({levels} levels, discounts {discounts}); "
                "it mixes files of two runs, train it again"
            )
        text = suffix.load(folder.path, tokenizer.vocab_size, levels)
        return UnboundedModel(text, settings, closed, discounts)


def build(ids: Array, vocab_size: int, settings: UnboundedSettings, closed: bool = False) -> UnboundedModel:
    """Return the model of a packed text: plain for small texts, compiled for large ones."""
    if len(ids) <= SMALL:
        return UnboundedModel(suffix.build(ids, vocab_size, settings.backoff_levels), settings, closed)
    from nextword.ngram.suffix import stream  # compiled

    return UnboundedModel(stream.build(ids, vocab_size, settings.backoff_levels), settings, closed)


def _discounts(text: SuffixArray, settings: UnboundedSettings) -> list[float]:
    """Return D of each level and of the longest match: n1 / (n1 + 2 n2) of the n-grams one token longer."""
    if settings.smoothing != "absolute":
        return [0.0] * (text.levels + 1)
    if settings.discount:
        return [settings.discount] * (text.levels + 1)
    found = []
    for once, twice in text.counts_of_counts(text.levels + 2)[1:]:
        found.append(once / (once + 2 * twice) if once and twice else _DISCOUNT)
    return found


def _check_size(count: int, vocab_size: int, memory: int) -> None:
    if count >= 2**32:
        raise ConfigError(
            f"'model' is unbounded and the text has {count:,} tokens, but it can hold at most {2**32:,}; "
            "train on less text or with --model ngram"
        )
    need = _BASE + _BYTES * count + 60 * vocab_size
    if memory and memory < need:
        raise ConfigError(
            f"'train.memory' is {show_size(memory)}, but an unbounded model of {count:,} tokens needs "
            f"{show_size(need)} to build; increase it or train with --model ngram"
        )


FAMILY = UnboundedFamily()
