"""The contract of every model: a language model is a machine with a state.

A token goes in, a distribution over the next token and a new state come out. A count model's last
tokens, an RNN's h, an LSTM's (h, c) and a Transformer's cache are all such a state.
[IITD-1 "Language Modelling", XMU "Recap: next token prediction and auto-regressive models"]

Letters: B batch, T position, S source position, V vocabulary. A name ends in its shape: ``logp_BV``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from nextword.core.errors import SourceRefusedError

# Every vocabulary starts with these three, in this order.
UNKNOWN, START, END = 0, 1, 2
SPECIALS = ("<unk>", "<s>", "</s>")

NATS_PER_BIT = math.log(2)  # models give natural logarithms; -log2 p bits are what an ideal code pays

State = Any  # everything already read; opaque to callers
Array = Any  # numpy.ndarray from count models, torch.Tensor from neural ones
Unit = Literal["line", "document"]


def never_next(closed: bool) -> tuple[int, ...]:
    """Name the ids of probability 0: START, and UNKNOWN where the tokenizer can write every text.

    Every family masks these and no others: a softmax head, a smoothing, a memory.
    """
    return (START, UNKNOWN) if closed else (START,)


class Source(NamedTuple):
    """What an encoder reads, one row for each row of a batch: ids, and how many of them are real."""

    ids_BS: Array
    lengths_B: Array


@runtime_checkable
class LanguageModel(Protocol):
    """What every family implements; decoders, metrics, servers and plots rely on nothing else.

    A state holds everything read so far and can always predict the next token. Callers never pass
    START; END is an ordinary token; p(START) = 0. All logarithms are natural.
    """

    vocab_size: int

    def start(self, batch: int, source: Source | None = None, begin: bool = True) -> State:
        """Return a state that has read START (``begin=False``: nothing) in every row.

        ``source``: what an encoder reads, one for each row; a model without an encoder calls `refuse_source`.
        """
        ...

    def next(self, state: State) -> Array:
        """Return ``logp_BV``: the log-probability of every token to come next."""
        ...

    def step(self, ids_B: Array, state: State) -> tuple[Array, State]:
        """Read one token per row; return ``next`` of the new state, and the new state."""
        ...

    def score(self, ids_BT: Array, lengths_B: Array, state: State = None) -> tuple[Array, State]:
        """Return ``logp_BT``: log p of each token given everything before it.

        Entries past a row's length are 0; the returned state is the one after each row's last real
        token; a length of 0 is allowed; ``state=None`` means ``start(B)``.
        """
        ...

    def reorder(self, state: State, rows_B: Array) -> State:
        """Keep these rows (hypotheses), in this order; a row may be repeated or dropped."""
        ...

    def rows(self, state: State) -> int:
        """How many rows a state has."""
        ...

    def join(self, states: Sequence[State]) -> State:
        """Put the rows of one or more states into one, whatever each has read.

        So requests enter a running batch; by `reorder` they leave it.
        """
        ...


def refuse_source(source: Any) -> None:
    """Raise where a model that has no encoder is given a source; `start` calls it."""
    if source is not None:
        raise SourceRefusedError(
            "a source was given to a language model, which reads none; leave it out, or use a translation run"
        )


def start_beside(model: LanguageModel, batch: int, source: Any, begin: bool = True) -> tuple[State, bool]:
    """Start a model beside others that read a source, and tell whether it reads it, too."""
    try:
        return model.start(batch, source, begin), source is not None
    except SourceRefusedError:
        return model.start(batch, None, begin), False


@runtime_checkable
class Aligner(Protocol):
    """A model that attends to a source and tells where it looked."""

    def attention(self, state: State) -> Array:
        """Return ``weights_BS``: how much the last token read looked at each source position.

        Right after `start` it is what the first prediction looks at. A row sums to 1 over its real positions.
        """
        ...


@runtime_checkable
class PackedScorer(Protocol):
    """A model that can score a packed stream of sequences in one pass (count models)."""

    def score_packed(self, ids: Array) -> Array:
        """Return log p of every id of ``START w … END START w … END``; entries at START are 0."""
        ...


@runtime_checkable
class Distributor(Protocol):
    """A model that can give the whole distribution at every position at once."""

    def distributions(self, ids_BT: Array, lengths_B: Array, state: State = None) -> tuple[Array, State]:
        """Return ``logp_NV``, the distributions before all real tokens, row by row; and the state after."""
        ...


@runtime_checkable
class Attempter(Protocol):
    """A model that reads several tokens at once and then keeps only the first of them."""

    def attempt(self, ids_BT: Array, state: State) -> tuple[Array, Any]:
        """Return ``logp_BTV``, what comes after each token, and the attempt."""
        ...

    def keep(self, attempt: Any, counts_B: Array) -> State:
        """Return the state after this many tokens of each row, at least one; an attempt is kept once."""
        ...


@runtime_checkable
class Carrier(Protocol):
    """A model whose state outlives a line: earlier lines help to predict the next one.

    Published perplexities of recurrent models are measured this way. Count models start over at every line.
    """

    def carry(self, state: State) -> State:
        """Return the state in which the next sequence of the same document starts, after END was read."""
        ...


@runtime_checkable
class Advancer(Protocol):
    """A model that can read tokens without scoring them, which is cheaper."""

    def advance(self, ids_BT: Array, lengths_B: Array, state: State) -> State:
        """The state after the tokens."""
        ...


@runtime_checkable
class ContextLimit(Protocol):
    """A model that says how far back it looks."""

    context: int | None  # how many tokens before a token are looked at; None: no limit


@runtime_checkable
class ScoreKind(Protocol):
    """A model that says whether its numbers are probabilities; stupid backoff gives scores."""

    is_probability: bool


@runtime_checkable
class Preparable(Protocol):
    """A model that can lay out its weights for reading token by token."""

    def ready(self) -> None:
        """Prepare for many steps; the last digit of a number may change."""
        ...


@runtime_checkable
class Branching(Protocol):
    """A model that can keep what the hypotheses of a search have in common once."""

    def branch(self, state: State) -> State:
        """Prepare for a search; of the states that follow only the newest may be used."""
        ...


@runtime_checkable
class Reproducible(Protocol):
    """A model that can be made to give the same numbers to the last bit."""

    def deterministic(self) -> AbstractContextManager[Any]:
        """While it lasts, the same tokens give the same numbers in any process on this machine."""
        ...


@runtime_checkable
class Parametric(Protocol):
    """A model that knows how many numbers were learned."""

    parameters: int  # tied ones count once


@runtime_checkable
class Reader(Protocol):
    """A model that has a vector for every place of a text."""

    def read(self, ids_BT: Array, lengths_B: Array, state: State = None) -> tuple[Array, State]:
        """Return ``before_BTD``, the vector before each token, and the state after (with ``feature_BD``)."""
        ...


@runtime_checkable
class Filler(Protocol):
    """A model of text that fills blanks and cannot read from left to right."""

    fills: str  # what it does, as in "fills blanks of one token"


@runtime_checkable
class BlankFiller(Filler, Protocol):
    """A model that gives every token a probability at a blank, from both sides."""

    blank: int  # the id that stands for a blank
    context: int  # how many tokens it sees at once

    def fill(self, ids_BT: Array, lengths_B: Array, chosen_BT: Array) -> Array:
        """Return ``logp_NV`` of the tokens at the chosen places, row by row."""
        ...


@runtime_checkable
class NetworkModel(Protocol):
    """A language model over a neural network, whose weights and features can be looked at."""

    network: Any  # a `models.network.Network`; its type needs torch


def context_of(model: LanguageModel) -> int | None:
    """How many tokens before a token a model looks at; None where there is no such limit."""
    return model.context if isinstance(model, ContextLimit) else None


def is_probability(model: LanguageModel) -> bool:
    """Whether a model's numbers are probabilities; so it is where a model does not say."""
    return model.is_probability if isinstance(model, ScoreKind) else True


