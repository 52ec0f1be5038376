"""Disks for faults: a small one in memory, where mounting is allowed; it can be filled and made read-only."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(place: Path, size: str = "24m") -> Iterator[Path]:
    """A tmpfs of this size; skips the test where it cannot be mounted."""
    place.mkdir()
    if shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", place], capture_output=True)
    if done.returncode:
        pytest.skip("mounting a tmpfs is not allowed here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@contextmanager
def read_only(place: Path) -> Iterator[Callable[[], None]]:
    """Gives what makes a folder read-only, even with open files; after the block it is as before."""
    done: list[Path] = []

    def make() -> None:
        subprocess.run(["mount", "--bind", place, place], check=True)
        done.append(place)
        subprocess.run(["mount", "-o", "remount,bind,ro", place], check=True)

    try:
        yield make
    finally:
        for each in done:
            subprocess.run(["umount", "-l", each], check=True)


def fill(place: Path, leave: int = 0) -> Path:
    """A file that takes all the room but so many bytes."""
    path = place / "filler"
    free = os.statvfs(place).f_bavail * os.statvfs(place).f_frsize
    path.write_bytes(bytes(max(0, free - leave)))
    return path
