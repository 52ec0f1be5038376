"""What is compared: every run of every model, with all its settings checked.

[IITD-2 "LSTM vs GRU"]: only models on the same data, budget and scale, with several seeds, can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nextword.core import catalog, config
from nextword.core.errors import ConfigError
from nextword.core.family import CompositeFamily, NetworkFamily
from nextword.core.suggestions import unknown
from nextword.models import presets
from nextword.runs.settings import RunSettings, family_of, groups_of, plan
from nextword.runs.settings import task_of as find_task

# What is compared by default: every smoothing, the default last; with minutes the families.
SMOOTHINGS = (
    "ngram-mle", "ngram-add", "ngram-laplace", "ngram-backoff", "ngram-katz", "ngram-stupid",
    "ngram-witten-bell", "ngram-absolute", "ngram-kneser-ney", "ngram", "ngram-good-turing",
)  # fmt: skip
FAMILIES = ("ngram", "window", "rnn", "lstm", "gru", "transformer", "mixture")
MIXTURE = "mixture"
LANGUAGE = "lm"  # the task whose models are compared in more detail


@dataclass(frozen=True)
class Entry:
    """One run: a model, a tokenizer, a seed."""

    settings: RunSettings
    model: str  # as the user named it
    name: str  # as it is shown: with its tokenizer, where there are several
    number: int  # of its seed, from 0
    is_neural: bool  # it is trained for the minutes given
    is_mixture: bool = False  # it is made of the other entries

    @property
    def label(self) -> str:
        """The name of its folder and of its row."""
        safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in self.name)
        return safe if self.number == 0 else f"{safe}-seed{self.number}"

    @property
    def seed(self) -> int | None:
        """The seed of a model that is trained at random."""
        return self.settings.train.seed if self.is_neural else None

    @property
    def tokenizer(self) -> str:
        """The tokenizer as the user named it."""
        return str(self.settings.text.tokenizer)

    @property
    def chooses(self) -> bool:
        """Whether it needs a text for its choices: when to stop, which weights."""
        return self.is_neural or self.is_mixture


@dataclass(frozen=True)
class _Asked:
    """A model that the user named."""

    name: str
    model: str  # what the name means
    sets: Mapping[str, Any]
    task: str = LANGUAGE

    @property
    def family(self) -> Any:
        return family_of(self.task, presets.find(self.model, find_task(self.task).families).family)

    @property
    def is_mixture(self) -> bool:
        """A mixture by name joins the others; one that `auto` chose is trained like a network."""
        return self.name == MIXTURE

    @property
    def is_neural(self) -> bool:
        is_composite = isinstance(self.family, CompositeFamily) and not self.is_mixture
        return is_composite or isinstance(self.family, NetworkFamily)

    @property
    def keys(self) -> list[str]:
        return config.keys(groups_of(self.family))


def entries(
    models: Sequence[str],
    tokenizers: Sequence[str],
    seeds: int,
    sets: Mapping[str, Any],
    minutes: float | None,
    task: str = LANGUAGE,
) -> tuple[Entry, ...]:
    """Return every run in the order in which it is made: mixtures last, since they are made of the others."""
    if seeds < 1:
        raise ConfigError(f"'seeds' is {seeds}; it must be 1 or more")
    asked = sorted(_asked(models, sets, minutes, task), key=lambda each: each.is_mixture)
    _check_sets(asked, sets)
    draws = any(each.is_neural for each in asked)
    cuts: list[str | None] = [*tokenizers] or [_tokenizer(asked) if task == LANGUAGE else None]
    found = []
    for tokenizer in cuts:
        for each in asked:
            # `model.order` is for n-grams, `model.layers` for networks
            known = {key: value for key, value in sets.items() if key in each.keys}
            settings = plan(each.model, tokenizer=tokenizer, sets={**each.sets, **known}, task=task)
            shown = f"{each.name} {_short(settings.text.tokenizer)}" if len(tokenizers) > 1 else each.name
            found += [
                Entry(_seeded(settings, number), each.name, shown, number, each.is_neural, each.is_mixture)
                for number in range(seeds if each.is_neural or (each.is_mixture and draws) else 1)
            ]
    _check_mixture(found)
    return tuple(found)


def task_of(models: Sequence[str]) -> str:
    """Return the task of the first model that is named; language modelling where none is."""
    first = next((name.strip() for name in models if name.strip() and name.strip() != "auto"), None)
    return LANGUAGE if first is None else str(catalog.find("model", presets.find(first).family).task)


def _asked(models: Sequence[str], sets: Mapping[str, Any], minutes: float | None, task: str) -> list[_Asked]:
    """Return the models that were named, each once; `auto` is resolved to its choice."""
    named = [name.strip() for name in models if name.strip()]
    named = named or _defaults(task, minutes)
    found: dict[str, _Asked] = {}
    for name in named:
        if name == "auto":
            choice = find_task(task).choose(sets, minutes)
            name = "auto" if choice.model == MIXTURE else choice.model
            found.setdefault(name, _Asked(name, choice.model, choice.sets, task))
        else:
            found.setdefault(name, _Asked(name, name, {}, task))
    return list(found.values())


def _defaults(task: str, minutes: float | None) -> list[str]:
    """Return what is compared where no model is named."""
    if task == LANGUAGE:
        return list(SMOOTHINGS if minutes is None else FAMILIES)
    known = find_task(task)
    return list(known.compared(minutes)) or [
        name
        for name in catalog.names(known.families)
        if catalog.find(known.families, name).task == known.name
    ]


def _check_sets(asked: Sequence[_Asked], sets: Mapping[str, Any]) -> None:
    """Refuse a setting that no model has."""
    allowed = dict.fromkeys(key for each in asked for key in each.keys)
    for key in sets:
        if key not in allowed:
            near = [each for each in allowed if each.partition(".")[0] == key.partition(".")[0]]
            raise ConfigError(unknown("setting", key, near or allowed, "(none of the models has it)"))


def _tokenizer(asked: Sequence[_Asked]) -> str | None:
    """Choose one for all, so that perplexities can be compared and models mixed; None: each its own."""
    networks = [each for each in asked if each.is_neural]
    mixed = asked if any(each.is_mixture for each in asked) else []
    first = next(iter([*networks, *mixed]), None)
    return None if first is None else str(first.family.default_tokenizer)


def _short(tokenizer: str) -> str:
    """Return a tokenizer's name, or the last two parts of a file's."""
    return "/".join(tokenizer.split("/")[-2:])


def _seeded(settings: RunSettings, number: int) -> RunSettings:
    train = settings.train.model_copy(update={"seed": settings.train.seed + number})
    return settings.with_group("train", train)


def _check_mixture(found: Sequence[Entry]) -> None:
    others = {entry.model for entry in found if not entry.is_mixture}
    if len(others) < 2 and any(entry.is_mixture for entry in found):
        raise ConfigError(
            "'mixture' combines two of the other models; name at least two, as in ngram,lstm,mixture"
        )
