"""Probes: further columns of a bench, in files of their own, so that a finished bench can get them later.

Copy, recall and brackets: a new network of the row learns questions of this kind for a short time, and is
asked others; that shows what its parts can do in context. Minimal pairs, a file: the row's trained model says
which of two sentences is the better one (BLiMP, Warstadt et al. 2020).
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

from nextword.comparison.bench.plan import best, kept_plan
from nextword.comparison.bench.result import BenchResult
from nextword.comparison.bench.setup import BenchSetup
from nextword.comparison.bench.training import RUNS, Text, learn, with_budget
from nextword.comparison.rows import read_json, write_json
from nextword.core.errors import ConfigError, NextwordError, TrainingError
from nextword.core.events import Event, Note, Stage
from nextword.core.task import Preparation
from nextword.data.source import Source
from nextword.evaluation.lm.probes import Figure, minimal_pairs, probe, questions_text, read_pairs
from nextword.runs import saved
from nextword.runs.settings import RunSettings, changed
from nextword.store.manifest import MANIFEST
from nextword.system.disk import write_file
from nextword.tasks.lm import PreparedText, Texts

FOLDER = "probes"
STEPS = 300  # of learning the questions
LINES = 20_000  # questions to learn from


@dataclass(frozen=True)
class Probe:
    """A column: a kind of questions, or a file of minimal pairs."""

    name: str
    path: Path | None = None

    @property
    def key(self) -> str:
        """What its figures depend on, beside the run."""
        if self.path is None:
            return f"{STEPS} steps, {LINES} questions"
        return hashlib.sha256(self.path.read_bytes()).hexdigest()


def ask(
    setup: BenchSetup, runs: Sequence[BenchResult]
) -> Generator[Event, None, dict[str, dict[str, Figure]]]:
    """Return the figures by column and run; those that were measured before are read."""
    found: dict[str, dict[str, Figure]] = {}
    for name in setup.probes:
        each = Probe(Path(name).name.partition(".")[0], Path(name)) if Path(name).is_file() else Probe(name)
        for run in runs:
            figure = yield from _figure(setup, run, each)
            found.setdefault(each.name, {}).update({} if figure is None else {run.run: figure})
    return found


def _figure(setup: BenchSetup, run: BenchResult, each: Probe) -> Generator[Event, None, Figure | None]:
    """Return one figure; None where it cannot be measured."""
    path = setup.setup.out / FOLDER / f"{run.run}-{each.name}.json"
    key, kept = f"{run.key} {each.key}", read_json(path)
    if isinstance(kept, dict) and kept.get("key") == key:
        return Figure(**kept["figure"])
    yield Stage(f"{run.title}: {each.name}")
    try:
        figure = (
            yield from _learned(setup, run, each) if each.path is None else _judged(setup, run, each.path)
        )
    except (ConfigError, TrainingError) as error:
        yield Note(f"{run.title}, {each.name}: {error}")
        return None
    if figure is not None:
        write_json(path, {"key": key, "figure": asdict(figure)})
    return figure


def _judged(setup: BenchSetup, run: BenchResult, path: Path) -> Generator[Event, None, Figure | None]:
    """Return the share of minimal pairs that the trained model gets right."""
    folder = setup.setup.out / RUNS / run.run
    if not (folder / MANIFEST).is_file():
        yield Note(f"{run.title}: its model is not in {folder}, so minimal pairs cannot be measured")
        return None
    try:
        trained = saved.load(folder)
    except NextwordError as error:
        yield Note(f"{run.title}: {error}")
        return None
    return minimal_pairs(trained.model, trained.tokenizer, read_pairs(path))["all"]


def _learned(setup: BenchSetup, run: BenchResult, each: Probe) -> Generator[Event, None, Figure | None]:
    """Train a new network of the row on questions, at the rate that suits short training, and ask others."""
    settings = _settings(setup, run)
    path = write_file(setup.setup.out / FOLDER / f"{each.name}.txt", questions_text(each.name, LINES))
    texts, how = (
        Texts(Source.for_training((str(path),), settings.data)),
        Preparation(None, None, None, True, None),
    )
    _, prepared = yield from settings.find_task().prepare(texts, settings, how)
    text = Text(cast(PreparedText, prepared))
    learned = yield from learn(settings, text, f"{run.title}: {each.name}")
    return probe(learned.model, text.prepared.vocabulary, each.name)


def _settings(setup: BenchSetup, run: BenchResult) -> RunSettings:
    entry, plan = setup.entry(run.model), kept_plan(setup, run.model)
    words = entry.settings.text.model_copy(update={"tokenizer": "words"})
    sizes = {} if plan is None else plan.sizes
    settings = changed(entry.settings.with_group("text", words), {**sizes, "train.seed": run.seed})
    return with_budget(settings, STEPS, best(run.losses) or run.rate, early=False)
