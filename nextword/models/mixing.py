"""The family `mixture` as loading and saving see it: a run that holds its components, each in a folder.

A mixture is made of runs and not of text; `nextword mix` does that. What it holds is a copy, so that it
stands alone when its components go.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any, cast

from nextword.core import catalog, config
from nextword.core.contracts import Array, LanguageModel, Tokenizer
from nextword.core.errors import ConfigError, DamagedError
from nextword.core.events import Event
from nextword.core.family import Budget, Family
from nextword.core.manifest import Manifest
from nextword.core.runfolder import NewRun, RunFolder
from nextword.models.mixture import Mixture, MixtureSettings

_CONFIG, _TOKENIZER = "config.toml", "tokenizer.json"


class SavedMixture(Mixture):
    """A mixture that knows the run folders of its components."""

    def __init__(
        self, models: list[LanguageModel], weights: tuple[float, ...], parts: list[RunFolder]
    ) -> None:
        super().__init__(models, weights)
        self.parts = parts


class MixtureFamily:
    """Linear interpolation of saved runs."""

    name = "mixture"
    Settings = MixtureSettings
    default_tokenizer = "bpe"
    holds_text = True
    made_by = "nextword mix RUN RUN --tune DATA --out RUN"  # not by `train`

    def fit(self, ids: Array, tokenizer: Tokenizer, settings: Any, budget: Budget) -> Iterator[Event]:
        """A mixture is not learned from text."""
        raise ConfigError(f"a mixture is made of runs; use: {self.made_by}")

    def save(self, model: LanguageModel, folder: NewRun) -> None:
        """Copy every file of every component."""
        assert isinstance(model, SavedMixture)
        for number, part in enumerate(model.parts, start=1):
            for name in part.names:
                target = folder.path / f"part-{number}" / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(part.file(name), target)

    def load(self, folder: RunFolder, settings: MixtureSettings, tokenizer: Tokenizer) -> SavedMixture:
        """Load every component by its own family."""
        parts = [_part(folder, number) for number in range(1, len(settings.weights) + 1)]
        models = [load_part(part, tokenizer) for part in parts]
        try:
            return SavedMixture(models, settings.weights, parts)
        except ConfigError as error:
            raise DamagedError(f"'{folder.path}': {error}") from error


def load_part(part: RunFolder, tokenizer: Tokenizer) -> LanguageModel:
    """The model of a component; its settings stand in its own ``config.toml``."""
    place = str(part.path / _CONFIG)
    try:
        tree = config.parse_toml(part.read_text(_CONFIG), place)
        family = cast(Family, catalog.find("model", str(tree.get("family"))))
        given = config.flatten({"model": tree.get("model", {})})
        settings = config.build({"model": family.Settings}, given)["model"]
    except ConfigError as error:
        raise DamagedError(f"{place}: {error}") from error
    return family.load(part, settings, tokenizer)


def _part(folder: RunFolder, number: int) -> RunFolder:
    """One component as a run folder of its own."""
    prefix = f"part-{number}/"
    files = {
        name.removeprefix(prefix): record
        for name, record in folder.manifest.files.items()
        if name.startswith(prefix)
    }
    if _CONFIG not in files:
        raise DamagedError(f"'{folder.path}' has no part {number}; the mixture is incomplete, make it again")
    return RunFolder(folder.path / f"part-{number}", Manifest(files, folder.manifest.created))


FAMILY = MixtureFamily()
