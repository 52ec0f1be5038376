"""Who is compared: every run of every model, with all its settings checked.

[IITD-2 "LSTM vs GRU"]: only models on the same data, budget and scale, with several seeds, can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nextword.core import catalog, config
from nextword.core.errors import ConfigError
from nextword.models import presets
from nextword.train.auto import choose
from nextword.train.settings import RunSettings, groups_of, is_neural, plan

# What is compared where nothing is named: every smoothing, the default last; with minutes the families.
SMOOTHINGS = (
    "ngram-mle", "ngram-add", "ngram-laplace", "ngram-backoff", "ngram-katz", "ngram-stupid",
    "ngram-witten-bell", "ngram-absolute", "ngram-kneser-ney", "ngram", "ngram-good-turing",
)  # fmt: skip
FAMILIES = ("ngram", "window", "rnn", "lstm", "gru", "transformer", "mixture")
MIXTURE = "mixture"


@dataclass(frozen=True)
class Entry:
    """One run: a model, a tokenizer, a seed."""

    settings: RunSettings
    model: str  # as it was asked for
    name: str  # as it is shown: with its tokenizer, where there are several
    number: int  # of its seed, from 0
    is_neural: bool

    @property
    def label(self) -> str:
        """The name of its folder and of its row."""
        safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in self.name)
        return safe if self.number == 0 else f"{safe}-seed{self.number}"

    @property
    def tokenizer(self) -> str:
        """As it was asked for."""
        return self.settings.text.tokenizer

    @property
    def is_mixture(self) -> bool:
        """Whether it is made of the other entries."""
        return self.settings.family == MIXTURE

    @property
    def chooses(self) -> bool:
        """Whether it needs a text for its choices: when to stop, which weights."""
        return self.is_neural or self.is_mixture


def entries(
    models: Sequence[str],
    tokenizers: Sequence[str],
    seeds: int,
    sets: Mapping[str, Any],
    timed: bool,
) -> tuple[Entry, ...]:
    """Every run in the order in which it is made: mixtures last, since they are made of the others."""
    if seeds < 1:
        raise ConfigError(f"'seeds' is {seeds}; it must be 1 or more")
    names = _names(models, sets, timed)
    known = {name: _known(name, sets) for name in names}
    _check_sets(names, sets)
    neural = {name: is_neural(_family(name)) for name in names}
    mixes = any(_family(name).name == MIXTURE for name in names)
    found = []
    cuts: list[str | None] = [*tokenizers] or [_tokenizer(names, neural, mixes)]
    for tokenizer in cuts:
        for name in sorted(names, key=lambda name: _family(name).name == MIXTURE):
            settings = plan(name, tokenizer=tokenizer, sets=known[name])
            shown = f"{name} {_short(settings.text.tokenizer)}" if len(tokenizers) > 1 else name
            draws = neural[name] or (settings.family == MIXTURE and any(neural.values()))
            found += [
                Entry(_seeded(settings, number), name, shown, number, neural[name])
                for number in range(seeds if draws else 1)
            ]
    _check_mixture(found)
    return tuple(found)


def _names(models: Sequence[str], sets: Mapping[str, Any], timed: bool) -> list[str]:
    """The models that were named, each once; `auto` is the one it chooses."""
    named = (name.strip() for name in models if name.strip())
    chosen = (choose(sets).model if name == "auto" else name for name in named)
    return list(dict.fromkeys(chosen)) or list(FAMILIES if timed else SMOOTHINGS)


def _family(name: str) -> Any:
    return catalog.find("model", presets.find(name).family)


def _known(name: str, sets: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that this model has: `model.order` is for n-grams, `model.layers` for networks."""
    allowed = _keys(name)
    return {key: value for key, value in sets.items() if key in allowed}


def _check_sets(names: Sequence[str], sets: Mapping[str, Any]) -> None:
    """A setting that no model has is a mistake."""
    allowed = dict.fromkeys(key for name in names for key in _keys(name))
    for key in sets:
        if key not in allowed:
            near = [each for each in allowed if each.partition(".")[0] == key.partition(".")[0]]
            told = f"'{key}' is a setting of none of the models"
            raise ConfigError(catalog.unknown(told, key, near or allowed))


def _keys(name: str) -> list[str]:
    return config.keys(groups_of(_family(name)))


def _tokenizer(names: Sequence[str], neural: Mapping[str, bool], mixes: bool) -> str | None:
    """One for all, so that their perplexities compare and they can be mixed; None: each model's own."""
    first = next((name for name in names if neural[name]), None)
    if first is None:
        first = next((name for name in names if _family(name).name != MIXTURE), None) if mixes else None
    return None if first is None else str(_family(first).default_tokenizer)


def _short(tokenizer: str) -> str:
    """A tokenizer's name, or the last two parts of a file's."""
    return "/".join(tokenizer.split("/")[-2:])


def _seeded(settings: RunSettings, number: int) -> RunSettings:
    return replace(settings, train=settings.train.model_copy(update={"seed": settings.train.seed + number}))


def _check_mixture(found: Sequence[Entry]) -> None:
    others = {entry.model for entry in found if not entry.is_mixture}
    if len(others) < 2 and any(entry.is_mixture for entry in found):
        raise ConfigError("'mixture' joins two of the others; name two at least, as in ngram,lstm,mixture")
