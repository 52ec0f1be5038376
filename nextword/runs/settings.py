"""All settings of a training run, checked before anything is read.

The tree is ``model`` (the family's own), ``text``, ``data`` and ``train``; `core.config` reads and writes it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from nextword.core import catalog, config
from nextword.core.errors import ConfigError
from nextword.core.family import Family, NetworkFamily
from nextword.core.settings import Settings, TrainSettings
from nextword.core.suggestions import unknown
from nextword.core.task import Task
from nextword.models import presets
from nextword.models.training import NeuralTrainSettings
from nextword.text.settings import TextSettings

_HEAD = ("family", "name", "task")


@dataclass(frozen=True)
class RunSettings:
    """Everything that decides what a run is."""

    name: str  # as given with --model: a family or a preset
    family: str
    groups: Mapping[str, Settings]  # the tree, by the names used after ``--set``
    # Settings that the user or a preset gave; with --minutes, the others are chosen.
    named: frozenset[str] = field(default=frozenset(), compare=False)
    task: str = "lm"

    @property
    def model(self) -> Settings:
        """Return the family's own settings."""
        return self.groups["model"]

    @property
    def train(self) -> TrainSettings:
        """Return the training settings."""
        return cast(TrainSettings, self.groups["train"])

    @property
    def data(self) -> Any:
        """Return how examples are read: `DataSettings`, or what the task has in its place."""
        return self.groups["data"]

    @property
    def text(self) -> Any:
        """Return how text is split into tokens: `TextSettings`, or what the task has in its place."""
        return self.groups["text"]

    def find_family(self) -> Family:
        """Return the family's object from the catalog."""
        return family_of(self.task, self.family)

    def find_task(self) -> Task:
        """Return the task's object from the catalog."""
        return task_of(self.task)

    def with_group(self, name: str, group: Settings) -> RunSettings:
        """Return the same settings with another group."""
        return replace(self, groups={**self.groups, name: group})

    def with_tokenizer(self, name: str) -> RunSettings:
        """Return the same settings with the name of the tokenizer that was loaded or trained."""
        return self.with_group("text", self.text.model_copy(update={"tokenizer": name}))

    def to_toml(self) -> str:
        """Return ``config.toml``: complete, with a comment on every line."""
        about = {"family": self.family, "name": self.name, "task": self.task}
        return config.to_toml(dict(self.groups), about)


def plan(
    model: str = "ngram",
    *,
    recipe: str | os.PathLike[str] | None = None,
    tokenizer: str | None = None,
    seed: int | None = None,
    sets: Mapping[str, Any] | Iterable[str] = (),
    task: str | None = None,
    base: Callable[[str], Mapping[str, Any]] | None = None,
) -> RunSettings:
    """Return all settings of a run; those of a recipe (TOML) override defaults, ``sets`` override both.

    ``sets`` are values by dotted names, or assignments as they are typed after ``--set``.
    ``base`` returns, for a family's name, settings that both override: those of the ``--from`` run.
    """
    tree = dict(config.read_toml(recipe)) if recipe is not None else {}
    task = task or tree.get("task")
    preset = _preset(_named_model(tree, model), "model" if task is None else task_of(task).families)
    given: dict[str, Any] = {} if tokenizer is None else {"text.tokenizer": tokenizer}
    given |= {} if seed is None else {"train.seed": seed}
    below = {} if base is None else base(preset.family)
    family = _named_family(preset, task)
    idle = task_of(family.task).idle(family)
    built = _build(preset, family, below, config.flatten(tree), given | config.parse_sets(sets))
    _check_idle(built, preset, idle)
    return built


def from_toml(text: str, name: str) -> RunSettings:
    """Read the settings of a run; ``name`` is the file, for error messages."""
    tree = config.parse_toml(text, name)
    family = tree.get("family")
    if not isinstance(family, str):
        raise ConfigError(f"{name} does not name its family; the run is damaged, train it again")
    shown = str(tree.get("name", family))
    preset = presets.Preset(shown, family, "")
    given = config.flatten({key: value for key, value in tree.items() if key not in _HEAD})
    task = str(tree.get("task", "lm"))
    return _build(preset, _named_family(preset, task), _earlier(task, family), given)


def _earlier(task: str, family: str) -> dict[str, Any]:
    """Return the values of settings that a run of this family may have been saved without."""
    groups = groups_of(family_of(task, family))
    return {
        f"{group}.{name}": value for group, kind in groups.items() for name, value in kind.earlier.items()
    }


def task_of(name: str) -> Task:
    """Return a task's object from the catalog."""
    return cast(Task, catalog.find("task", name))


def family_of(task: str, name: str) -> Family:
    """Return a family's object from the catalog, in the slot that its task names."""
    return cast(Family, catalog.find(task_of(task).families, name))


def groups_of(family: Family) -> dict[str, type[Settings]]:
    """Return the settings tree of a family."""
    return task_of(family.task).groups(family)


