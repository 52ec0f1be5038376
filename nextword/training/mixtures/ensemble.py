"""Train an ensemble of classifiers: members without networks first, in seconds, then networks, then weights.

Held-out texts say how much each member counts. If one does as well alone it stays alone, since it is quicker.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from nextword.core.errors import ConfigError
from nextword.core.events import Done, Event, Note, Rows, Stage, recorded
from nextword.core.family import Budget, CompositeFamily, CountFamily, NetworkFamily
from nextword.models import calibration
from nextword.models.calibration import Calibration
from nextword.models.ensemble import EnsembleClassifier, Member, combined, find_weights, shares
from nextword.models.selection import Logits
from nextword.runs import facts
from nextword.runs.saved import Trained
from nextword.runs.settings import RunSettings, family_of, plan
from nextword.store.writing import NewRun
from nextword.tasks.classify import held_out_logits
from nextword.tasks.labelled_examples import LabelledFiles, PreparedClasses
from nextword.training.mixtures.mixture import TrainNetwork
from nextword.training.order import Conditions

WEIGHING = 0.03  # of the time: for scoring the held-out texts and finding the weights
_GAIN = 0.01  # of the nats: without it, and without a better accuracy, a member stays alone
_PATIENCE = 4  # measurements without a gain after which a network stops: few texts are soon learned by heart
_LEAST = 0.02  # a member that decides less than this share is left out
_LEAST_SECONDS = 3.0  # for a network beside other members: with less it has hardly begun


def part_settings(settings: RunSettings, size: int = 0) -> list[RunSettings]:
    """Return the settings of every member, networks last; words, texts and seed are the ensemble's."""
    family = cast(CompositeFamily, settings.find_family())
    shared = {
        f"{group}.{name}": value
        for group in ("text", "data")
        for name, value in settings.groups[group].model_dump().items()
    } | {"train.seed": settings.train.seed}
    found = []
    for name in family.parts(settings.model):
        is_network = isinstance(family_of(settings.task, name), NetworkFamily)
        own = shared | ({"train.patience": _PATIENCE} if is_network else {})
        found.append(plan(name, sets=own, task=settings.task))
    return sorted(found, key=lambda each: isinstance(each.find_family(), NetworkFamily))


def fit_ensemble(
    settings: RunSettings,
    examples: LabelledFiles,
    folder: NewRun | None,
    conditions: Conditions,
    train_network: TrainNetwork,
) -> Iterator[Event]:
    """Train the members and find their weights; ends with ``Done(Trained)``."""
    began = time.perf_counter()
    every = part_settings(settings)
    networks = [part for part in every if isinstance(part.find_family(), NetworkFamily)]
    if networks and not conditions.clock.is_limited:
        raise ConfigError(
            f"an ensemble with the network '{networks[0].name}' needs --minutes (or leave it out)"
        )
    task, metrics = settings.find_task(), cast(Rows, [])
    settings, made = yield from task.prepare(examples, settings, conditions.preparation(None))
    prepared = cast(PreparedClasses, made)
    members: list[Member] = []
    scores: list[Logits] = []
    for at, part in enumerate(every):
        if members and part in networks and conditions.clock.left() < _LEAST_SECONDS:
            yield Note(f"there is no time to train {part.name}")
            continue
        yield Stage(f"{part.name}: train")
        part, model = yield from _member(part, prepared, conditions, every[at:], train_network, metrics)
        logits_NK = _calibrate(model, prepared)
        members.append(Member(part.family, model, part.to_toml()))
        if logits_NK is not None:
            scores.append(logits_NK)
    conditions.clock.release("weigh")
    model = yield from _weighed(members, scores, prepared)
    found = yield from task.validate(model, examples, prepared)
    if found is not None:
        metrics.append({f"valid_{name}": value for name, value in found.values.items()})
    model = yield from task.finish(model, settings, prepared)
    about = facts.collect(settings.train.seed, prepared.facts, time.perf_counter() - began, {})
    yield Done(Trained(settings, model, prepared.vocabulary, about, metrics))


