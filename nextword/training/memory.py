"""Whether a model of these sizes fits into memory, decided before anything is built.

The figure is a lower bound: weights, gradients, what the optimizer remembers, the best weights, and one
number per feature, layer and position of a batch. Whatever is refused here could not have been trained.
"""

from __future__ import annotations

from nextword.core.display import show_size
from nextword.core.errors import ConfigError
from nextword.core.family import Countable
from nextword.models.training import NeuralTrainSettings
from nextword.runs.settings import RunSettings
from nextword.system.machine import read_machine

FEWEST = 256  # tokens of a vocabulary that is not known yet
_NUMBER = 4  # bytes
_COPIES = 3  # weights, gradients, the best weights
_REMEMBERED = {"adamw": 2, "muon": 1}  # numbers that an optimizer keeps for each weight, at least
_SAFE = 0.05  # of the memory: a model that surely needs less is not counted, which takes a moment
_SIZES = (
    "model.layers", "model.hidden", "model.embedding", "model.inner", "model.heads", "model.head_size",
    "model.kv_heads", "model.context", "train.batch", "train.length", "text.size",
)  # fmt: skip


def check_memory(settings: RunSettings, vocab_size: int = FEWEST, tokens: int = 0) -> None:
    """Raise a ConfigError if a model of these sizes cannot fit into memory; ``tokens``: of the text."""
    family, train = settings.find_family(), settings.train
    if not isinstance(family, Countable) or not isinstance(train, NeuralTrainSettings):
        return
    machine = read_machine()
    there = min((each for each in (machine.memory, machine.limit) if each is not None), default=None)
    if there is None:
        return
    copies = _COPIES + _REMEMBERED.get(train.optimizer, 0) + (train.ema > 0)
    batch = _NUMBER * _activations(settings, train, tokens)
    if _NUMBER * copies * _at_most(settings, vocab_size) + batch < _SAFE * there:
        return
    count = family.count_parameters(settings.model, vocab_size)
    need = _NUMBER * copies * count + batch
    if need > there:
        given = [f"'{key}' is {_value(settings, key):,}" for key in _SIZES if key in settings.named]
        sizes = f" ({', '.join(given)})" if given else ""
        raise ConfigError(
            f"training this model takes at least {show_size(need)} of memory, and this machine has "
            f"{show_size(there)}: it has {count:,.0f} parameters{sizes}; set smaller sizes"
        )


def _activations(settings: RunSettings, train: NeuralTrainSettings, tokens: int) -> float:
    """Return the features that a batch keeps for the backward pass, at least; 0 where the text is unknown."""
    sizes = dict(settings.model)
    positions = train.batch * (train.length or 1)
    return float(min(positions, tokens)) * sizes.get("layers", 1) * sizes.get("hidden", 1)


def _at_most(settings: RunSettings, vocab_size: int) -> float:
    """Return more parameters than the model can have, without building anything."""
    sizes = dict(settings.model)
    layers, context = sizes.get("layers", 1), sizes.get("context", 0)
    widths = [float(sizes.get(name) or 1) for name in ("hidden", "embedding", "inner")]
    widths.append(float(sizes.get("heads") or 1) * (sizes.get("head_size") or 1))
    widest = 4 * max(widths) * (context if "layers" not in sizes else 1)
    return float(4 * layers * widest**2 + (vocab_size + context) * 4 * widest)


def _value(settings: RunSettings, key: str) -> int:
    group, _, name = key.partition(".")
    return int(dict(settings.groups[group])[name])
