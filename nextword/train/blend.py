"""A mixture trained from text: its parts one after another on one tokenizer, then weights by EM.

p(w | h) = Σ_k λ_k p_k(w | h) [XMU "Smoothing"; Jelinek & Mercer 1980]. Count models come first, since they
need seconds; the neural ones share the time that is left. The weights predict the held-out text best.
"""

from __future__ import annotations

import shutil
import tempfile
import time
import weakref
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nextword.core.contracts import START, Encoded
from nextword.core.errors import ConfigError
from nextword.core.events import Done, Event, Measure, Note, Stage
from nextword.core.family import Budget
from nextword.core.newrun import new_run
from nextword.core.runfolder import NewRun, RunFolder, open_run
from nextword.evaluate.streams import Stream
from nextword.models.mixing import SavedMixture
from nextword.models.mixture import MixtureSettings, Tuned, tune_weights
from nextword.train import facts, saved
from nextword.train.calibrate import in_time
from nextword.train.conditions import Conditions
from nextword.train.ids import Text, encode
from nextword.train.learn import Metrics, learn_counts, learn_neural
from nextword.train.saved import Trained
from nextword.train.settings import RunSettings, is_neural, plan
from nextword.train.source import Source

MIXING = 0.04  # of the time: measuring the parts on the held-out text, and weighing them
_PIECE = 1 << 13  # ids scored between two looks at the clock
_ENOUGH = 200_000  # held-out words that settle a few weights
_WORTH = 0.003  # nats per token that a mixture must gain over its best part to be kept


@dataclass(frozen=True)
class HeldOut:
    """The text on which the parts are weighed."""

    pieces: list[Encoded]

    def bits_per_byte(self, nll: float) -> float:
        """What so many nats per token are, spelling of unknown words included."""
        tokens = sum(piece.tokens for piece in self.pieces)
        nats = nll * tokens + sum(piece.side_nats for piece in self.pieces)
        return nats / np.log(2) / max(1, sum(piece.bytes for piece in self.pieces))


def fit_mixture(
    settings: RunSettings, source: Source, valid: Source | None, folder: NewRun | None, conditions: Conditions
) -> Iterator[Event]:
    """Train and weigh; the last event is ``Done(Trained)``: the mixture, or a part that does as well."""
    began = time.perf_counter()
    if valid is None:
        raise ConfigError(
            "a mixture is weighed on held-out text, and there is none; give some with --valid, or more text"
        )
    measured = valid
    if not conditions.whole:
        settings, source, limited = in_time(settings, source, valid, conditions.clock)
        measured = limited or valid
    text = yield from encode(settings, source)
    settings = replace(settings, text=settings.text.model_copy(update={"tokenizer": text.tokenizer.name}))
    held_out = HeldOut(list(text.tokenizer.encode_blocks(measured.blocks(), costs=True)))
    parts = yield from _parts(settings, text, held_out, conditions)
    conditions.clock.drop("mix")
    weighed = yield from _weigh(parts, held_out, conditions)
    model: Any = settings.model
    if model.alone and weighed.best is not None:
        yield Done(parts[weighed.best])
        return
    yield Done(_mixture(settings, parts, weighed, text, folder, began))


def part_settings(settings: RunSettings) -> list[RunSettings]:
    """The settings of every part: its model's own, with the text, data and seed of the mixture."""
    model: Any = settings.model
    shared = {
        f"{group}.{name}": value
        for group in ("text", "data")
        for name, value in settings.groups[group].model_dump().items()
    } | {"train.seed": settings.train.seed}
    found = [plan(name, sets=shared) for name in model.models]
    found = [replace(each, text=settings.text) for each in found]
    return sorted(found, key=lambda each: is_neural(each.find_family()))


def _parts(
    settings: RunSettings, text: Text, held_out: HeldOut, conditions: Conditions
) -> Generator[Event, None, list[Trained]]:
    """Every part, trained; the neural ones share the time."""
    clock = conditions.clock
    made: list[Trained] = []
    every = part_settings(settings)
    for at, part in enumerate(every):
        began = time.perf_counter()
        told: dict[str, Any] = {}
        metrics: Metrics = []
        yield Stage(f"{part.name}: learn")
        if is_neural(part.find_family()):
            clock.keep("mix", MIXING * (clock.seconds or 0.0) + _writing(made))
            within = replace(conditions, clock=clock.part(clock.left() / (len(every) - at)))
            part, model, told = yield from learn_neural(part, text, held_out.pieces, within, metrics)
        else:
            model = yield from learn_counts(part, text, Budget(settings.train.seed), metrics)
        about = facts.collect(settings.train.seed, text.facts, time.perf_counter() - began, told)
        made.append(Trained(part, model, text.tokenizer, about, metrics))
    return made


