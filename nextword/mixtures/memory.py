"""What a memory offers: a distribution over the next token from what was read, beside the model's own.

"What is missing in Transformers? … external memory" [MAUSAM]. A memory looks things up by the feature of a
network, all that the network knows when it predicts a token; the tokens that followed similar features before
are likely now. A memory is a member of a mixture; the catalog's slot "memory" names the kinds.
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
    """One remembered token, and how much of the member's probability comes from it."""

    word: int
    weight: float
    back: int | None = None  # it was read this many tokens ago, 1 being the last token
    place: int | None = None  # or it stands at this place of the stored text
    context: tuple[int, ...] = ()  # the tokens before it, where the memory knows them
    count: int | None = None  # how often the text has it there


@dataclass(frozen=True)
class Part:
    """What one member of a mixture predicts for a token."""

    name: str
    weight: float  # of the member
    probability: float  # that it gives to the token
    witnesses: tuple[Witness, ...] = ()  # the evidence for the token, the strongest first
    context: int | None = None  # how many of the last tokens it used, where that matters

    @property
    def share(self) -> float:
        """Return what it adds to the probability of the token."""
        return self.weight * self.probability


@runtime_checkable
class Memory(Protocol):
    """A memory with features as keys. If it has no answer (``says`` is False), the model's is used.

    Tensors in and out. Nothing is remembered on ``self``: what was read is in the state.
    """

    name: str

    def start(self, batch: int) -> State:
        """Return rows that remember nothing of this text."""
        ...

    def next(self, feature_BD: Array, state: State, vocab_size: int) -> tuple[Array, Array]:
        """Return ``logp_BV`` of every next token, and ``says_B``."""
        ...

    def score(
        self, before_BTD: Array, ids_BT: Array, lengths_B: Array, state: State
    ) -> tuple[Array, Array, State]:
        """Return ``logp_BT`` of the tokens from the features before them, ``says_BT`` and the new state."""
        ...

    def read(self, before_BTD: Array, ids_BT: Array, lengths_B: Array, state: State) -> State:
        """Return only the state after the tokens."""
        ...

    def reorder(self, state: State, rows_B: Array) -> State:
        """Return these rows, in this order."""
        ...

    def rows(self, state: State) -> int:
        """Return how many rows a state has."""
        ...

    def join(self, states: Sequence[State]) -> State:
        """Return the rows of several states in one, whatever each remembers."""
        ...

    def explain(
        self, feature_BD: Array, state: State, word: int, top: int
    ) -> tuple[float, tuple[Witness, ...]] | None:
        """Return p of a token in the only row, and the evidence, the strongest first; None: no answer."""
        ...


@runtime_checkable
class Explainer(Protocol):
    """A language model that can explain where a probability comes from."""

    def explain(self, state: State, word: int, top: int = 5) -> list[Part]:
        """Return what each part predicts for a token in the only row; weights sum to 1."""
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
        """Load the memory of a saved mixture."""
        ...

    def describe(self, settings: Any) -> str:
        """Describe the memory in one phrase."""
        ...
