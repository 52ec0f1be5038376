"""A trained model with everything that belongs to it: saving it to a run folder, and loading it."""

from __future__ import annotations

import json
import logging
import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from nextword.core.contracts import Tokenizer
from nextword.core.errors import ConfigError, DamagedError
from nextword.runs import facts as training
from nextword.runs.settings import RunSettings, from_toml
from nextword.store.names import resolve
from nextword.store.reading import ABOUT, RunFolder, open_run
from nextword.store.writing import NewRun

CONFIG, METRICS, TRAINING, CARD = "config.toml", "metrics.jsonl", "training.json", "README.md"
_log = logging.getLogger("nextword")


@dataclass(frozen=True)
class Trained:
    """The result of training: a model, its vocabulary, settings and facts."""

    settings: RunSettings
    model: Any  # for text, a `LanguageModel`
    vocabulary: Any  # the task's: for language models, the tokenizer
    facts: training.Facts = field(default_factory=training.Facts)
    metrics: list[dict[str, Any]] = field(default_factory=list)
    folder: RunFolder | None = None  # where it is saved, if it is

    @property
    def tokenizer(self) -> Tokenizer:
        """Return the vocabulary of a model of text."""
        return cast(Tokenizer, self.vocabulary)


def write(trained: Trained, folder: NewRun) -> None:
    """Write every file of a run; `store.writing` puts them in place together."""
    family = trained.settings.find_family()
    folder.private = family.holds_text
    family.save(trained.model, folder)
    if not (folder.path / CONFIG).exists():  # a neural run has written it before its first step
        folder.write(CONFIG, trained.settings.to_toml())
    trained.settings.find_task().save(trained.vocabulary, folder)
    folder.write(
        METRICS, "".join(json.dumps(_finite(row), allow_nan=False) + "\n" for row in trained.metrics)
    )
    folder.write_json(TRAINING, trained.facts.to_json())
    page = training.card(trained.settings, trained.model, trained.vocabulary, trained.facts, trained.metrics)
    folder.write(CARD, page)


def load(name: str | os.PathLike[str], verify: bool = False) -> Trained:
    """Load a saved run by its folder or name; ``verify`` checks every byte of it."""
    folder = open_run(resolve(name), verify=verify, about=ABOUT)
    for file in folder.changed:
        is_there = os.path.lexists(folder.path / file)
        what = "was changed after it was written" if is_there else "is missing"
        used = "" if Path(file).name == CARD else ", so what it said about the training is not known"
        _log.warning(f"{folder.path / file} {what}; the model does not need it{used}")
    return load_folder(folder)


def load_folder(folder: RunFolder) -> Trained:
    """Load the model of an open run folder; raise `DamagedError` if files do not match."""
    place = folder.path / CONFIG
    try:
        settings = from_toml(folder.read_text(CONFIG), str(place))
    except ConfigError as error:
        raise DamagedError(f"{place}: {error}") from error
    model, vocabulary = settings.find_task().load(folder, settings)
    folder.ensure_unchanged()
    has_facts = TRAINING in folder and TRAINING not in folder.changed
    facts = training.from_json(folder.read_json(TRAINING)) if has_facts else training.Facts()
    return Trained(settings, model, vocabulary, facts, _metrics(folder), folder)


def fingerprint(folder: RunFolder) -> str:
    """Return the hash of what a run computes: two training runs with the same model have the same hash."""
    from nextword.store.manifest import Manifest

    files = {name: record for name, record in folder.manifest.files.items() if Path(name).name not in ABOUT}
    return Manifest(files, 0).fingerprint


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    """Replace NaN and infinite numbers by null, since JSON has neither."""
    infinite = (math.inf, -math.inf)
    return {name: None if value in infinite or value != value else value for name, value in row.items()}


def _metrics(folder: RunFolder) -> list[dict[str, Any]]:
    if METRICS not in folder or METRICS in folder.changed:
        return []
    try:
        return [json.loads(line) for line in folder.read_text(METRICS).split("\n") if line]
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{folder.path / METRICS} is not valid JSON; train the run again") from error
