"""Prepare the process for torch at the moment a command is about to load it, and not before.

Count models keep their memory limit and their fast start. A library must not decide these things for its
importers, so only programs call `prepare`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder
from types import ModuleType

from nextword.system import allocator, processor, threads


class BeforeTorch(MetaPathFinder):
    """Calls ``action`` once, when torch is about to be loaded."""

    def __init__(self, action: Callable[[], None]) -> None:
        self.action = action

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        """Find nothing; only notice that torch is being imported."""
        if fullname == "torch":
            sys.meta_path.remove(self)
            if PathFinder.find_spec("torch") is not None:  # it may only be looked for
                self.action()


def prepare(tell: Callable[[str], None]) -> None:
    """Arrange that memory, threads and instruction sets are set up as soon as torch is needed.

    Only programs call this. ``tell`` receives a sentence if the processor lacks instructions it advertises.
    """
    if "torch" not in sys.modules:
        sys.meta_path.insert(0, BeforeTorch(lambda: make_ready(tell)))


def make_ready(tell: Callable[[str], None]) -> None:
    """Keep large arrays, make threads wait and run briefly, and use only instructions that work."""
    allocator.keep_big_arrays()
    threads.wait_briefly()
    threads.ask_for_short_slices()
    if news := processor.prepare():
        tell(news)
