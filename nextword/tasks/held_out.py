"""The held-out text while a model learns: encoded once, measured in rows, as often as is worth it.

nll = -(1/T) Σ log p(w_t | before) and bits per byte, side costs included, as in `evaluation.lm`.
To be quick, the text is cut into rows that are read side by side; a row that begins within a document misses
what stood before it, so the figure is a little higher than that of ``nextword eval``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from nextword.core.bits import bits_per_byte
from nextword.core.contracts import Encoded
from nextword.core.task import Measurement, Ranks
from nextword.data.batches.batch import Ids
from nextword.data.batches.stream import Stream
from nextword.data.encode import hash_ids
from nextword.models.network import Network, NeuralLanguageModel

_ROWS = 32  # read side by side
_SHORTEST = 128  # words of a row, where documents are that long
_PIECE = 256  # words read at once
Row = npt.NDArray[np.int64]


@dataclass
class HeldOutText:
    """Rows of words; the first of each is read and not counted: START, or the word before."""

    rows: list[Row]
    tokens: int  # words to predict in the whole text
    bytes: int = 0
    side_nats: float = 0.0
    _chosen: dict[int, list[Row]] = field(default_factory=dict)

    @classmethod
    def of(cls, pieces: Iterable[Encoded], carry: bool, most: int = 0) -> HeldOutText | None:
        """From the encoded text, of which about ``most`` words are taken (0: all); None if it has no word."""
        ids, documents, size, side = join(pieces, most)
        stream = Stream(ids, documents, carry)
        if not stream.tokens:
            return None
        return cls(_rows(stream), stream.tokens, size, side)

    def some(self, tokens: int) -> list[Row]:
        """Rows of about so many words, spread over the text; the longest first."""
        if tokens not in self._chosen:
            share = min(1.0, tokens / self.tokens) if tokens else 1.0
            keep = max(1, round(share * len(self.rows)))
            at = np.linspace(0, len(self.rows) - 1, keep).round().astype(int)
            self._chosen[tokens] = sorted((self.rows[i] for i in at), key=len, reverse=True)
        return self._chosen[tokens]

    def measure(
        self,
        network: Network,
        tokens: int = 0,
        products: AbstractContextManager[Any] | None = None,
        ranks: Ranks | None = None,
    ) -> Measurement:
        """Measure the network on about so many tokens of the text (0: on all); ranks share the rows."""
        is_training = network.training
        nats, count = 0.0, 0
        rank, world = (0, 1) if ranks is None else (ranks.rank, ranks.world)
        rows = self.some(tokens)[rank::world]
        with torch.inference_mode(), products or nullcontext():
            model = NeuralLanguageModel(network)
            for at in range(0, len(rows), _ROWS):
                found, words = _score(model, rows[at : at + _ROWS])
                nats, count = nats + found, count + words
        network.train(is_training)
        if ranks is not None:
            nats, count = ranks.total(nats), int(ranks.total(count))
        nll = nats / max(1, count)
        bits = bits_per_byte(nll * self.tokens + self.side_nats, self.bytes) if self.bytes else None
        perplexity = math.exp(nll) if nll < 700 else math.inf
        return Measurement({"nll": nll, "perplexity": perplexity, "bits_per_byte": bits}, nll, count)

    def describe(self, values: Mapping[str, float | None]) -> str:
        """Return perplexity and bits per byte as people read them."""
        nll, bits = values["nll"] or 0.0, values.get("bits_per_byte")
        perplexity = math.exp(nll) if nll < 700 else math.inf
        return f"perplexity {perplexity:,.2f}" + ("" if bits is None else f", {bits:.4f} bits per byte")

    def digest(self) -> str:
        """Return the SHA-256 of what is measured."""
        return hash_ids(self.rows)


def join(pieces: Iterable[Encoded], most: int = 0) -> tuple[Ids, npt.NDArray[np.int64] | None, int, float]:
    """Ids, the offsets of the STARTs that begin a document, bytes and side costs of a text."""
    parts: list[Any] = []
    documents: list[npt.NDArray[np.int64]] = []
    known, offset, size, side = True, 0, 0, 0.0
    for piece in pieces:
        known = known and piece.documents is not None
        documents.append(np.asarray(piece.documents or (), np.int64) + offset)
        parts.append(piece.ids)
        offset, size, side = offset + len(piece.ids), size + piece.bytes, side + piece.side_nats
        if most and offset >= most:
            break
    ids = np.concatenate(parts) if parts else np.zeros(0, np.int32)
    return ids, np.concatenate(documents) if known and documents else None, size, side


def _rows(stream: Stream) -> list[Row]:
    """Documents cut into pieces, so that there are enough of them to be read side by side."""
    longest = max(_SHORTEST, -(-len(stream) // _ROWS))
    places = np.append(stream.places(stream.starts), len(stream))
    rows = []
    for first, last in zip(places[:-1].tolist(), places[1:].tolist(), strict=True):
        for at in range(first, last - 1, longest):
            rows.append(stream.at(np.arange(at, min(at + longest + 1, last))))
    return rows


def _score(model: NeuralLanguageModel, rows: Sequence[Row]) -> tuple[float, int]:
    """Nats and number of the words of some rows, in pieces with a carried state."""
    lengths = np.array([len(row) for row in rows])
    ids_BT = np.zeros((len(rows), lengths.max()), np.int64)
    for ids_T, row in zip(ids_BT, rows, strict=True):
        ids_T[: len(row)] = row
    state = model.start(len(rows), None, False)
    nats = 0.0
    for at in range(0, ids_BT.shape[1], _PIECE):
        piece = ids_BT[:, at : at + _PIECE]
        logp_BT, state = model.score(piece, np.clip(lengths - at, 0, piece.shape[1]), state)
        nats -= float(logp_BT[:, 1 if at == 0 else 0 :].double().sum())
    return nats, int(lengths.sum()) - len(rows)
