"""NaN or infinite loss or gradient: find where it comes from, then stop or skip the batch.

The weights are never updated with it (`update`), so there is nothing to roll back: the batch is skipped, and
the recurrent state from before it is carried on.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor

from nextword.core.errors import TrainingError
from nextword.core.events import Event, Note
from nextword.core.task import Batch
from nextword.training.state import TrainingState
from nextword.training.update import Learned, Learner
from nextword.training.weights import local

_MOST = 10  # consecutive batches skipped: after that, the batch is not the cause


def skip(
    learner: Learner, learned: Learned, state: TrainingState, batches: Sequence[Batch], before: int
) -> Generator[Event, None, int]:
    """Skip a batch with a note, or raise, as ``train.on_nan`` says; ``state`` is that before the batch.

    ``before``: consecutive batches skipped before this one; returns the count including it.
    """
    is_loss = not math.isfinite(learned.loss)
    name, value = ("loss", learned.loss) if is_loss else ("gradient", learned.norm)
    where = find_first_nan(learner, state, batches)
    message = (
        f"the {name} is {value} at step {state.step + 1:,} (batch {state.index:,} of epoch "
        f"{state.epoch + 1:,}){f', first in {where}' if where else ''}"
    )
    if learner.settings.on_nan == "stop":
        raise TrainingError(
            f"{message}; set a lower train.rate or a smaller train.clip, or skip such batches with "
            "train.on_nan=skip"
        )
    if before >= _MOST:
        raise TrainingError(f"{message}, the last of {before + 1} in a row; set a lower train.rate")
    state.skipped += 1
    yield Note(f"{message}; the batch is skipped")
    return before + 1


def find_first_nan(learner: Learner, state: TrainingState, batches: Sequence[Batch]) -> str:
    """Name the weights, or else the first part of the network, with NaN or infinite values; "" if none."""
    ranks, named = state.engine.ranks, state.network.named_parameters()
    with torch.no_grad():
        bad = (f"the weights '{name}'" for name, weight in named if not torch.isfinite(local(weight)).all())
        if where := ranks.first_message(next(bad, "")):
            return where
    found: list[str] = []
    carried = state.carried
    with ExitStack() as hooks, torch.no_grad():
        for name, module in state.network.named_modules():
            hooks.callback(module.register_forward_hook(_hook(name, found)).remove)
        learner.read(state, batches)
    state.carried = carried
    return ranks.first_message(found[0] if found else "")


def _hook(name: str, found: list[str]) -> Any:
    def look(module: torch.nn.Module, inputs: Any, output: Any) -> None:
        if not found and isinstance(output, Tensor) and not torch.isfinite(output).all():
            found.append(f"'{name or type(module).__name__}'")

    return look
