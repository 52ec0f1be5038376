"""Find the weights of a mixture: log p of held-out tokens under each part, then EM.

Count models score the whole text in one pass. A network reads random rows of it in batches, as many as there
is time for; all parts are then compared on the same tokens.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nextword.core.contracts import START, Carrier, Encoded, LanguageModel, bits_per_byte
from nextword.core.events import Event, Measure, Note, Stage
from nextword.data.batches.batch import Stream, generator
from nextword.evaluation.lm.streams import ScoreStream, gathered
from nextword.mixtures.mixture import Tuned, tune_weights
from nextword.models.distributions import as_numpy
from nextword.runs.saved import Trained
from nextword.training.order import Conditions

_ENOUGH = 200_000  # held-out tokens are enough for a few weights
_WORTH = 0.003  # nats per token that a mixture must gain over its best part to be kept
_ROWS, _LENGTH = 32, 256  # rows of a batch, and their tokens
_UNCOUNTED = 8  # first tokens of a row that begins within a document: their context is missing

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TuningText:
    """The held-out text on which weights are tuned."""

    ids: npt.NDArray[Any]
    documents: Places | None
    tokens: int
    bytes: int
    side_nats: float

    @classmethod
    def of(cls, pieces: Sequence[Encoded]) -> TuningText:
        """Join all pieces."""
        (whole,) = [*gathered(pieces, 1 << 62)] or [Encoded(np.zeros(0, np.int32), 0, 0, 0, 0)]
        documents = None if whole.documents is None else np.asarray(whole.documents, np.int64)
        return cls(np.asarray(whole.ids), documents, whole.tokens, whole.bytes, whole.side_nats)

    def bits_per_byte(self, nll: float) -> float:
        """Convert nats per token to bits per byte, including the spelling of unknown words."""
        return bits_per_byte(nll * self.tokens + self.side_nats, max(1, self.bytes))


@dataclass(frozen=True)
class PartWeights:
    """The weights, and how well the mixture and each part predict."""

    tuned: Tuned
    nll: float
    alone: tuple[float, ...]
    best: int | None  # a part that predicts as well alone as the mixture

    @property
    def figures(self) -> dict[str, Any]:
        """Return the row of metrics.jsonl."""
        return {"weights": list(self.tuned.weights), "tune_nll": self.nll, "gap": self.tuned.gap}


def find_weights(
    parts: Sequence[Trained], held_out: TuningText, conditions: Conditions
) -> Generator[Event, None, PartWeights]:
    """Find the weights that predict the held-out text best."""
    yield Stage("find the weights of the parts")
    logps = log_probs([part.model for part in parts], held_out, conditions)
    tuned = tune_weights(logps)
    alone = tuple(-float(np.mean(each)) for each in logps)
    nll, best = -tuned.history[-1], int(np.argmin(alone))
    found = PartWeights(tuned, nll, alone, best if nll > alone[best] - _WORTH else None)
    yield Measure(found.figures)
    each = ", ".join(
        f"{part.settings.name} {held_out.bits_per_byte(one):.3f} (weight {weight:.2f})"
        for part, one, weight in zip(parts, alone, tuned.weights, strict=True)
    )
    yield Note(f"held-out bits per byte: {each}; together {held_out.bits_per_byte(nll):.3f}")
    return found


def log_probs(models: Sequence[LanguageModel], held_out: TuningText, conditions: Conditions) -> list[Floats]:
    """Return log p of the same held-out tokens under every model."""
    everywhere = {at: _whole(model, held_out) for at, model in enumerate(models) if not _reads_rows(model)}
    readers = [at for at, model in enumerate(models) if _reads_rows(model)]
    if not readers:
        real = held_out.ids != START
        return [everywhere[at][real] for at in range(len(models))]
    stream = Stream(held_out.ids, held_out.documents, carry=True)
    found: list[list[Floats]] = [[] for _ in models]
    scored = 0
    for places_BT, real_BT in _rows(stream):
        offsets = stream.offsets(places_BT[real_BT])
        for at, model in enumerate(models):
            found[at].append(
                everywhere[at][offsets] if at in everywhere else _read(model, stream, places_BT, real_BT)
            )
        scored += len(offsets)
        if scored >= _ENOUGH or not conditions.clock.has_time_for(0.0):
            break
    return [np.concatenate(each) for each in found]


def _reads_rows(model: LanguageModel) -> bool:
    """Return whether a model carries its state from line to line, so that a row may start anywhere."""
    return isinstance(model, Carrier)


def _whole(model: LanguageModel, held_out: TuningText) -> Floats:
    """Return log p of every id of the text."""
    return np.asarray(ScoreStream(model, carry=True).push(held_out.ids, held_out.documents), np.float64)


def _rows(stream: Stream) -> Generator[tuple[Places, npt.NDArray[np.bool_]], None, None]:
    """Yield batches of rows in random order: the positions of their tokens, and which tokens count."""
    begins = stream.places(stream.starts)
    sizes = np.diff(np.append(begins, len(stream)))
    counts = np.maximum(1, -(-(sizes - 1) // _LENGTH))
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    firsts = np.repeat(begins, counts) + within * _LENGTH
    lengths = np.minimum(_LENGTH + 1, np.repeat(sizes, counts) - within * _LENGTH)
    order = generator(0, 0).permutation(len(firsts))
    for at in range(0, len(order), _ROWS):
        rows = order[at : at + _ROWS]
        columns = np.arange(int(lengths[rows].max()))
        real_BT = columns < lengths[rows, None]
        real_BT &= columns >= np.where(within[rows] == 0, 1, _UNCOUNTED)[:, None]  # the first is only read
        if real_BT.any():
            yield np.minimum(firsts[rows, None] + columns, len(stream) - 1), real_BT


def _read(model: LanguageModel, stream: Stream, places_BT: Places, real_BT: npt.NDArray[np.bool_]) -> Floats:
    """Score some rows with a network, on one thread: the products are small."""
    from nextword.system.threads import using

    ids_BT = stream.at(places_BT)
    lengths_B = np.where(real_BT, np.arange(1, ids_BT.shape[1] + 1), 0).max(axis=1)
    with using(1):
        logp_BT, _ = model.score(ids_BT, lengths_B, model.start(len(ids_BT), None, False))
    return as_numpy(logp_BT, np.float64)[real_BT]