def deterministic(model: LanguageModel) -> AbstractContextManager[Any]:
    """While it lasts, the same tokens give the same numbers to the last bit; count models always do."""
    return model.deterministic() if isinstance(model, Reproducible) else nullcontext()


@dataclass(frozen=True)
class Block:
    """A piece of a text as readers yield it: bytes, ending at a line end where possible."""

    data: bytes
    ends_document: bool  # the document (file or record) ends with this block
    source: str = ""  # file or corpus, for messages
    line: int = 1  # number of its first line in the source


@dataclass(frozen=True)
class Encoded:
    """A text as ids: ``START w … END`` for every sequence, one after the other."""

    ids: Array  # int32
    sequences: int
    words: int  # whitespace-separated words, plus line ends where the unit is the line
    bytes: int  # raw bytes read
    unknown: int  # number of UNKNOWN ids
    side_nats: float = 0.0  # extra cost of spelling unknown words and unusual gaps
    documents: tuple[int, ...] | None = None  # positions of STARTs that begin a document; None: all do
    literal: int = 0  # how many of the UNKNOWN ids are ``<unk>`` in the text

    @property
    def tokens(self) -> int:
        """Number of predictions: END counts, START does not."""
        return len(self.ids) - self.sequences


class Decoder(Protocol):
    """Ids to text while they are made: push ids one by one, flush at the end."""

    def push(self, index: int) -> str:
        """The text that is certain after this id."""
        ...

    def flush(self) -> str:
        """What is left at the end."""
        ...


@runtime_checkable
class Tokenizer(Protocol):
    """Converts bytes and strings to ids and back. Ids 0, 1, 2 are UNKNOWN, START, END."""

    name: str  # its catalog name: words, characters, bytes, bpe, unigram
    unit: Unit
    vocab_size: int
    closed: bool  # every text can be encoded without UNKNOWN
    lossless: bool  # ids and side costs together encode the exact bytes of the file

    def encode(self, text: str) -> Array:
        """Return the ids of a piece of text within one sequence, without START and END."""
        ...

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids; special tokens other than UNKNOWN are dropped."""
        ...

    def decoder(self) -> Decoder:
        """A new decoder, for text that is shown while it is written."""
        ...

    def piece(self, index: int) -> str:
        """Return how one token is displayed: the word, character or subword; END as ``</s>``."""
        ...

    def encode_blocks(self, blocks: Iterable[Block], costs: bool = False) -> Iterator[Encoded]:
        """Encode a stream of text in bounded memory; ``costs`` fills in ``side_nats``."""
        ...

    def save(self, path: str) -> None:
        """Write ``tokenizer.json``."""
        ...


@runtime_checkable
class PieceTokenizer(Tokenizer, Protocol):
    """A tokenizer whose tokens are pieces of the text: their bytes, joined, are the text itself.

    Those of `words` are not: between two of them there is whitespace that no token holds.
    """

    def data(self, index: int) -> bytes:
        """Return the bytes of one token; special tokens have none."""
        ...


@runtime_checkable
class Cached(Protocol):
    """A tokenizer that is slower than reading its ids from the cache."""

    cached: bool


@runtime_checkable
class OnePass(Protocol):
    """A kind of tokenizer that makes its vocabulary and the ids of a text in one pass over it."""

    fit_encode: Callable[..., Any]


def bits_per_byte(nats: float, size: int) -> float:
    """Divide what codes a text, side costs included, by its size in bytes; infinite for an empty text."""
    return nats / NATS_PER_BIT / size if size else math.inf
