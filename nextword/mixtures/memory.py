"""What a memory offers: a distribution over the next word from what was read, beside the model's own.

"What is missing in Transformers? … external memory" [MAUSAM]. A memory looks things up by the feature of a
network, all that the network knows when it predicts a word; the words that followed like features before are
likely now. A memory is a member of a mixture; the catalog's slot "memory" names the kinds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from nextword.core.contracts import Array, LanguageModel, State, Tokenizer
from nextword.core.settings import Settings
from nextword.store.reading import RunFolder


@dataclass(frozen=True)
class Witness:
    """One thing a memory remembers, and how much of the member's probability comes from it."""

    word: int
    weight: float
    back: int | None = None  # it was read so many words ago, 1 being the last word
    place: int | None = None  # or it stands at this place of the stored text
    context: tuple[int, ...] = ()  # the words before it, where the memory knows them
    count: int | None = None  # how often the text has it there


@dataclass(frozen=True)
class Part:
    """What one member of a mixture says about a word."""

    name: str
    weight: float  # of the member
    probability: float  # that it gives to the word
    witnesses: tuple[Witness, ...] = ()  # those that speak for the word, the strongest first
    context: int | None = None  # how many of the last words it looked at, where that is the point

    @property
    def share(self) -> float:
        """What it adds to the probability of the word."""
        return self.weight * self.probability


@runtime_checkable
class Memory(Protocol):
    """A memory with features as keys. It may have nothing to say (``says`` is False): the model then speaks.

    Tensors in and out. Nothing is remembered on ``self``: what was read is the state.
    """

    name: str

    def start(self, batch: int) -> State:
        """Rows that remember nothing of this text."""
        ...

    def next(self, feature_BD: Array, state: State, vocab_size: int) -> tuple[Array, Array]:
        """``logp_BV`` of every next word, and ``says_B``."""
        ...

    def score(
        self, before_BTD: Array, ids_BT: Array, lengths_B: Array, state: State
    ) -> tuple[Array, Array, State]:
        """``logp_BT`` of the words from the features before them, ``says_BT``, and the state after."""
        ...

    def read(self, before_BTD: Array, ids_BT: Array, lengths_B: Array, state: State) -> State:
        """The state after the words, no more."""
        ...

    def reorder(self, state: State, rows_B: Array) -> State:
        """These rows, in this order."""
        ...

    def rows(self, state: State) -> int:
        """How many rows a state has."""
        ...

    def join(self, states: Sequence[State]) -> State:
        """The rows of several states in one, whatever each remembers."""
        ...

    def explain(
        self, feature_BD: Array, state: State, word: int, top: int
    ) -> tuple[float, tuple[Witness, ...]] | None:
        """p of a word in the only row, and what speaks for it, the strongest first; None: nothing to say."""
        ...


@runtime_checkable
class Explainer(Protocol):
    """A language model that can say where a probability comes from."""

    def explain(self, state: State, word: int, top: int = 5) -> list[Part]:
        """What each part says about a token in the only row; weights sum to 1."""
        ...


@runtime_checkable
class WithMemories(Protocol):
    """A language model with memories beside it (`mixtures.remembering`, which needs torch)."""

    model: LanguageModel
    memories: tuple[Memory, ...]


class Kind(Protocol):
    """A kind of memory as loading sees it: what the catalog's slot "memory" names."""

    name: str
    Settings: type[Settings]
    reads_features: bool  # a `Memory` over a network; else a language model of its own

    def load(self, folder: RunFolder, settings: Any, tokenizer: Tokenizer) -> Any:
        """The memory of a saved mixture."""
        ...

    def describe(self, settings: Any) -> str:
        """One phrase for people."""
        ...
