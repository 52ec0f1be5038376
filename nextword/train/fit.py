"""The path of training: corpus -> tokenizer -> ids -> model, told as events.

Data goes down once; what a count family does with the ids is its own affair (`core.family`), and neural ones
learn in one trainer (`train.neural`).
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from nextword.core.contracts import Encoded, LanguageModel
from nextword.core.events import Done, Event, Measure, Note, Stage
from nextword.core.family import Budget
from nextword.core.runfolder import NewRun
from nextword.evaluate.perplexity import evaluate
from nextword.train import facts
from nextword.train.calibrate import calibrate, in_time
from nextword.train.conditions import Conditions
from nextword.train.ids import Text, encode
from nextword.train.saved import CONFIG, Trained
from nextword.train.settings import RunSettings, is_neural
from nextword.train.source import Source

_VALID = ("tokens", "perplexity", "word_perplexity", "bits_per_byte", "unknown_rate")
Metrics = list[dict[str, Any]]


def fit(
    settings: RunSettings,
    source: Source,
    valid: Source | None = None,
    folder: NewRun | None = None,
    conditions: Conditions | None = None,
) -> Iterator[Event]:
    """Train; the last event is ``Done(Trained)``. ``folder``: the run being written, if there is one."""
    began = time.perf_counter()
    metrics: Metrics = []
    told: dict[str, Any] = {}
    conditions = conditions or Conditions()
    neural = is_neural(settings.find_family())
    remarks = [] if valid is None else list(_remark(source, valid))
    if neural and not conditions.whole:
        settings, source, valid = in_time(settings, source, valid, conditions.clock)
    with _scratch(settings, folder) as scratch:
        text = yield from encode(settings, source, scratch)
        settings = replace(settings, text=settings.text.model_copy(update={"tokenizer": text.tokenizer.name}))
        if neural:
            settings = yield from _recording(calibrate(settings, text, conditions), metrics)
            if folder is not None:  # the plan stands before the first step
                folder.write(CONFIG, settings.to_toml())
            model, told = yield from _learn_steps(settings, text, _held_out(text, valid), conditions, metrics)
        else:
            model = yield from _learn(settings, text, Budget(
                settings.train.seed, settings.train.memory, None if folder is None else folder.path, scratch
            ), metrics)  # fmt: skip
    yield from remarks
    if valid is not None and not told:
        yield from _validate(model, text, valid, metrics)
    found = facts.collect(settings.train.seed, text.facts, time.perf_counter() - began, told)
    yield Done(Trained(settings, model, text.tokenizer, found, metrics))


def _learn(
    settings: RunSettings, text: Text, budget: Budget, metrics: Metrics
) -> Generator[Event, None, LanguageModel]:
    """A count family's own fit."""
    model: LanguageModel = yield from _recorded(
        settings.find_family().fit(text.ids, text.tokenizer, settings.model, budget), metrics
    )
    return model


def _learn_steps(
    settings: RunSettings,
    text: Text,
    held_out: Iterable[Encoded] | None,
    conditions: Conditions,
    metrics: Metrics,
) -> Generator[Event, None, tuple[LanguageModel, dict[str, Any]]]:
    """The trainer of neural models."""
    from nextword.train.neural import loop, setup

    job = yield from _recorded(setup.prepare(settings, text, held_out, conditions), metrics)
    outcome: loop.Outcome = yield from _recorded(loop.fit(job), metrics)
    return outcome.model, outcome.facts


def _recorded(events: Iterable[Event], metrics: Metrics) -> Generator[Event, None, Any]:
    """Hand on all but the last event; numbers are kept, and the result is returned."""
    made: Any = None
    for event in events:
        if isinstance(event, Done):
            made = event.result
            continue
        if isinstance(event, Measure):
            metrics.append(event.values)
        yield event
    assert made is not None, "the last event is Done(something)"
    return made


def _recording(
    events: Generator[Event, None, RunSettings], metrics: Metrics
) -> Generator[Event, None, RunSettings]:
    """Hand on all events; numbers are kept."""
    while True:
        try:
            event = next(events)
        except StopIteration as end:
            chosen: RunSettings = end.value
            return chosen
        if isinstance(event, Measure):
            metrics.append(event.values)
        yield event


def _held_out(text: Text, valid: Source | None) -> Iterable[Encoded] | None:
    return None if valid is None else text.tokenizer.encode_blocks(valid.blocks(), costs=True)


def _remark(source: Source, valid: Source) -> Iterator[Event]:
    if (both := source.shares_a_file_with(valid)) is not None:
        yield Note(f"{both} is in the training text too, so what it says about new text is worth little")


def _validate(model: LanguageModel, text: Text, valid: Source, metrics: Metrics) -> Iterator[Event]:
    """Measure the held-out text."""
    yield Stage("measure the held-out text", valid.size, "bytes")
    report = evaluate(model, text.tokenizer, valid.blocks())
    metrics.append({f"valid_{name}": report.to_json()[name] for name in _VALID})
    yield Measure(metrics[-1])
    bits = report.bits_per_byte
    yield Note(f"held-out text: perplexity {report.perplexity:,.2f}, {bits:.4f} bits per byte")


@contextmanager
def _scratch(settings: RunSettings, folder: NewRun | None) -> Iterator[Path | None]:
    """A folder for temporary files where memory is limited: beside the run, so on its disk."""
    if not settings.train.memory:
        yield None
        return
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="nextword-") as name:
            yield Path(name)
        return
    path = folder.path / "scratch"
    path.mkdir()
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
