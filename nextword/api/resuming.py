"""``--resume``: find where a training stands, and complete what is asked now by what was asked then."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any

from nextword.core import config
from nextword.core.errors import ConfigError
from nextword.core.events import Event, Note
from nextword.runs.settings import RunSettings
from nextword.store.checkpoints import Checkpoint, find_last
from nextword.store.manifest import MANIFEST
from nextword.store.reading import open_run
from nextword.store.writing import check_target, real_path
from nextword.training.budget.clock import Clock
from nextword.training.distributed.ranks import Ranks
from nextword.training.resume import flat, pack_sets, read_asked, seconds_used, unpack_sets

if TYPE_CHECKING:
    from nextword.api.train import Order


def find(out: str | os.PathLike[str] | None) -> Generator[Event, None, Checkpoint | None]:
    """The checkpoint to go on from; None: the run is finished, or has to start from the beginning."""
    if out is None:
        raise ConfigError("--resume goes on with a run, and none is named; give its folder with --out RUN")
    run = real_path(out)
    check_target(run, overwrite=True, goes_on=True)  # somebody else may be training here
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
    place = ranks.told(None if found is None else [os.fspath(found.path), found.step, found.training])
    if ranks.is_first or place is None:
        return found
    path, step, training = place
    return Checkpoint(open_run(path), step, training)


def completed(order: Order, checkpoint: Checkpoint) -> Order:
    """What is not said now is as it was said when the training was begun."""
    then = dict(read_asked(checkpoint)["order"])
    sets = unpack_sets(then.pop("sets")) | _sets(order)
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
    packed = asdict(replace(order, sets=())) | {"sets": pack_sets(_sets(order))}
    first = order.minutes if checkpoint is None else read_asked(checkpoint)["minutes"]
    return {"order": packed, "settings": flat(settings), "minutes": first}


def clock_of(order: Order, checkpoint: Checkpoint | None, began: float | None) -> Clock:
    """The clock of the command; what earlier sittings used counts."""
    clock = Clock.minutes(order.minutes, began)
    clock.began -= 0.0 if checkpoint is None else seconds_used(checkpoint)
    return clock


def _sets(order: Order) -> dict[str, Any]:
    return dict(order.sets) if isinstance(order.sets, Mapping) else config.parse_sets(order.sets)
