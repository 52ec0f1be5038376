"""The path of training: corpus -> tokenizer -> ids -> model, told as events.

Data goes down once; what a count family does with the ids is its own affair (`core.family`), and neural ones
learn in one trainer (`training`).
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from nextword.core.contracts import Encoded, LanguageModel
from nextword.core.events import Done, Event, Measure, Note, Stage
from nextword.core.family import Budget
from nextword.core.training import SpreadSettings
from nextword.data.encode import Text, encode
from nextword.data.source import Source
from nextword.evaluation.lm.perplexity import evaluate
from nextword.runs import facts
from nextword.runs.saved import CONFIG, Trained
from nextword.runs.settings import RunSettings, is_neural
from nextword.store.writing import NewRun
from nextword.training.budget.calibrate import in_time
from nextword.training.conditions import Conditions
from nextword.training.learn import Metrics, learn_counts, learn_neural

_VALID = ("tokens", "perplexity", "word_perplexity", "bits_per_byte", "unknown_rate")


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
    if settings.family == "mixture":
        from nextword.training.mixtures.blend import fit_mixture

        yield from fit_mixture(settings, source, valid, folder, replace(conditions, keeper=None))
        return
    neural = is_neural(settings.find_family())
    remarks = [] if valid is None else list(_remark(source, valid))
    if neural and not conditions.whole:
        settings, source, valid = in_time(settings, source, valid, conditions.reading)
    with _scratch(settings, folder) as scratch:
        known = None if conditions.keeper is None else conditions.keeper.tokenizer()
        text = yield from encode(settings, source, scratch, known)
        settings = replace(settings, text=settings.text.model_copy(update={"tokenizer": text.tokenizer.name}))
        if neural:
            settings, model, told = yield from learn_neural(
                settings, text, _held_out(text, valid), conditions, metrics, _planned(folder)
            )
        else:
            model = yield from learn_counts(settings, text, Budget(
                settings.train.seed, settings.train.memory, None if folder is None else folder.path, scratch,
                *_engine(settings),
            ), metrics)  # fmt: skip
    yield from remarks
    if valid is not None and not told:
        yield from _validate(model, text, valid, metrics)
    found = facts.collect(settings.train.seed, text.facts, time.perf_counter() - began, told)
    yield Done(Trained(settings, model, text.tokenizer, found, metrics))


def _planned(folder: NewRun | None) -> Callable[[RunSettings], None]:
    """Before the first step the plan stands in ``config.toml``."""
    return lambda settings: None if folder is None else folder.write(CONFIG, settings.to_toml())


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


def _engine(settings: RunSettings) -> tuple[str, str]:
    """Who counts, and the master of a cluster."""
    train = settings.train
    return (train.engine, train.master) if isinstance(train, SpreadSettings) else ("local", "")


@contextmanager
def _scratch(settings: RunSettings, folder: NewRun | None) -> Iterator[Path | None]:
    """A folder for temporary files where memory is limited or a cluster counts: beside the run."""
    if not settings.train.memory and _engine(settings)[0] == "local":
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