def _named_model(tree: dict[str, Any], model: str) -> str:
    """Return the model that a recipe names; remove its top-level keys from the tree."""
    named = [tree.pop(key, None) for key in ("name", "family")]
    tree.pop("task", None)
    found = next((each for each in named if each is not None), model)
    if not isinstance(found, str):
        raise ConfigError(f"'family' is {found!r}; it must be the name of a model, such as \"ngram\"")
    return found


def _preset(name: str, slot: str) -> presets.Preset:
    """Return what a name of ``--model`` stands for: a family with its own defaults, or a preset."""
    family = catalog.spelled(slot, name)
    return presets.find(name, slot) if family is None else presets.Preset(family, family, "")


def _named_family(preset: presets.Preset, task: str | None) -> Family:
    """Return the family of a preset, which must be one of the task if that is named."""
    slot = "model" if task is None else task_of(task).families
    family = cast(Family, catalog.find(slot, preset.family))
    if task is not None and catalog.spelled("task", task) != family.task:
        raise ConfigError(
            f"'{preset.family}' is a model for the task '{family.task}', but the task is '{task}'; "
            f"choose another model, or --task {family.task}"
        )
    return family


def _build(preset: presets.Preset, family: Family, *sources: Mapping[str, Any]) -> RunSettings:
    """Combine a family's defaults, the preset's, then the sources; later ones override earlier ones."""
    _check_steps(family, sources)
    _check_tokenizer(family, sources)
    built = config.build(groups_of(family), family.defaults, preset.settings, *sources)
    if isinstance(text := built.get("text"), TextSettings):
        name = _tokenizer_name(text.tokenizer, family.default_tokenizer)
        built["text"] = text.model_copy(update={"tokenizer": name})
    return RunSettings(
        name=preset.name,
        family=preset.family,
        groups=built,
        named=frozenset(key for source in (preset.settings, *sources) for key in source),
        task=family.task,
    )


def changed(settings: RunSettings, values: Mapping[str, Any]) -> RunSettings:
    """Return the settings with other values (dotted keys), checked again as a whole."""
    groups = {group: dict(each) for group, each in settings.groups.items()}
    for key, value in values.items():
        group, _, name = key.partition(".")
        name, _, within = name.partition(".")
        groups[group][name] = {**dict(groups[group][name]), within: value} if within else value
    made = {group: type(each)(**groups[group]) for group, each in settings.groups.items()}
    return replace(settings, groups=made)


def with_open(settings: RunSettings, values: Mapping[str, Any]) -> RunSettings:
    """Return the settings with these values, for settings that exist and that the user did not give."""
    known = {key: value for key, value in values.items() if key not in settings.named and _has(settings, key)}
    return changed(settings, known) if known else settings


def _has(settings: RunSettings, key: str) -> bool:
    group, _, name = key.partition(".")
    return group in settings.groups and name in type(settings.groups[group]).model_fields


def _check_steps(family: Family, sources: Iterable[Mapping[str, Any]]) -> None:
    """Refuse settings of training steps for a count model, which has none."""
    if isinstance(family, NetworkFamily):
        return
    own = {f"train.{name}" for name in NeuralTrainSettings.model_fields} - {
        f"train.{name}" for name in TrainSettings.model_fields
    }
    for key in (key for source in sources for key in source if key in own):
        raise ConfigError(
            f"'{key}' is not a setting of the model '{family.name}', which learns in one pass over the text; "
            "leave it out, or choose a neural model, as in --model lstm"
        )


def _check_tokenizer(family: Family, sources: Iterable[Mapping[str, Any]]) -> None:
    """Refuse a tokenizer for a task that has none."""
    has_one = "tokenizer" in groups_of(family)["text"].model_fields
    if not has_one and any("text.tokenizer" in source for source in sources):
        raise ConfigError(
            f"--tokenizer is for language models, and the task is '{family.task}', whose models read words; "
            "leave it out"
        )


def _check_idle(settings: RunSettings, preset: presets.Preset, idle: Iterable[str]) -> None:
    """Refuse settings that change nothing for the model; their defaults, as in a recipe, may stand."""
    named = [key for key in idle if key in settings.named]
    if not named:
        return
    family = settings.find_family()
    default = config.build(groups_of(family), family.defaults, preset.settings)
    for key in named:
        group, _, name = key.partition(".")
        if dict(settings.groups[group])[name] != dict(default[group])[name]:
            raise ConfigError(
                f"'{key}' has no effect on the model '{settings.name}' of the task '{settings.task}'; "
                "leave it out"
            )


def _tokenizer_name(name: str, default: str) -> str:
    """Return a catalog name, or the file of a saved tokenizer."""
    if name.lower() == "auto":
        return default
    if (spelled := catalog.spelled("tokenizer", name)) is not None:
        return spelled
    if os.path.isdir(name) and os.path.isfile(os.path.join(name, "tokenizer.json")):
        return os.path.join(name, "tokenizer.json")
    if os.path.isfile(name):
        return name
    raise ConfigError(unknown("tokenizer", name, catalog.names("tokenizer"), "(no such file either)"))
