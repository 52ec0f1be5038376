"""Losses that a part adds to the one that is trained: balance between experts, the price of steps.

A part calls `add` in its forward pass; an objective collects what was added while it read a batch. Where
nothing collects (evaluation, generation), nothing is computed. A loss has a weight and a name, under which it
is shown; it is per token, as the loss of a text is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from torch import Tensor

_collected: ContextVar[dict[str, Tensor] | None] = ContextVar("collected", default=None)


@contextmanager
def collecting() -> Iterator[dict[str, Tensor]]:
    """Collect, while it lasts, what parts add: name -> weighted loss per token."""
    found: dict[str, Tensor] = {}
    token = _collected.set(found)
    try:
        yield found
    finally:
        _collected.reset(token)


def add(name: str, weight: float, loss: Callable[[], Tensor]) -> None:
    """Add a loss, if it is collected and has a weight; only then is it computed."""
    found = _collected.get()
    if found is not None and weight:
        value = weight * loss()
        found[name] = found[name] + value if name in found else value


def joined(loss: Tensor, found: Mapping[str, Tensor], tokens: int) -> tuple[Tensor, dict[str, Tensor]]:
    """Return a loss summed over ``tokens`` with those of the parts, and these by name, summed as well."""
    parts = {name: value * tokens for name, value in found.items()}
    return sum(parts.values(), loss), parts
