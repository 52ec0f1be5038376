"""How many processors torch uses: those we may use, not those there are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from nextword.core.launch import launched


def allowed() -> int:
    """The processors this process may run on; several processes on a machine share them."""
    affinity = getattr(os, "sched_getaffinity", None)
    there = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    return launched().share(there)


@contextmanager
def using(threads: int) -> Iterator[int]:
    """torch with so many threads (0: all that are allowed) within the block; gives their number."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads or allowed())
    try:
        yield torch.get_num_threads()
    finally:
        torch.set_num_threads(before)
