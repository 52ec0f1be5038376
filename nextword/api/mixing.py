"""``mix``: several runs as one, weighted so that they predict a held-out text best."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from nextword.api.events import finish
from nextword.api.run import Run, load
from nextword.core.contracts import START
from nextword.core.errors import ConfigError
from nextword.core.events import Done, Event, Measure, Note, Stage
from nextword.core.newrun import check_target, new_run
from nextword.core.runfolder import RunFolder
from nextword.core.runnames import default_name, mark_latest
from nextword.evaluate.streams import Stream
from nextword.models.mixing import SavedMixture
from nextword.models.mixture import MixtureSettings, tune_weights
from nextword.train import saved
from nextword.train.facts import collect
from nextword.train.saved import Trained
from nextword.train.settings import RunSettings, TrainSettings
from nextword.train.source import Source


def mix(
    *runs: str | os.PathLike[str] | Run,
    tune: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> Run:
    """A mixture of saved runs with weights tuned on a text; saved in ``out`` (default: under ``runs/``)."""
    made: Run = finish(mixing(runs, tune, out, overwrite=overwrite))
    return made


def mixing(
    runs: Sequence[str | os.PathLike[str] | Run],
    tune: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    overwrite: bool = False,
) -> Iterator[Event]:
    """`mix` with its progress; the last event holds the run."""
    if len(runs) < 2:
        raise ConfigError("a mixture needs at least two runs; name another one")
    opened = [load(run) for run in runs]
    folders = [_folder(run) for run in opened]
    _check(opened, folders)
    target = default_name("mixture", os.fspath(tune)) if out is None else out
    check_target(target, overwrite)
    source = Source.for_reading([tune], opened[0].settings.data)
    yield Stage("tune", len(opened), "models")
    tuned = tune_weights(_logps(opened, source))
    if tuned.dropped:
        yield Note(f"{tuned.dropped:,} held-out tokens are impossible for every run and tell nothing")
    nll = -tuned.history[-1]
    figures: dict[str, Any] = {"weights": list(tuned.weights), "tune_nll": nll, "gap": tuned.gap}
    yield Measure(figures)
    shown = ", ".join(f"{weight:.3f}" for weight in tuned.weights)
    yield Note(f"weights: {shown}; held-out nats per token: {nll:.4f}")
    settings = _settings(opened, [folder.path.name for folder in folders], tuned.weights)
    model = SavedMixture([run.model for run in opened], settings.model.weights, folders)  # type: ignore[attr-defined]
    facts = collect(0, opened[0]._trained.facts.data, 0.0)
    with new_run(target, overwrite=overwrite) as folder:
        saved.write(Trained(settings, model, opened[0].tokenizer, facts, [figures]), folder)
    mark_latest(target)
    yield Done(load(target))


def _folder(run: Run) -> RunFolder:
    folder = run._trained.folder
    if folder is None:
        raise ConfigError('a mixture is made of saved runs; save this one first with run.save("runs/NAME")')
    return folder


def _check(runs: Sequence[Run], folders: Sequence[RunFolder]) -> None:
    """The ids of all runs must mean the same."""
    first = folders[0]
    for run, folder in zip(runs[1:], folders[1:], strict=True):
        name = saved.TOKENIZER
        if folder.manifest.files[name].sha256 != first.manifest.files[name].sha256:
            raise ConfigError(
                f"the tokenizers of {_told(runs[0])} and {_told(run)} do not agree; train the second with "
                f"--tokenizer {runs[0].place}/tokenizer.json"
            )


def _told(run: Run) -> str:
    return f"'{run.place}' ({run.tokenizer.name}, {run.tokenizer.vocab_size:,})"


def _logps(runs: Sequence[Run], source: Source) -> list[np.ndarray[Any, np.dtype[Any]]]:
    """log p of every token of the text, one array a run; the text is encoded once."""
    streams: list[Stream] = [Stream(run.model, carry=True) for run in runs]
    found: list[list[Any]] = [[] for _ in runs]
    for piece in runs[0].tokenizer.encode_blocks(source.blocks()):
        real = np.asarray(piece.ids) != START
        for stream, parts in zip(streams, found, strict=True):
            parts.append(np.asarray(stream.push(piece.ids, piece.documents))[real])
    return [np.concatenate(parts) if parts else np.empty(0) for parts in found]


def _settings(runs: Sequence[Run], names: list[str], weights: tuple[float, ...]) -> RunSettings:
    first = runs[0].settings
    model = MixtureSettings(runs=tuple(names), weights=weights)
    return RunSettings("mixture", "mixture", model, first.text, first.data, TrainSettings())
