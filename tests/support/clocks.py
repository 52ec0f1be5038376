"""Clocks for tests: what some modules see of the time, and nobody else.

Setting ``time.monotonic`` itself would also move the event loop of a server that runs in a thread for other
tests: a wait that it began at a later time never ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest


class _Time:
    """The module `time` with some functions replaced."""

    def __init__(self, functions: dict[str, Callable[[], float]]) -> None:
        self.__dict__.update(functions)

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


def set_clock(
    monkeypatch: pytest.MonkeyPatch, *modules: ModuleType, **functions: Callable[[], float]
) -> None:
    """Give modules that say ``import time`` other functions of it until the test ends."""
    for module in modules:
        monkeypatch.setattr(module, "time", _Time(functions))
