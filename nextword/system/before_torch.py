"""What the program does at the moment when a command is about to load torch, and not before.

Count models keep their memory limit and their quick start. A library must not decide these things for whoever
imports it, so only programs call `prepare`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

from nextword.system import allocator, processor, threads


class BeforeTorch(MetaPathFinder):
    """Calls ``action`` once, when torch is about to be loaded."""

    def __init__(self, action: Callable[[], None]) -> None:
        self.action = action

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        """Finds nothing; only notices."""
        if fullname == "torch":
            sys.meta_path.remove(self)
            self.action()


def prepare(tell: Callable[[str], None]) -> None:
    """For programs: as soon as torch is needed, its memory, threads and instructions are made ready.

    ``tell`` gets a sentence where the processor does not keep what it promises.
    """
    if "torch" not in sys.modules:
        sys.meta_path.insert(0, BeforeTorch(lambda: make_ready(tell)))


def make_ready(tell: Callable[[str], None]) -> None:
    """Keep big arrays, let threads wait and run briefly, and use only instructions that work."""
    allocator.keep_big_arrays()
    threads.wait_briefly()
    threads.ask_for_short_slices()
    if news := processor.prepare():
        tell(news)
