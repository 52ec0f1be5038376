"""Small trainings that are killed, disturbed and taken up again, and what must be the same afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from event_streams import notes_of, until_done
from small_texts import TWO_DOCUMENTS

from nextword.api.train import Order, run
from nextword.core import catalog
from nextword.core.errors import NextwordError
from nextword.core.events import Event

TEXT = TWO_DOCUMENTS * 15
SMALL = {
    "model.hidden": 16, "train.steps": 14, "train.batch": 4, "train.length": 8, "train.threads": 1,
    "train.valid_every": 3, "train.log_every": 1,
}  # fmt: skip
TIME = ("seconds", "tokens_per_second")


def order(text: Path, model: str = "rnn", **sets: Any) -> Order:
    """What is asked for: a small model of any family, with dropout where it knows that."""
    own = {"model.context": 8, "model.heads": 2, "model.layers": 1, "model.dropout": 0.2}
    known = {f"model.{name}" for name in catalog.find("model", model).Settings.model_fields}
    chosen = {key: value for key, value in own.items() if key in known}  # a family has some of them
    return Order((str(text),), model=model, tokenizer="words", sets=SMALL | chosen | sets, seed=3)


def has_checkpoint(out: Path, step: int) -> bool:
    """Whether the newest checkpoint is that of a step."""
    pointer = out / "checkpoint" / "LAST"
    return pointer.exists() and pointer.read_text().startswith(f"ckpt-{step:06d}")


def killed_after(step: int, asked: Order, out: Path, **how: Any) -> None:
    """Let it die, as a process would, once the checkpoint of a step is there."""
    events = run(asked, out, **how)
    for _ in events:
        if has_checkpoint(out, step):
            break
    else:
        raise AssertionError(f"there was no checkpoint of step {step}")
    events.close()


def finished(asked: Order, out: Path | None, **how: Any) -> tuple[Any, list[str]]:
    """The run, and what was said."""
    made, events = until_done(run(asked, out, **how))
    return made, notes_of(events)


def files(out: Path) -> list[Any]:
    """Weights, tokenizer and all rows of a run but their time fields."""
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().split("\n") if line]
    rows = [{key: value for key, value in row.items() if key not in TIME} for row in rows]
    same = [(out / name).read_bytes() for name in ("model.safetensors", "tokenizer.json")]
    return [*same, rows]


def disturbed(
    asked: Order, out: Path, fault: Callable[[], Any], after: int = 4
) -> tuple[list[Event], NextwordError | None]:
    """Let a fault happen once the checkpoint of a step is there; all events, and the error it ends with."""
    events: list[Event] = []
    happened, error = False, None
    try:
        for event in run(asked, out):
            events.append(event)
            if not happened and has_checkpoint(out, after):
                happened = True
                fault()
    except NextwordError as raised:
        error = raised
    assert happened
    return events, error