def _writing(parts: Sequence[Trained]) -> float:
    """Seconds to write count models: their arrays are large."""
    arrays = [array for part in parts for array in getattr(part.model, "trie", _Nothing()).named().values()]
    return 0.2 + sum(array.nbytes for array in arrays) / 2e8


class _Nothing:
    def named(self) -> dict[str, Any]:
        return {}


@dataclass(frozen=True)
class Weighed:
    """The weights, and how well the mixture and each part do."""

    tuned: Tuned
    nll: float
    alone: tuple[float, ...]
    best: int | None  # a part that does as well alone as the mixture

    @property
    def figures(self) -> dict[str, Any]:
        """For metrics.jsonl."""
        return {"weights": list(self.tuned.weights), "tune_nll": self.nll, "gap": self.tuned.gap}


def _weigh(
    parts: Sequence[Trained], held_out: HeldOut, conditions: Conditions
) -> Generator[Event, None, Weighed]:
    """Score the held-out text with every part, as far as the time allows, and tune."""
    yield Stage("weigh the parts")
    logps = _logps(parts, held_out, conditions)
    tuned = tune_weights(logps)
    alone = tuple(-float(np.mean(each)) for each in logps)
    nll = -tuned.history[-1]
    best = int(np.argmin(alone))
    found = Weighed(tuned, nll, alone, best if nll > alone[best] - _WORTH else None)
    yield Measure(found.figures)
    each = ", ".join(
        f"{part.settings.name} {held_out.bits_per_byte(one):.3f} (weight {weight:.2f})"
        for part, one, weight in zip(parts, alone, tuned.weights, strict=True)
    )
    together = held_out.bits_per_byte(nll)
    yield Note(f"held-out bits per byte: {each}; together {together:.3f}")
    return found


def _logps(
    parts: Sequence[Trained], held_out: HeldOut, conditions: Conditions
) -> list[npt.NDArray[np.float64]]:
    """log p of the held-out words under every part: of all, or of as many as there is time for."""
    streams = [Stream(part.model, carry=True) for part in parts]
    found: list[list[Any]] = [[] for _ in parts]
    scored = 0
    for ids, documents in _pieces(held_out.pieces):
        real = ids != START
        for stream, logps in zip(streams, found, strict=True):
            logps.append(np.asarray(stream.push(ids, documents), np.float64)[real])
        scored += int(real.sum())
        if scored >= _ENOUGH or not conditions.clock.has(_writing(parts)):
            break
    return [np.concatenate(each) for each in found]


def _pieces(pieces: Sequence[Encoded]) -> Iterator[tuple[npt.NDArray[Any], list[int] | None]]:
    """Ids in small pieces, with the places of the STARTs that begin a document."""
    for piece in pieces:
        for at in range(0, len(piece.ids), _PIECE):
            ids = np.asarray(piece.ids[at : at + _PIECE])
            places = piece.documents
            inside = None if places is None else [p - at for p in places if at <= p < at + len(ids)]
            yield ids, inside


def _mixture(
    settings: RunSettings,
    parts: Sequence[Trained],
    weighed: Weighed,
    text: Text,
    folder: NewRun | None,
    began: float,
) -> Trained:
    """The mixture as a run: its parts are written beside the new run, from where it takes them."""
    place = Path(tempfile.mkdtemp(prefix=".nextword-", dir=None if folder is None else folder.path.parent))
    folders = [_written(part, place / f"part-{number}") for number, part in enumerate(parts, start=1)]
    weights = weighed.tuned.weights
    model = SavedMixture([part.model for part in parts], weights, folders)
    weakref.finalize(model, shutil.rmtree, place, True)
    names = tuple(part.settings.name for part in parts)
    base: Any = settings.model
    chosen = MixtureSettings(**(base.model_dump() | {"runs": names, "weights": weights}))
    about = facts.collect(settings.train.seed, text.facts, time.perf_counter() - began)
    metrics = [*(row for part in parts for row in part.metrics), weighed.figures]
    return Trained(replace(settings, name="mixture", model=chosen), model, text.tokenizer, about, metrics)


def _written(part: Trained, path: Path) -> RunFolder:
    with new_run(path) as folder:
        saved.write(part, folder)
    return open_run(path)
