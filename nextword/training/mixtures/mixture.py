"""Train a mixture from text: its parts one after another on one tokenizer, then their weights by EM.

p(w | h) = Σ_k λ_k p_k(w | h) [XMU "Smoothing"; Jelinek & Mercer 1980]. Count models come first, since they
take seconds and decide the tokenizer (`tokenizers`); the networks share the time that is left. The weights
are those that predict the held-out text best.
"""

from __future__ import annotations

import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from nextword.core.contracts import Encoded
from nextword.core.errors import ConfigError
from nextword.core.events import Done, Event, Rows, Stage
from nextword.core.family import CompositeFamily, NetworkFamily
from nextword.data.encode import PackedText
from nextword.ngram.model import NgramModel
from nextword.runs import facts, saved
from nextword.runs.mixture import Component, mixed
from nextword.runs.saved import Trained
from nextword.runs.settings import RunSettings, changed, plan
from nextword.store.reading import RunFolder, open_run
from nextword.store.writing import NewRun, new_run
from nextword.tasks import sizes
from nextword.tasks.lm import PreparedText, Texts, limit_to_time
from nextword.training.mixtures.tokenizers import (
    TokenizerCandidate,
    choose_tokenizer,
    train_count_model,
    with_held_out,
)
from nextword.training.mixtures.weights import PartWeights, TuningText, find_weights
from nextword.training.order import Conditions

# Trains one network: `training.fit.train_network`, which this file must not import.
TrainNetwork = Callable[..., Generator[Event, None, tuple[RunSettings, Any, dict[str, Any]]]]
MIXING = 0.04  # of the time: for scoring the held-out text with the parts and finding their weights


def fit_mixture(
    settings: RunSettings,
    texts: Texts,
    folder: NewRun | None,
    conditions: Conditions,
    train_network: TrainNetwork,
) -> Iterator[Event]:
    """Train the parts, find their weights; ends with ``Done(Trained)``: the mixture, or a part as good."""
    began = time.perf_counter()
    valid = texts.valid
    if valid is None:
        raise ConfigError(
            "the weights of a mixture need held-out text, and there is none; use --valid, or give more text"
        )
    yield from texts.notes
    candidates = [_candidate(each, texts, conditions) for each in _open_settings(settings, texts, conditions)]
    settings, text, held_out, parts = yield from choose_tokenizer(candidates, part_settings)
    if valid.was_held_out:
        conditions.clock.reserve("again", sum(part.facts.seconds for part in parts))
    networks = _neural_parts(settings, text, held_out, parts, conditions, train_network)
    parts = [*parts, *(yield from networks)]
    conditions.clock.release("mix")
    found = yield from find_weights(parts, TuningText.of(held_out), conditions)
    model: Any = settings.model
    if model.alone and found.best is not None:
        parts = [parts[found.best]]
    if valid.was_held_out:
        parts = yield from _counted_again(parts, with_held_out(text, held_out))
    yield Done(parts[0] if len(parts) == 1 else _mixture(settings, parts, found, text, folder, began))


def _open_settings(settings: RunSettings, texts: Texts, conditions: Conditions) -> list[RunSettings]:
    """Return settings for each tokenizer worth trying on the text; only one if the user named it."""
    names = sizes.tokenizers(texts.size, conditions.clock.seconds)
    if "text.tokenizer" in settings.named or conditions.whole or not names:
        return [settings]
    return [changed(settings, {"text.tokenizer": name}) for name in names]


def _candidate(settings: RunSettings, texts: Texts, conditions: Conditions) -> TokenizerCandidate:
    """Make a candidate: settings with a tokenizer, and as much text as can be read with it in the time."""
    if not conditions.whole:
        settings, texts = limit_to_time(settings, texts, conditions.clock.seconds)
    assert texts.valid is not None
    return TokenizerCandidate(settings, texts.source, texts.valid)


