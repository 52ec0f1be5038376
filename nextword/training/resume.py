"""``--resume``: find the checkpoint, complete what is asked by what was asked then, refuse what differs."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from nextword.core.config import Typed
from nextword.core.errors import ConfigError, DamagedError
from nextword.core.events import Event, Note
from nextword.runs.settings import RunSettings, changed, from_toml
from nextword.store.checkpoints import Checkpoint, find_last
from nextword.store.manifest import MANIFEST
from nextword.store.reading import open_run
from nextword.store.writing import check_target, real_path
from nextword.system import processor
from nextword.text.settings import TextSettings
from nextword.training.budget.clock import Clock
from nextword.training.checkpointing import BEGUN, CONFIG, NUMBERS
from nextword.training.distributed.ranks import Ranks
from nextword.training.order import Order

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


def resumed_settings(checkpoint: Checkpoint, asked: RunSettings, run: str) -> RunSettings:
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


def find(out: str | os.PathLike[str] | None) -> Generator[Event, None, Checkpoint | None]:
    """The checkpoint to go on from; None: the run is finished, or has to start from the beginning."""
    if out is None:
        raise ConfigError("--resume goes on with a run, and none is named; give its folder with --out RUN")
    run = real_path(out)
    check_target(run, overwrite=True, resumes=True)  # somebody else may be training here
    found = find_last(run)
    for message in found.damaged:
        yield Note(message)
    if found.checkpoint is None and not os.path.isfile(run / MANIFEST):
        lost = "no whole checkpoint is left in" if found.damaged else "there is no checkpoint yet in"
        yield Note(f"{lost} {os.fspath(out)}, so the training starts from the beginning")
    elif found.checkpoint is not None and found.damaged:
        yield Note(f"what was learnt after step {found.checkpoint.step:,} is lost and will be learnt again")
    return found.checkpoint


def find_together(
    out: str | os.PathLike[str] | None, ranks: Ranks
) -> Generator[Event, None, Checkpoint | None]:
    """`find` by rank 0, which alone puts things in order; the others take what it has found."""
    found = (yield from find(out)) if ranks.is_first else None
    place = ranks.broadcast(None if found is None else [os.fspath(found.path), found.step, found.training])
    if ranks.is_first or place is None:
        return found
    path, step, training = place
    return Checkpoint(open_run(path), step, training)


def completed(order: Order, checkpoint: Checkpoint) -> Order:
    """What is not said now is as it was said when the training was begun."""
    then = dict(read_asked(checkpoint)["order"])
    sets = unpack_sets(then.pop("sets")) | order.given_sets()
    then["data"] = tuple(then["data"])
    if order.model is not None or order.recipe is not None:
        then["model"], then["recipe"] = order.model, order.recipe
    unsaid = {
        each.name: then[each.name]
        for each in fields(order)
        if each.name in then and getattr(order, each.name) == each.default
    }
    return replace(order, **unsaid, sets=sets)


def asked(order: Order, settings: RunSettings, checkpoint: Checkpoint | None) -> dict[str, Any]:
    """What a checkpoint says of the order: itself, its settings, and the minutes of the first sitting."""
    packed = asdict(replace(order, sets=())) | {"sets": pack_sets(order.given_sets())}
    first = order.minutes if checkpoint is None else read_asked(checkpoint)["minutes"]
    return {"order": packed, "settings": flat(settings), "minutes": first}


def clock_of(order: Order, checkpoint: Checkpoint | None, began: float | None) -> Clock:
    """The clock of the command; what earlier sittings used counts."""
    clock = Clock.minutes(order.minutes, began)
    clock.began -= 0.0 if checkpoint is None else seconds_used(checkpoint)
    return clock
