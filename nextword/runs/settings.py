"""The settings of one training run, all of them, checked before anything is read.

The tree is ``model`` (the family's own), ``text``, ``data`` and ``train``; `core.config` reads and writes it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from nextword.core import catalog, config
from nextword.core.errors import ConfigError
from nextword.core.family import Family
from nextword.core.settings import Settings
from nextword.core.training import SpreadSettings
from nextword.core.training import TrainSettings as TrainSettings
from nextword.data.settings import DataSettings
from nextword.models import presets
from nextword.models.training import NeuralTrainSettings
from nextword.text.settings import TextSettings

_HEAD = ("family", "name", "task")


@dataclass(frozen=True)
class RunSettings:
    """Everything that decides what a run is."""

    name: str  # what was asked for: a family or a preset
    family: str
    model: Settings
    text: TextSettings
    data: DataSettings
    train: TrainSettings
    # Settings that somebody chose: with minutes, the others are free.
    named: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def groups(self) -> dict[str, Settings]:
        """The tree, by the names used after ``--set``."""
        return {"model": self.model, "text": self.text, "data": self.data, "train": self.train}

    def find_family(self) -> Family:
        """The family's object from the catalog."""
        return cast(Family, catalog.find("model", self.family))

    def to_toml(self) -> str:
        """``config.toml``: complete, with what every line means."""
        return config.to_toml(self.groups, {"family": self.family, "name": self.name, "task": "lm"})


def plan(
    model: str = "ngram",
    *,
    recipe: str | os.PathLike[str] | None = None,
    tokenizer: str | None = None,
    seed: int | None = None,
    sets: Mapping[str, Any] | None = None,
    task: str = "lm",
    base: Callable[[str], Mapping[str, Any]] | None = None,
) -> RunSettings:
    """All settings of a run; a recipe (TOML) gives its own, ``sets`` win over it.

    ``base`` gives, for the family's name, what stands below both: settings of the run that is gone on from.
    """
    if task != "lm":
        raise ConfigError(catalog.unknown(f"'{task}' is no task of this version", task, ["lm"]))
    tree = dict(config.read_toml(recipe)) if recipe is not None else {}
    preset = presets.find(_family_of(tree, model))
    given: dict[str, Any] = {} if tokenizer is None else {"text.tokenizer": tokenizer}
    given |= {} if seed is None else {"train.seed": seed}
    below = {} if base is None else base(preset.family)
    return _build(preset, below, config.flatten(tree), given | dict(sets or {}))


def from_toml(text: str, name: str) -> RunSettings:
    """The settings a run was made with; ``name`` is the file, for messages."""
    tree = config.parse_toml(text, name)
    family = tree.get("family")
    if not isinstance(family, str):
        raise ConfigError(f"{name} does not name its family; the run is damaged, train it again")
    shown = str(tree.get("name", family))
    preset = presets.Preset(shown, family, "")
    return _build(preset, config.flatten({key: value for key, value in tree.items() if key not in _HEAD}))


def groups_of(family: Family) -> dict[str, type[Settings]]:
    """The settings tree of a family."""
    spread = SpreadSettings if getattr(family, "spreads", False) else TrainSettings
    train = NeuralTrainSettings if is_neural(family) else spread
    return {"model": family.Settings, "text": TextSettings, "data": DataSettings, "train": train}


def is_neural(family: Family) -> bool:
    """Whether it learns step by step, in the trainer."""
    return bool(getattr(family, "is_neural", False))


def _family_of(tree: dict[str, Any], model: str) -> str:
    """The model a recipe names; its top-level keys are taken out of the tree."""
    named = [tree.pop(key, None) for key in ("name", "family")]
    tree.pop("task", None)
    found = next((each for each in named if each is not None), model)
    if not isinstance(found, str):
        raise ConfigError(f"'family' is {found!r}; it must be the name of a model, such as \"ngram\"")
    return found


def _build(preset: presets.Preset, *sources: Mapping[str, Any]) -> RunSettings:
    """A family's own defaults, then the preset's, then the sources, the last of which wins."""
    family = cast(Family, catalog.find("model", preset.family))
    _check_steps(family, sources)
    built = config.build(groups_of(family), getattr(family, "defaults", {}), preset.settings, *sources)
    text = cast(TextSettings, built["text"])
    name = _tokenizer_name(text.tokenizer, family.default_tokenizer)
    return RunSettings(
        name=preset.name,
        family=preset.family,
        model=built["model"],
        text=text.model_copy(update={"tokenizer": name}),
        data=cast(DataSettings, built["data"]),
        train=cast(TrainSettings, built["train"]),
        named=frozenset(key for source in (preset.settings, *sources) for key in source),
    )


def changed(settings: RunSettings, values: Mapping[str, Any]) -> RunSettings:
    """The same run with other values (dotted keys), checked again as a whole."""
    groups = {group: dict(each) for group, each in settings.groups.items()}
    for key, value in values.items():
        group, _, name = key.partition(".")
        groups[group][name] = value
    made = {group: type(each)(**groups[group]) for group, each in settings.groups.items()}
    return replace(
        settings,
        model=made["model"],
        text=cast(TextSettings, made["text"]),
        data=cast(DataSettings, made["data"]),
        train=cast(TrainSettings, made["train"]),
    )


def _check_steps(family: Family, sources: Iterable[Mapping[str, Any]]) -> None:
    """A count model has no steps: say so where somebody sets them."""
    if is_neural(family):
        return
    own = {f"train.{name}" for name in NeuralTrainSettings.model_fields} - {
        f"train.{name}" for name in TrainSettings.model_fields
    }
    for key in (key for source in sources for key in source if key in own):
        raise ConfigError(
            f"'{key}' is not a setting of the model '{family.name}', which learns in one pass over the text; "
            "leave it out, or choose a neural model, as in --model lstm"
        )


def _tokenizer_name(name: str, default: str) -> str:
    """A catalog name, or the file of a tokenizer that was saved before."""
    if name == "auto":
        return default
    if name in catalog.names("tokenizer"):
        return name
    if os.path.isdir(name) and os.path.isfile(os.path.join(name, "tokenizer.json")):
        return os.path.join(name, "tokenizer.json")
    if os.path.isfile(name):
        return name
    raise ConfigError(
        catalog.unknown(f"'{name}' is neither a tokenizer nor a file", name, catalog.names("tokenizer"))
    )