def _member(
    part: RunSettings,
    prepared: PreparedClasses,
    conditions: Conditions,
    left: Sequence[RunSettings],
    train_network: TrainNetwork,
    metrics: Rows,
) -> Generator[Event, None, tuple[RunSettings, Any]]:
    """Train one member; all have an equal part of the time, and what the quick ones leave."""
    family, clock = part.find_family(), conditions.clock
    if isinstance(family, CountFamily):
        budget = Budget(part.train.seed, seconds=clock.left() / len(left))
        model = yield from recorded(family.fit(prepared, part, budget), metrics)
        return part, model
    clock.reserve("weigh", WEIGHING * (clock.seconds or 0.0))
    within = replace(conditions, clock=clock.part(clock.left() / len(left)), checkpointer=None)
    part, model, _ = yield from train_network(part, prepared, within, metrics)
    return part, model


def _calibrate(model: Any, prepared: PreparedClasses) -> Logits | None:
    """Fit the temperature of a member; return its calibrated scores of the held-out texts."""
    measured, several = prepared.measured, prepared.vocabulary.several
    if measured is None:
        return None
    logits_NK = held_out_logits(model, measured)
    model.calibration = calibration.fit(logits_NK, measured.targets, several)
    return np.asarray(logits_NK, np.float64) / model.calibration.temperature


def _weighed(
    members: list[Member], scores: Sequence[Logits], prepared: PreparedClasses
) -> Generator[Event, None, EnsembleClassifier]:
    """Make the ensemble, or keep the member that does as well alone; say which and why."""
    from nextword.tasks.classifiers import measure_logits

    measured, vocabulary = prepared.measured, prepared.vocabulary
    if measured is None:
        yield Note("there are no held-out texts, so that all members have the same weight")
        return EnsembleClassifier(vocabulary, members, (1.0 / len(members),) * len(members))
    yield Stage("weigh the members")
    weights = find_weights(scores, measured.targets, vocabulary.several)

    def quality(logits_NK: Logits) -> tuple[float, float]:
        """Return the accuracy, or of several labels micro F1, and the nats of a text."""
        values = measure_logits(logits_NK, measured, vocabulary).values
        nats = calibration.nats(logits_NK, measured.targets, vocabulary.several, Calibration())
        return cast(float, values["micro_f1" if vocabulary.several else "accuracy"]), nats

    alone = [quality(each) for each in scores]
    together = quality(combined(scores, weights))
    best = max(range(len(alone)), key=lambda at: (alone[at][0], -alone[at][1]))
    each = zip(members, alone, strict=True)
    told = ", ".join(f"{member.family} {right:.2%}" for member, (right, _) in each)
    told = f"{'micro F1' if vocabulary.several else 'accuracy'} of held-out texts: {told}"
    little_gained = together[0] <= alone[best][0] and together[1] > (1 - _GAIN) * alone[best][1]
    if len(members) == 1 or little_gained:
        if len(members) > 1:
            yield Note(f"{told}, together {together[0]:.2%}; {members[best].family} stays alone")
        return EnsembleClassifier(vocabulary, [members[best]], (1.0,), held_out_logits=scores[best])
    parts = shares(scores, weights, vocabulary.several)
    kept = [at for at, part in enumerate(parts) if part >= _LEAST]
    shown = ", ".join(f"{members[at].family} {parts[at]:.2f}" for at in kept)
    yield Note(f"{told}, together {together[0]:.2%}; share in the decision: {shown}")
    chosen = tuple(weights[at] for at in kept)
    logits_NK = combined([scores[at] for at in kept], chosen)
    return EnsembleClassifier(vocabulary, [members[at] for at in kept], chosen, held_out_logits=logits_NK)


class EnsembleTraining:
    """How an ensemble is trained and its parts are set: what the slot ``composition`` names."""

    part_settings = staticmethod(part_settings)
    fit = staticmethod(fit_ensemble)
