"""The family `mixture` as loading and saving see it: a run that holds its members, each in a folder.

A mixture is made of runs and memories and not of text; `nextword mix` does that. It holds copies, so that it
still works when its members are deleted.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from nextword.core import catalog, config
from nextword.core.contracts import LanguageModel, State, Tokenizer
from nextword.core.errors import ConfigError, DamagedError
from nextword.core.family import Family
from nextword.core.settings import TrainSettings
from nextword.mixtures.members import Attached, Member, together
from nextword.mixtures.memory import Kind, Part
from nextword.mixtures.mixture import Mixture, MixtureSettings
from nextword.store.manifest import Manifest
from nextword.store.reading import ABOUT, RunFolder
from nextword.store.writing import NewRun

_CONFIG, _TOKENIZER = "config.toml", "tokenizer.json"


class SavedMixture(Mixture):
    """A mixture that knows the folders of its members, some of which may be memories of others."""

    def __init__(
        self, members: Sequence[Member], weights: Sequence[float], parts: Sequence[RunFolder]
    ) -> None:
        if len(members) != len(weights):
            raise ConfigError(
                f"a mixture of {len(members)} models has {len(weights)} weights; give one weight per model"
            )
        groups = together(members, weights)
        super().__init__([group.model for group in groups], [group.weight for group in groups])
        self.members, self.parts = list(members), list(parts)
        self.numbers = [number for group in groups for number in group.numbers]

    @property
    def told(self) -> list[str]:
        """Return what each memory is, in a phrase; empty for other members."""
        return [member.told if isinstance(member, Attached) else "" for member in self.members]

    def explain(self, state: State, word: int, top: int = 5) -> list[Part]:
        """Return what every member predicts for a token in the only row, in the order of the members."""
        found = super().explain(state, word, top)
        if len(found) != len(self.numbers):  # a part that is itself a mixture has several
            return found
        return [part for _, part in sorted(zip(self.numbers, found, strict=True), key=lambda pair: pair[0])]


class MixtureFamily:
    """Linear interpolation of saved runs."""

    name = "mixture"
    task = "lm"
    Settings = MixtureSettings
    Training = TrainSettings
    defaults: Mapping[str, Any] = {}
    default_tokenizer = "bpe"
    holds_text = True
    measures = True  # weights are tuned on held-out text
    needs_minutes = True
    made_by = "nextword mix RUN RUN --tune DATA --out RUN"

    def parts(self, settings: MixtureSettings) -> tuple[str, ...]:
        """Return the models that `train` makes one of."""
        return tuple(settings.models)

    def save(self, model: LanguageModel, folder: NewRun) -> None:
        """Copy every file of every component."""
        assert isinstance(model, SavedMixture)
        for number, part in enumerate(model.parts, start=1):
            for name in part.names:
                if Path(name).name in ABOUT and not part.file(name).is_file():
                    continue  # deleted: the part does not need it
                target = folder.path / f"part-{number}" / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(part.file(name), target)

    def load(self, folder: RunFolder, settings: MixtureSettings, tokenizer: Tokenizer) -> SavedMixture:
        """Load every component by its own family."""
        parts = [_part(folder, number) for number in range(1, len(settings.weights) + 1)]
        of = settings.of or (0,) * len(parts)
        members = [load_part(part, tokenizer, number) for part, number in zip(parts, of, strict=True)]
        try:
            return SavedMixture(members, settings.weights, parts)
        except ConfigError as error:
            raise DamagedError(f"'{folder.path}': {error}") from error


def load_part(part: RunFolder, tokenizer: Tokenizer, of: int = 0) -> Member:
    """Load the model or memory of a component; its settings are in its own ``config.toml``.

    ``of``: the number, from 1, of the member whose features a memory reads; 0: none.
    """
    place = str(part.path / _CONFIG)
    try:
        tree = config.parse_toml(part.read_text(_CONFIG), place)
        if "memory" in tree:
            return _memory(part, tree, tokenizer, of)
        family = cast(Family, catalog.find("model", str(tree.get("family"))))
        given = config.flatten({"model": tree.get("model", {})})
        settings = config.build({"model": family.Settings}, given)["model"]
    except ConfigError as error:
        raise DamagedError(f"{place}: {error}") from error
    model: LanguageModel = family.load(part, settings, tokenizer)
    return model


def _memory(part: RunFolder, tree: dict[str, Any], tokenizer: Tokenizer, of: int) -> Attached:
    """Load a memory, with the index of the member whose features it reads."""
    kind = cast(Kind, catalog.find("memory", str(tree.get("kind"))))
    settings = config.build({"memory": kind.Settings}, config.flatten({"memory": tree["memory"]}))["memory"]
    if kind.reads_features != (of > 0):
        raise ConfigError(f"the memory '{kind.name}' cannot read the features of member {of}; make it again")
    return Attached(kind.load(part, settings, tokenizer), of - 1 if of else None, kind.describe(settings))


def _part(folder: RunFolder, number: int) -> RunFolder:
    """Return one component as a run folder of its own."""
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
