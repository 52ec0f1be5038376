"""``--resume``: find the checkpoint, fill in the options of the first command, refuse changed settings."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from dataclasses import fields, replace
from typing import Any

from nextword.core.config import Stored
from nextword.core.errors import ConfigError, DamagedError
from nextword.core.events import Event, Note
from nextword.models.training import NeuralTrainSettings
from nextword.runs.settings import RunSettings, changed, from_toml
from nextword.store.checkpoints import Checkpoint, find_last
from nextword.store.manifest import MANIFEST
from nextword.store.reading import open_run
from nextword.store.writing import check_target, real_path
from nextword.system import processor
from nextword.text.settings import TextSettings
from nextword.training.checkpointing import BEGUN, CONFIG, NUMBERS
from nextword.training.order import Order, flatten
from nextword.training.ranks import Ranks

# Settings that may change on resume: how long to train, how often to write, how ranks work together.
CHANGEABLE = (
    "train.steps",
    "train.epochs",
    "train.log_every",
    "train.save_every",
    "train.on_nan",
    "train.parallel",
    "train.timeout",
)
_SHOWN = 6  # differences listed in an error


def unpack_sets(packed: list[list[Any]]) -> dict[str, Any]:
    """Undo what `training.order.pack` does with ``--set`` values."""
    return {str(key): Stored(value) if is_typed else value for key, value, is_typed in packed}


def read_order(checkpoint: Checkpoint) -> dict[str, Any]:
    """Read the order and the settings that a training run was started with."""
    asked = checkpoint.folder.read_json(BEGUN).get("asked")
    if not isinstance(asked, dict) or not {"order", "settings", "minutes"} <= set(asked):
        raise DamagedError(
            f"{checkpoint.path / BEGUN} does not record the original command; start over with --overwrite"
        )
    return asked


def first_minutes(checkpoint: Checkpoint) -> float | None:
    """Return the minutes of the first command, which decide how much of the text is read."""
    minutes: float | None = read_order(checkpoint)["minutes"]
    return minutes


def seconds_used(checkpoint: Checkpoint) -> float:
    """Return the seconds that training had used up to this checkpoint."""
    return float(checkpoint.folder.read_json(NUMBERS)["used"])


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the old and new value of each setting that differs; settings missing from either are ignored."""
    return {key: (then[key], now[key]) for key in then if key in now and then[key] != now[key]}


def _is_asked(key: str, requested: RunSettings) -> bool:
    """Tell whether a value was given, now or with the first command; any other is a default of this version.

    Family, name and task, which have no group, always are.
    """
    return "." not in key or any(f"{name}.".startswith(f"{key}.") for name in requested.named)


def resumed_settings(checkpoint: Checkpoint, requested: RunSettings, run: str) -> RunSettings:
    """Return the settings to resume with: those of the checkpoint, with the allowed changes asked for now.

    A default that has changed since the run was started changes nothing.
    """
    every = differences(read_order(checkpoint)["settings"], flatten(requested))
    found = {key: pair for key, pair in every.items() if _is_asked(key, requested)}
    safe = (*CHANGEABLE, *_check_precision(checkpoint, requested, run))
    refused = [f"{key} was {was} and is {now}" for key, (was, now) in found.items() if key not in safe]
    if refused:
        more = f" and {len(refused) - _SHOWN} more" if len(refused) > _SHOWN else ""
        raise ConfigError(
            f"'{run}' was started with different settings: {'; '.join(refused[:_SHOWN])}{more}; use the "
            "original settings, or start over with --overwrite"
        )
    steps = requested.train.steps if isinstance(requested.train, NeuralTrainSettings) else 0
    if "train.steps" in found and 0 < steps < checkpoint.step:
        raise ConfigError(
            f"'train.steps' is {steps:,}, but '{run}' has already made {checkpoint.step:,}; set more"
        )
    planned = changed(_read_plan(checkpoint), {key: now for key, (_, now) in found.items() if key in safe})
    planned = replace(planned, name=requested.name)
    return (
        planned.with_tokenizer(requested.text.tokenizer)
        if isinstance(requested.text, TextSettings)
        else planned
    )


def _read_plan(checkpoint: Checkpoint) -> RunSettings:
    """Read the settings of the checkpoint, including those that were chosen automatically."""
    place = checkpoint.path / CONFIG
    try:
        return from_toml(checkpoint.folder.read_text(CONFIG), str(place))
    except ConfigError as error:
        raise DamagedError(f"{place}: {error}") from error


def _check_precision(checkpoint: Checkpoint, requested: RunSettings, run: str) -> tuple[str, ...]:
    """Return ``train.precision`` if it may change: bf16 is not available here, and fp32 was asked for."""
    record = checkpoint.folder.read_json(BEGUN)
    if record.get("device") != "cpu" or record.get("precision") != "bf16" or record.get("bf16") == "missing":
        return ()
    if not (why := processor.find_out().refusal):
        return ()
    if flatten(requested).get("train.precision") != "fp32":
        raise ConfigError(
            f"'{run}' was trained in bf16, which cannot be used here ({why}); to resume in float32, with "
            "slightly different numbers from here on, add --set train.precision=fp32"
        )
    return ("train.precision",)


def find_checkpoint(out: str | os.PathLike[str] | None) -> Generator[Event, None, Checkpoint | None]:
    """Find the checkpoint to resume from; None: the run is finished, or has no checkpoint yet."""
    if out is None:
        raise ConfigError("--resume needs the run to resume; give its folder with --out RUN")
    run = real_path(out)
    check_target(run, overwrite=True, resumes=True)  # another process may be training here
    found = find_last(run)
    for message in found.damaged:
        yield Note(message)
    if found.checkpoint is None and not os.path.isfile(run / MANIFEST):
        lost = "no intact checkpoint is left in" if found.damaged else "there is no checkpoint yet in"
        yield Note(f"{lost} {os.fspath(out)}, so training starts from the beginning")
    elif found.checkpoint is not None and found.damaged:
        yield Note(f"the steps after step {found.checkpoint.step:,} are lost and will be repeated")
    return found.checkpoint


def find_checkpoint_together(
    out: str | os.PathLike[str] | None, ranks: Ranks
) -> Generator[Event, None, Checkpoint | None]:
    """Let rank 0 find the checkpoint and tidy the folder; the other ranks use what it found."""
    found = (yield from find_checkpoint(out)) if ranks.is_first else None
    place = ranks.broadcast(None if found is None else [os.fspath(found.path), found.step, found.training])
    if ranks.is_first or place is None:
        return found
    path, step, training = place
    return Checkpoint(open_run(path), step, training)


def complete_order(order: Order, checkpoint: Checkpoint) -> Order:
    """Fill in the options that are not given now with those of the first command."""
    then = dict(read_order(checkpoint)["order"])
    sets = unpack_sets(then.pop("sets")) | order.given_sets()
    then["data"] = tuple(then["data"])
    if order.model is not None or order.recipe is not None:
        then["model"], then["recipe"] = order.model, order.recipe
    missing = {
        each.name: then[each.name]
        for each in fields(order)
        if each.name in then and getattr(order, each.name) == each.default
    }
    return replace(order, **missing, sets=sets)
