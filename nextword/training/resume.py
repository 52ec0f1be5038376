"""``--resume``: what a training was begun with, what may be changed, and what is refused, told one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nextword.core.config import Typed
from nextword.core.errors import ConfigError, DamagedError
from nextword.runs.settings import RunSettings, changed, from_toml
from nextword.store.checkpoints import Checkpoint
from nextword.system import processor
from nextword.text.settings import TextSettings
from nextword.training.checkpointing import BEGUN, CONFIG, NUMBERS

# What may be changed on the way: how long, how often something is written, and who does it together.
SAFE = (
    "train.steps",
    "train.epochs",
    "train.log_every",
    "train.save_every",
    "train.on_nan",
    "train.parallel",
    "train.timeout",
)
_SHOWN = 6  # differences that are told


def flat(settings: RunSettings) -> dict[str, Any]:
    """All settings by their names, as JSON has them."""
    found: dict[str, Any] = {"family": settings.family, "name": settings.name, "task": settings.task}
    for group, each in settings.groups.items():
        found |= {f"{group}.{name}": value for name, value in each.model_dump(mode="json").items()}
    return found


def pack_sets(sets: Mapping[str, Any]) -> list[list[Any]]:
    """Settings that were named, as JSON: name, value, and whether it was typed."""
    return [
        [key, str(value) if isinstance(value, Typed) else value, isinstance(value, Typed)]
        for key, value in sets.items()
    ]


def unpack_sets(packed: list[list[Any]]) -> dict[str, Any]:
    """The way back."""
    return {str(key): Typed(value) if is_typed else value for key, value, is_typed in packed}


def read_asked(checkpoint: Checkpoint) -> dict[str, Any]:
    """The order and the settings of the training."""
    asked = checkpoint.folder.read_json(BEGUN).get("asked")
    if not isinstance(asked, dict) or not {"order", "settings", "minutes"} <= set(asked):
        raise DamagedError(f"{checkpoint.path / BEGUN} does not say what was asked; begin with --overwrite")
    return asked


def seconds_used(checkpoint: Checkpoint) -> float:
    """Seconds that the training had used until this checkpoint."""
    return float(checkpoint.folder.read_json(NUMBERS)["used"])


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What was set then and now, where that differs; settings that one of them does not know are left out."""
    return {key: (then[key], now[key]) for key in then if key in now and then[key] != now[key]}


def go_on(checkpoint: Checkpoint, asked: RunSettings, run: str) -> RunSettings:
    """The settings to go on with: those of the plan, with what may be changed as it is asked for now."""
    found = differences(read_asked(checkpoint)["settings"], flat(asked))
    safe = (*SAFE, *_check_products(checkpoint, asked, run))
    refused = [f"{key} was {was} and is {now}" for key, (was, now) in found.items() if key not in safe]
    if refused:
        more = f" and {len(refused) - _SHOWN} more" if len(refused) > _SHOWN else ""
        raise ConfigError(
            f"'{run}' was begun with other settings: {'; '.join(refused[:_SHOWN])}{more}; give those it was "
            "begun with, or --overwrite to begin anew"
        )
    steps = getattr(asked.train, "steps", 0)
    if "train.steps" in found and 0 < steps < checkpoint.step:
        raise ConfigError(f"'train.steps' is {steps:,}, but '{run}' has made {checkpoint.step:,}; set more")
    planned = changed(_planned(checkpoint), {key: now for key, (_, now) in found.items() if key in safe})
    planned = replace(planned, name=asked.name)
    return planned.with_tokenizer(asked.text.tokenizer) if isinstance(asked.text, TextSettings) else planned


def _planned(checkpoint: Checkpoint) -> RunSettings:
    """The settings that the training was begun with, with what was chosen for it."""
    place = checkpoint.path / CONFIG
    try:
        return from_toml(checkpoint.folder.read_text(CONFIG), str(place))
    except ConfigError as error:
        raise DamagedError(f"{place}: {error}") from error


def _check_products(checkpoint: Checkpoint, asked: RunSettings, run: str) -> tuple[str, ...]:
    """The type of products may be changed only where that of the beginning cannot be used, and on request."""
    begun = checkpoint.folder.read_json(BEGUN)
    if begun.get("device") != "cpu" or begun.get("precision") != "bf16" or begun.get("bf16") == "missing":
        return ()
    if not (why := processor.find_out().refusal):
        return ()
    if flat(asked).get("train.precision") != "fp32":
        raise ConfigError(
            f"'{run}' was begun with bf16 products, which cannot be used here ({why}); to go on with "
            "float32, and with other digits from there on, add --set train.precision=fp32"
        )
    return ("train.precision",)
