"""Runs trained from a small text and saved, without the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from event_streams import result_of

from nextword.data.source import Source
from nextword.runs import saved
from nextword.runs.settings import RunSettings
from nextword.store.writing import new_run
from nextword.tasks.lm import Texts
from nextword.training.fit import fit


def train(text: Path, settings: RunSettings) -> Any:
    """Train on a file, without held-out text."""
    return result_of(fit(settings, Texts(Source.for_training([text], settings.data))))


def train_and_save(text: Path, settings: RunSettings, out: Path) -> Path:
    """Train on a file and save the run."""
    with new_run(out) as folder:
        saved.write(train(text, settings), folder)
    return out
