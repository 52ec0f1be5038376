"""``compare``: train several models on one split and measure them side by side."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nextword.api.arguments import checked
from nextword.core import catalog, config
from nextword.core.errors import ConfigError, Stopped
from nextword.core.events import Event, Stage, result_of

if TYPE_CHECKING:
    from nextword.comparison.bench.bench import Benched
    from nextword.comparison.compare import Comparison
    from nextword.comparison.task.compare import TaskComparison


@dataclass(frozen=True)
class CompareOptions:
    """What the user asked `compare` for."""

    data: tuple[str, ...] = ()
    task: str | None = None  # None: that of the models
    models: Sequence[str] = ()
    valid: tuple[str, ...] = ()
    tokenizer: str | Sequence[str] | None = None  # several: every model with each
    minutes: float | None = None  # for each model
    seeds: int = 1  # runs of each model that draws random numbers
    rows: str | Sequence[str] = ()  # modifications of one model, instead of models
    tokens: int | None = None  # for each run of such a row
    match: str | None = None  # what such rows have in common
    probes: Sequence[str] = ()  # further columns: kinds of questions, files of minimal pairs
    sets: Mapping[str, Any] | Sequence[str] = ()
    out: str | os.PathLike[str] | None = None


@checked
def compare(
    *data: str | os.PathLike[str],
    models: str | Sequence[str] = (),
    valid: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    tokenizer: str | Sequence[str] | None = None,
    minutes: float | None = None,
    seeds: int = 1,
    set: Mapping[str, Any] | None = None,  # noqa: A002 - the interface's name
    out: str | os.PathLike[str] | None = None,
    task: str | None = None,
    rows: str | Sequence[str] = (),
    tokens: int | None = None,
    match: str | None = None,
    probes: str | Sequence[str] = (),
) -> Comparison | TaskComparison | Benched:
    """Train several models on one split and measure them; the keywords are the options of the command line.

    >>> nextword.compare("corpus.txt", models=["ngram", "ngram-laplace"], out="comparison")
    <Comparison of 2 models: best ngram...>
    """
    names = models.split(",") if isinstance(models, str) else models
    texts = tuple(os.fspath(name) for name in data)
    held_out = (valid,) if isinstance(valid, (str, os.PathLike)) else valid
    asked = CompareOptions(
        data=texts, task=task, models=tuple(names), valid=tuple(os.fspath(name) for name in held_out),
        tokenizer=tokenizer, minutes=minutes, seeds=seeds, rows=rows, tokens=tokens, match=match,
        sets=dict(set or {}), out=out, probes=_list(probes),
    )  # fmt: skip
    found: Comparison | TaskComparison | Benched = result_of(comparing(asked))
    return found


def comparing(options: CompareOptions) -> Iterator[Event]:
    """Run `compare` and yield its progress; the last event holds the comparison."""
    from nextword.comparison.entries import LANGUAGE, task_of

    sets = options.sets if isinstance(options.sets, Mapping) else config.parse_sets(options.sets)
    if options.rows:
        yield from _rows(options, sets)
        return
    for name in ("tokens", "match", "probes"):
        if getattr(options, name) not in (None, (), []):
            raise ConfigError(f"--{name} is for --rows, modifications of one model; leave it out")
    task = options.task or task_of(options.models)
    catalog.find("task", task)
    events = _language_models(options, sets) if task == LANGUAGE else _models_of(task, options, sets)
    yield from events


def _language_models(options: CompareOptions, sets: Mapping[str, Any]) -> Iterator[Event]:
    from nextword.comparison.compare import compare as run
    from nextword.comparison.setup import set_up

    setup = set_up(
        options.data,
        options.models,
        valid=options.valid,
        tokenizer=_list(options.tokenizer),
        sets=sets,
        out=options.out,
        minutes=options.minutes,
        seeds=options.seeds,
    )
    yield from _stoppable(run(setup), setup.out)


def _rows(options: CompareOptions, sets: Mapping[str, Any]) -> Iterator[Event]:
    """Compare modifications of one model at a matched budget."""
    from nextword.comparison.bench.bench import bench
    from nextword.comparison.bench.setup import set_up

    if options.models or options.task not in (None, "lm"):
        raise ConfigError("--rows names its models itself, for the task lm; leave out --models and --task")
    if len(tokenizers := _list(options.tokenizer)) > 1:
        raise ConfigError(f"--rows takes one tokenizer for all, and {len(tokenizers)} are named; name one")
    setup = set_up(
        options.data,
        options.rows,
        valid=options.valid,
        tokenizer=next(iter(tokenizers), None),
        sets=sets,
        out=options.out,
        minutes=options.minutes,
        tokens=options.tokens,
        match=options.match,
        seeds=options.seeds,
        probes=options.probes,
    )
    yield from _stoppable(bench(setup), setup.setup.out)


def _models_of(task: str, options: CompareOptions, sets: Mapping[str, Any]) -> Iterator[Event]:
    """Compare models of another task, as the task divides and measures its examples."""
    from nextword.comparison.task.compare import compare as run
    from nextword.comparison.task.setup import set_up

    if options.tokenizer:
        raise ConfigError(f"--tokenizer is for language models, and the task is '{task}'; leave it out")
    setup = set_up(
        task,
        options.data,
        options.models,
        valid=options.valid,
        sets=sets,
        out=options.out,
        minutes=options.minutes,
        seeds=options.seeds,
    )
    yield from _stoppable(run(setup), setup.out)


def _stoppable(events: Iterator[Event], out: Any) -> Iterator[Event]:
    """Yield the events; Ctrl-C says what is kept and how to continue."""
    stage = ""
    try:
        for event in events:
            stage = event.name if isinstance(event, Stage) else stage
            yield event
    except KeyboardInterrupt as stop:
        raise Stopped(
            f"stopped during '{stage}'; models that are finished stay in {out}, and the same command "
            "continues with the others"
        ) from stop


def _list(names: str | Sequence[str] | None) -> list[str]:
    """Split ``words,bpe`` in two."""
    parts = names.split(",") if isinstance(names, str) else names or ()
    return list(dict.fromkeys(part.strip() for part in parts if part.strip()))
