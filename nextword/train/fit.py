"""The path of training: corpus -> tokenizer -> ids -> model, told as events.

Data goes down once; what a family does with the ids is its own affair (`core.family`).
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from nextword.core.contracts import LanguageModel
from nextword.core.events import Done, Event, Measure, Note, Stage
from nextword.core.family import Budget
from nextword.core.runfolder import NewRun
from nextword.evaluate.perplexity import evaluate
from nextword.train import facts
from nextword.train.ids import Text, encode
from nextword.train.saved import Trained
from nextword.train.settings import RunSettings
from nextword.train.source import Source

_VALID = ("tokens", "perplexity", "word_perplexity", "bits_per_byte", "unknown_rate")
Metrics = list[dict[str, Any]]


def fit(
    settings: RunSettings, source: Source, valid: Source | None = None, folder: NewRun | None = None
) -> Iterator[Event]:
    """Train; the last event is ``Done(Trained)``. ``folder``: the run being written, if there is one."""
    began = time.perf_counter()
    metrics: Metrics = []
    with _scratch(settings, folder) as scratch:
        text = yield from encode(settings, source, scratch)
        model = yield from _learn(settings, text, Budget(
            settings.train.seed, settings.train.memory, None if folder is None else folder.path, scratch
        ), metrics)  # fmt: skip
    if valid is not None:
        yield from _validate(model, text, source, valid, metrics)
    settings = replace(settings, text=settings.text.model_copy(update={"tokenizer": text.tokenizer.name}))
    told = facts.collect(settings.train.seed, text.facts, time.perf_counter() - began)
    yield Done(Trained(settings, model, text.tokenizer, told, metrics))


def _learn(
    settings: RunSettings, text: Text, budget: Budget, metrics: Metrics
) -> Generator[Event, None, LanguageModel]:
    """The family's own fit."""
    model: LanguageModel | None = None
    for event in settings.find_family().fit(text.ids, text.tokenizer, settings.model, budget):
        if isinstance(event, Done):
            model = event.result
            continue
        if isinstance(event, Measure):
            metrics.append(event.values)
        yield event
    assert model is not None, "a family's last event is Done(model)"
    return model


def _validate(
    model: LanguageModel, text: Text, source: Source, valid: Source, metrics: Metrics
) -> Iterator[Event]:
    """Measure the held-out text."""
    if (both := source.shares_a_file_with(valid)) is not None:
        yield Note(f"{both} is in the training text too, so what it says about new text is worth little")
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
