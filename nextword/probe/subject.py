"""What is inspected: a model, its tokenizer and a text; without a text the model generates one.

Nothing here imports torch, so that count models can be inspected where it is not installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from nextword.core.contracts import (
    END,
    START,
    Array,
    Block,
    Carrier,
    LanguageModel,
    NetworkModel,
    State,
    Tokenizer,
)
from nextword.core.errors import DataError
from nextword.decode.generate import collect, generate
from nextword.decode.settings import DecodeSettings
from nextword.mixtures.memory import WithMemories
from nextword.mixtures.mixture import Mixture

Ints = np.ndarray[Any, np.dtype[np.int64]]
ByWord = Callable[[LanguageModel, Tokenizer, str], list[tuple[str, float]]]
NEWLINE, SPACE, PART, UNSEEN = "⏎", "␣", "·", "□"  # the last: a character that the tokenizer does not know
_SAMPLES = 8  # texts that are generated at a time


@dataclass(frozen=True)
class TokenRow:
    """One row of a text as a model reads it: START first, an END at the end of every line or document."""

    ids_T: Ints
    pieces: tuple[str, ...]  # what each id adds to the text: "" for START and for a part of a character

    @property
    def labels(self) -> tuple[str, ...]:
        """The ids as names of rows and columns."""
        return tuple(_label(int(index), piece) for index, piece in zip(self.ids_T, self.pieces, strict=True))

    def __len__(self) -> int:
        return len(self.ids_T)

    def first(self, count: int) -> TokenRow:
        """Take at most this many ids."""
        return TokenRow(self.ids_T[:count], self.pieces[:count])


class Subject:
    """A model that is inspected. ``text`` None: it generates one, from a seed."""

    def __init__(
        self,
        name: str,
        model: LanguageModel,
        tokenizer: Tokenizer,
        text: str | None = None,
        seed: int = 0,
        facts: dict[str, Any] | None = None,  # of the training: "tokens", and the settings of the model
        by_word: ByWord | None = None,  # how surprising each word of a text is
    ) -> None:
        self.name, self.model, self.tokenizer = name, model, tokenizer
        self.given, self.seed, self.facts, self.by_word = text, seed, facts or {}, by_word
        self.network: Any = model.network if isinstance(model, NetworkModel) else None
        self._written = ""

    @property
    def kind(self) -> str:
        """recurrent, transformer or window; ngram, unbounded or mixture; else the name of its class."""
        if self.network is not None:
            return str(self.network.kind)
        if isinstance(self.model, Mixture):
            return "mixture"
        return type(self.model).__name__.removesuffix("Model").lower()

    @property
    def described(self) -> str:
        """The model in one or two words."""
        if self.kind == "recurrent":
            return f"{type(self.network.layers[0]).__name__} network"
        return {
            "transformer": "Transformer", "window": "window network", "ngram": "n-gram model",
            "unbounded": "unbounded n-gram model",
        }.get(self.kind, self.kind)  # fmt: skip

    @property
    def layers(self) -> int:
        """How many layers its network has, or that of the first part that has one; 0: no such thing."""
        for each in self.everything():
            if each.kind == "recurrent":
                return len(each.network.layers)
            if each.kind == "transformer":
                return len(each.network.stack.applied())
        return 0

    def parts(self) -> list[Subject]:
        """Return the components of a mixture, or the network of a model with memories, as subjects."""
        if isinstance(self.model, Mixture):
            return [self._part(f"part {n}", model) for n, model in enumerate(self.model.models, start=1)]
        if isinstance(self.model, WithMemories):
            return [self._part("its network", self.model.model)]
        return []

    def everything(self) -> Iterator[Subject]:
        """Yield the model itself, its components, theirs, and so on."""
        yield self
        for part in self.parts():
            yield from part.everything()

    def _part(self, which: str, model: LanguageModel) -> Subject:
        name = f"{self.name}, {which}"
        made = Subject(name, model, self.tokenizer, self.given, self.seed, None, self.by_word)
        made._written = self._written
        return made

    # -- the text ---------------------------------------------------------------------------

    def text(self, tokens: int) -> str:
        """Return the text that was given, or one of about this many tokens that the model generates."""
        if self.given is not None:
            return self.given
        if self._counted(self._written) < tokens:
            self._written = self._write(tokens)
        return self._written

    def rows(self, tokens: int) -> list[TokenRow]:
        """Return the text as it is read, up to this many ids: one row if state is carried, else by line."""
        found: list[TokenRow] = []
        left = tokens
        for ids in self._sequences(self.text(tokens)):
            if left > 1:
                found.append(TokenRow(ids[:left], self._pieces(ids[:left])))
            left -= len(ids)
        if not any(len(row) > 1 for row in found):
            raise DataError(
                "the text is empty, so there is nothing to look at; give at least one word with --text"
            )
        return found

    def row_of(self, ids: Sequence[int]) -> TokenRow:
        """Return ids as a row."""
        ids_T = np.array(ids, dtype=np.int64)
        return TokenRow(ids_T, self._pieces(ids_T))

    def row(self, tokens: int) -> TokenRow:
        """Return the longest row."""
        return max(self.rows(tokens), key=len)

    @cached_property
    def _carries(self) -> bool:
        return isinstance(self.model, Carrier)

    def _sequences(self, text: str) -> Iterator[Ints]:
        """Yield START and tokens; a model that carries its state reads whole documents, END between lines."""
        pieces = list(self.tokenizer.encode_blocks([Block(text.encode("utf-8", "surrogatepass"), True)]))
        if not pieces:
            return
        ids = np.concatenate([np.asarray(piece.ids, dtype=np.int64) for piece in pieces])
        if self._carries:
            yield np.concatenate([[START], ids[ids != START]]).astype(np.int64)
            return
        starts = np.flatnonzero(ids == START)
        yield from np.split(ids, starts[1:])

    def _pieces(self, ids: Ints) -> tuple[str, ...]:
        decoder = self.tokenizer.decoder()
        found = []
        for index in ids.tolist():
            if index == END:
                decoder = self.tokenizer.decoder()
                found.append("\n")
            else:
                found.append("" if index == START else decoder.push(index).replace("\ufffd", UNSEEN))
        return tuple(found)

    def _counted(self, text: str) -> int:
        return sum(map(len, self._sequences(text))) if text else 0

    def _write(self, tokens: int) -> str:
        """Sample texts one after another until there is enough; the same for the same seed."""
        texts: list[str] = []
        count = 0
        for round_ in range(64):
            settings = DecodeSettings(
                decode="sample", max_tokens=tokens, samples=_SAMPLES if round_ else 1, seed=self.seed + round_
            )
            for found in collect(generate(Quiet(self.model), ((),), settings, self.tokenizer)):
                if count < tokens:
                    texts.append(found.text)
                    count += len(found.ids)
            if count >= tokens:
                break
        return "\n".join(texts)


class Quiet:
    """A model that is not prepared for speed: preparing may change the last digit of a number."""

    def __init__(self, model: LanguageModel) -> None:
        self.model = model
        self.vocab_size = model.vocab_size

    def start(self, batch: int, source: Any = None, begin: bool = True) -> State:
        """Do as the model does."""
        return self.model.start(batch, source, begin)

    def next(self, state: State) -> Array:
        """Do as the model does."""
        return self.model.next(state)

    def step(self, ids_B: Array, state: State) -> tuple[Array, State]:
        """Do as the model does."""
        return self.model.step(ids_B, state)

    def score(self, ids_BT: Array, lengths_B: Array, state: State = None) -> tuple[Array, State]:
        """Do as the model does."""
        return self.model.score(ids_BT, lengths_B, state)

    def reorder(self, state: State, rows_B: Array) -> State:
        """Do as the model does."""
        return self.model.reorder(state, rows_B)

    def rows(self, state: State) -> int:
        """Do as the model does."""
        return self.model.rows(state)

    def join(self, states: Sequence[State]) -> State:
        """Do as the model does."""
        return self.model.join(states)


def _label(index: int, piece: str) -> str:
    if index == START:
        return "<s>"
    if not piece:
        return PART
    return piece.strip(" ").replace("\n", NEWLINE).replace("\t", "→") or SPACE


def joined(rows: Sequence[TokenRow]) -> TokenRow:
    """Return all rows as one, for what is counted over the whole text."""
    ids_T = np.concatenate([row.ids_T for row in rows])
    return replace(rows[0], ids_T=ids_T, pieces=tuple(piece for row in rows for piece in row.pieces))
