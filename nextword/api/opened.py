"""An opened run: the trained model and what is known about it.

Every verb takes one or the name of a saved one. `nextword.Run`, which has the verbs as its methods, is the
same object one level up, so that verbs never import it.
"""

from __future__ import annotations

import os
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Any

from nextword.core.contracts import Filler, LanguageModel, Parametric, Tokenizer, is_probability
from nextword.core.errors import ConfigError
from nextword.mixtures.mixture import MixtureSettings
from nextword.ngram.model import NgramModel
from nextword.runs import saved
from nextword.runs.facts import Facts, summarize
from nextword.runs.saved import Trained
from nextword.runs.settings import RunSettings
from nextword.store.reading import open_run
from nextword.store.writing import new_run
from nextword.text.backward import BackwardTokenizer

Name = str | os.PathLike[str]


class Opened:
    """A model with its tokenizer and settings, in memory or in a run folder."""

    def __init__(self, trained: Trained) -> None:
        self.trained = trained

    @property
    def model(self) -> LanguageModel:
        """The model itself; a `LanguageModel` where the task has one."""
        model: LanguageModel = self.trained.model
        return model

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer: text to ids and back."""
        return self.trained.tokenizer

    @property
    def settings(self) -> RunSettings:
        """Every setting it was trained with."""
        return self.trained.settings

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """What was measured during training."""
        return self.trained.metrics

    @property
    def facts(self) -> Facts:
        """When, on which data and on which machine it was trained."""
        return self.trained.facts

    @property
    def path(self) -> Path | None:
        """Its folder; None until it is saved."""
        return None if self.trained.folder is None else self.trained.folder.path

    @property
    def place(self) -> str:
        """Its folder as users type it: relative if it is below the current folder."""
        if self.path is None:
            return "memory"
        inside = self.path.is_relative_to(Path.cwd())
        return str(self.path.relative_to(Path.cwd()) if inside else self.path)

    @property
    def is_probability(self) -> bool:
        """Whether its numbers are probabilities; `stupid` gives scores."""
        return is_probability(self.trained.model)

    @property
    def parameters(self) -> int | None:
        """The number of weights of a neural model; None for others."""
        model = self.trained.model
        return model.parameters if isinstance(model, Parametric) else None

    @property
    def members(self) -> tuple[str, ...]:
        """The names of the runs and memories in a mixture; empty for others."""
        return self.settings.model.runs if isinstance(self.settings.model, MixtureSettings) else ()

    @cached_property
    def fingerprint(self) -> str:
        """The hash of what this run computes: equal for two training runs that gave the same model."""
        if self.trained.folder is not None:
            return saved.fingerprint(self.trained.folder)
        with tempfile.TemporaryDirectory(prefix="nextword-") as folder:
            target = Path(folder) / "run"
            with new_run(target) as new:
                saved.write(self.trained, new)
            return saved.fingerprint(open_run(target))

    def describe(self) -> str:
        """Say in one phrase which model it is and how large.

        >>> run.describe()
        'ngram over 14 words, ... n-grams'
        """
        model = self.trained.model
        large = f", {sum(model.trie.sizes):,} n-grams" if isinstance(model, NgramModel) else ""
        if self.parameters is not None:
            large = f", {self.parameters:,} parameters"
        return f"{self.settings.name} over {self.settings.find_task().phrase(self.trained.vocabulary)}{large}"

    def summary(self) -> dict[str, Any]:
        """Collect the facts about a run, as ``nextword train --json`` prints them.

        >>> run.summary()["tokenizer"]
        'words'
        """
        task = self.settings.find_task()
        values: dict[str, Any] = {
            "run": None if self.path is None else self.place,
            "model": self.settings.name,
            "family": self.settings.family,
            **task.about(self.trained.vocabulary),
            "tokens": self.facts.data.tokens,
            "bytes": self.facts.data.bytes,
            "seconds": self.facts.seconds,
            "is_probability": self.is_probability,
        }
        if self.parameters is not None:
            values["parameters"] = self.parameters
        decides = task.deciding(self.trained.vocabulary)
        return values | summarize(self.metrics, f"valid_{decides}", task.higher)


def opened(run: Opened | Name) -> Opened:
    """Return the run itself, or open the saved one of this name."""
    return run if isinstance(run, Opened) else Opened(saved.load(run))


def language_model(run: Opened | Name, forward: bool = False) -> Opened:
    """Open a run that must be a language model; ``forward``: one that reads from left to right."""
    found = opened(run)
    if isinstance(found.trained.model, Filler):
        raise ConfigError(
            f"'{found.place}' {found.trained.model.fills}, and this needs a model that reads from left to "
            "right; use nextword predict, which fills blanks, or nextword eval"
        )
    is_text = isinstance(found.trained.vocabulary, Tokenizer)  # a translation model has two tokenizers
    if not is_text or not isinstance(found.trained.model, LanguageModel):
        noun = found.settings.find_task().noun
        raise ConfigError(
            f"'{found.place}' is a {noun}, and this needs a language model; use nextword predict or "
            "nextword eval"
        )
    if forward and isinstance(found.trained.vocabulary, BackwardTokenizer):
        raise ConfigError(
            f"'{found.place}' reads text from its end (data.direction is backward), and this needs a model "
            "that reads from left to right; nextword score and nextword eval take either"
        )
    return found