def part_settings(settings: RunSettings, size: int = 0) -> list[RunSettings]:
    """Return the settings of every part, count models first.

    Each has its own model settings, and the text, data and seed of the mixture. ``size``: bytes of the text.
    """
    family = cast(CompositeFamily, settings.find_family())
    shared = {
        f"{group}.{name}": value
        for group in ("text", "data")
        for name, value in settings.groups[group].model_dump().items()
    } | {"train.seed": settings.train.seed}
    found = [plan(name, sets=shared) for name in family.parts(settings.model)]
    found = [_long_enough(each.with_group("text", settings.text), size) for each in found]
    return sorted(found, key=lambda each: isinstance(each.find_family(), NetworkFamily))


def _long_enough(settings: RunSettings, size: int) -> RunSettings:
    """Set a higher order for characters and bytes, which need longer n-grams than words."""
    order = sizes.order(settings.text.tokenizer, size)
    is_open = "order" in type(settings.model).model_fields and "model.order" not in settings.named
    return changed(settings, {"model.order": order}) if order is not None and is_open else settings


def _neural_parts(
    settings: RunSettings,
    text: PackedText,
    held_out: Sequence[Encoded],
    counted: Sequence[Trained],
    conditions: Conditions,
    train_network: TrainNetwork,
) -> Generator[Event, None, list[Trained]]:
    """Train the networks one after another; they share the time."""
    clock = conditions.clock
    made: list[Trained] = []
    every = [part for part in part_settings(settings) if isinstance(part.find_family(), NetworkFamily)]
    for at, part in enumerate(every):
        began = time.perf_counter()
        metrics: Rows = []
        yield Stage(f"{part.name}: train")
        clock.reserve("mix", MIXING * (clock.seconds or 0.0) + _writing([*counted, *made]))
        within = replace(conditions, clock=clock.part(clock.left() / (len(every) - at)))
        prepared = PreparedText(text, held_out)
        part, model, learned = yield from train_network(part, prepared, within, metrics)
        about = facts.collect(settings.train.seed, text.facts, time.perf_counter() - began, learned)
        made.append(Trained(part, model, text.tokenizer, about, metrics))
    return made


def _counted_again(parts: Sequence[Trained], text: PackedText) -> Generator[Event, None, list[Trained]]:
    """Train the count models again on the whole text: once weights are found, no text is held out."""
    made: list[Trained] = []
    for part in parts:
        if isinstance(part.settings.find_family(), NetworkFamily):
            made.append(part)
        else:
            yield Stage(f"{part.settings.name}: train on the whole text")
            made.append((yield from train_count_model(part.settings, text)))
    return made


def _writing(parts: Sequence[Trained]) -> float:
    """Estimate the seconds to write count models: their arrays are large."""
    tries = [part.model.trie for part in parts if isinstance(part.model, NgramModel)]
    return 0.2 + sum(array.nbytes for trie in tries for array in trie.named().values()) / 2e8


def _mixture(
    settings: RunSettings,
    parts: Sequence[Trained],
    found: PartWeights,
    text: PackedText,
    folder: NewRun | None,
    began: float,
) -> Trained:
    """Make the mixture as a run; its parts are written to a temporary folder beside the new run."""
    place = Path(tempfile.mkdtemp(prefix=".nextword-", dir=None if folder is None else folder.path.parent))
    components = [
        Component(part.settings.name, part.model, _written(part, place / f"part-{number}"))
        for number, part in enumerate(parts, start=1)
    ]
    about = facts.collect(settings.train.seed, text.facts, time.perf_counter() - began)
    metrics = [*(row for part in parts for row in part.metrics), found.figures]
    named = replace(settings, name="mixture")
    made = mixed(named, components, found.tuned.weights, text.tokenizer, about, metrics)
    weakref.finalize(made.model, shutil.rmtree, place, True)
    return made


def _written(part: Trained, path: Path) -> RunFolder:
    with new_run(path) as folder:
        saved.write(part, folder)
    return open_run(path)


class MixtureTraining:
    """How a mixture is trained and its parts are set: what the slot ``composition`` names."""

    part_settings = staticmethod(part_settings)
    fit = staticmethod(fit_mixture)
