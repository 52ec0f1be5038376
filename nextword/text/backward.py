"""Text read from its end: the tokenizer of a backward language model.

p(w_1 … w_T) = Π p(w_t | w_{t+1} … w_T). Each sequence is reversed between its START and END, so everything
that reads ids works as it is; no state is carried from line to line. The states of a forward and a backward
model together see both sides of a token [ELMo, Peters et al. 2018; Flair, Akbik et al. 2018].
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from nextword.core.contracts import END, START, Array, Block, Decoder, Encoded, Tokenizer


class BackwardTokenizer:
    """Another tokenizer with the ids of each sequence in reverse."""

    def __init__(self, forward: Tokenizer) -> None:
        self.forward = forward
        self.name, self.unit, self.vocab_size = forward.name, forward.unit, forward.vocab_size
        self.closed, self.lossless = forward.closed, forward.lossless

    def encode(self, text: str) -> Array:
        """Return the ids of a piece of text, the last token first."""
        return np.asarray(self.forward.encode(text))[::-1]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids that run backwards."""
        return self.forward.decode([*ids][::-1])

    def decoder(self) -> Decoder:
        """Return a decoder that has the text at the end, when its beginning is known."""
        return BackwardDecoder(self)

    def piece(self, index: int) -> str:
        """Return how one token is displayed."""
        return self.forward.piece(index)

    def encode_blocks(self, blocks: Iterable[Block], costs: bool = False) -> Iterator[Encoded]:
        """Encode a stream of text; a sequence is held in memory until its end is known."""
        return reverse(self.forward.encode_blocks(blocks, costs))

    def save(self, path: str) -> None:
        """Write ``tokenizer.json`` of the forward tokenizer; the direction is a setting of the run."""
        self.forward.save(path)


class BackwardDecoder:
    """Collects ids, since the first token of the text comes last."""

    def __init__(self, tokenizer: BackwardTokenizer) -> None:
        self._tokenizer, self._ids = tokenizer, list[int]()

    def push(self, index: int) -> str:
        """Return nothing yet."""
        self._ids.append(index)
        return ""

    def flush(self) -> str:
        """Return the whole text."""
        return self._tokenizer.decode(self._ids)


def reverse(pieces: Iterable[Encoded]) -> Iterator[Encoded]:
    """Reverse every sequence ``START w … END``; an unfinished one waits for the next piece."""
    waiting = np.empty(0, np.int32)
    for piece in pieces:
        ids = np.concatenate([waiting, piece.ids])
        ends = np.flatnonzero(ids == END)
        done = int(ends[-1]) + 1 if len(ends) else 0
        waiting = ids[done:]
        yield replace(piece, ids=_reversed(ids[:done], ends), documents=None)
    assert not len(waiting), "a text ends with END"


def _reversed(ids: Array, ends: Array) -> Array:
    """Reverse between each START and its END, for all sequences at once."""
    starts = np.flatnonzero(ids == START)
    lengths = ends - starts - 1
    places = np.arange(len(ids))
    inner = np.ones(len(ids), bool)
    inner[starts] = inner[ends] = False
    mirror = np.repeat(starts + ends, lengths)  # the place t of a sequence goes to START + END - t
    found = ids.copy()
    found[inner] = ids[mirror - places[inner]]
    return found
