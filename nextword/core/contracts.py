"""The one contract: a language model is a machine with a state.

A word goes in, a distribution over the next word and a new state come out. A count model's
last words, an RNN's h, an LSTM's (h, c) and a Transformer's cache are all that one thing.
[IITD-1 "Language Modelling", XMU "Recap: next token prediction and auto-regressive models"]

Letters: B batch, T position, V vocabulary. A name ends in its shape: ``logp_BV``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

# Every vocabulary starts with these three, in this order.
UNKNOWN, START, END = 0, 1, 2
SPECIALS = ("<unk>", "<s>", "</s>")

State = Any  # everything already read; opaque to callers
Array = Any  # numpy.ndarray from count models, torch.Tensor from neural ones
Unit = Literal["line", "document"]


@runtime_checkable
class LanguageModel(Protocol):
    """What every family offers; decoders, metrics, servers and plots use nothing else.

    A state is everything already read and can always say what comes next. Callers never pass
    START; END is an ordinary word; p(START) = 0. All logarithms are natural.
    """

    vocab_size: int

    def start(self, batch: int, source: Any = None, begin: bool = True) -> State:
        """A state that has read START (``begin=False``: nothing) in every row."""
        ...

    def next(self, state: State) -> Array:
        """``logp_BV``: the log-probability of every word to come next."""
        ...

    def step(self, ids_B: Array, state: State) -> tuple[Array, State]:
        """Read one word per row; return ``next`` of the new state, and the new state."""
        ...

    def score(self, ids_BT: Array, lengths_B: Array, state: State = None) -> tuple[Array, State]:
        """``logp_BT``: log p of each word given what stands before it.

        Entries past a row's length are 0; the state returned is after each row's last real
        word; a length of 0 is allowed; ``state=None`` means ``start(B)``.
        """
        ...

    def reorder(self, state: State, rows_B: Array) -> State:
        """Keep these rows (hypotheses), in this order; a row may be repeated or dropped."""
        ...


@runtime_checkable
class PackedScorer(Protocol):
    """A model that can score a packed stream of sequences in one pass (count models)."""

    def score_packed(self, ids: Array) -> Array:
        """Log p of every id of ``START w … END START w … END``; entries at START are 0."""
        ...


@runtime_checkable
class Carrier(Protocol):
    """A model whose state outlives a line: what stood in the lines before helps to predict the next.

    Published perplexities of recurrent models are counted so. Count models begin every line anew.
    """

    def carry(self, state: State) -> State:
        """The state in which the next sequence of the same document begins, after END was read."""
        ...


@dataclass(frozen=True)
class Block:
    """A piece of a text as readers yield it: bytes that end at a line end where possible."""

    data: bytes
    ends_document: bool  # the document (file or record) ends with this block
    source: str = ""  # where it comes from, for messages
    line: int = 1  # the number of its first line in the source


@dataclass(frozen=True)
class Encoded:
    """A text as ids: ``START w … END`` for every sequence, one after another."""

    ids: Array  # int32
    sequences: int
    words: int  # white-space words, plus line ends where the unit is the line
    bytes: int  # raw bytes read
    unknown: int  # how many ids are UNKNOWN
    side_nats: float = 0.0  # what spelling unknown words and odd gaps costs on top
    documents: tuple[int, ...] | None = None  # where the STARTs stand that begin a document; None: all do

    @property
    def tokens(self) -> int:
        """Predictions made: END counts, START does not."""
        return len(self.ids) - self.sequences


@runtime_checkable
class Tokenizer(Protocol):
    """Bytes and strings to ids and back. Ids 0, 1, 2 are UNKNOWN, START, END."""

    name: str  # its catalog name: words, characters, bytes, bpe, unigram
    unit: Unit
    vocab_size: int
    closed: bool  # every text can be written without UNKNOWN
    lossless: bool  # with its side costs it is a code for the bytes of the file

    def encode(self, text: str) -> Array:
        """The ids of a piece of text within one sequence, without START and END."""
        ...

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids; specials other than UNKNOWN are left out."""
        ...

    def piece(self, index: int) -> str:
        """How one id is shown: the word, character or subword; END as ``</s>``."""
        ...

    def encode_blocks(self, blocks: Iterable[Block], costs: bool = False) -> Iterator[Encoded]:
        """Encode a stream of text with bounded memory; ``costs`` fills in ``side_nats``."""
        ...

    def save(self, path: str) -> None:
        """Write ``tokenizer.json``."""
        ...
