"""Can runs be kept here? Room, a file that is written and brought to disk, and a lock that locks."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from nextword.core.errors import NextwordError
from nextword.core.findings import Finding, note, ok, problem
from nextword.core.sizes import show_size
from nextword.store import replace
from nextword.store.disk import free_bytes, fsync_file

SCARCE, _TIGHT = 200_000_000, 2_000_000_000  # bytes free: too little, and little
_SLOW = 1.0  # seconds to keep a small file


def check_disk(about: str, folder: Path) -> Iterator[Finding]:
    """A folder in which files are to be kept; ``about`` says which."""
    yield _room(about, folder)
    yield _keeps(about, folder)


def nearest(folder: Path) -> Path:
    """The folder, or the nearest above it that is there."""
    path = Path(os.path.realpath(folder))
    while not path.is_dir():
        path = path.parent
    return path


def _room(about: str, folder: Path) -> Finding:
    free = free_bytes(folder)
    if free is None:
        return note(about, f"{folder} does not say how much room it has; look yourself before long trainings")
    if free < SCARCE:
        return problem(about, f"{folder} has only {free:,} bytes free; make room, or choose another --out")
    if free < _TIGHT:
        return note(about, f"{folder} has {show_size(free)} free; look at --estimate before a training")
    return ok(about, f"{folder} has {show_size(free)} free")


def _keeps(about: str, folder: Path) -> Finding:
    """A file can be written, brought to disk and locked."""
    began = time.perf_counter()
    try:
        with tempfile.TemporaryDirectory(prefix=".nextword-doctor-", dir=folder) as name:
            place = Path(name) / "probe"
            with replace.locked(place):
                place.write_bytes(b"x" * 4096)
                fsync_file(place)
                locks = replace.is_locked(place)
    except (OSError, NextwordError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return problem(about, f"{folder} cannot be written ({reason}); choose a folder you may write to")
    took = time.perf_counter() - began
    if not locks:
        return note(about, f"{folder} has no locks; see to it that two trainings never share a folder")
    if took > _SLOW:
        return note(about, f"{folder} takes {took:.1f} s to keep a small file; a local disk is quicker")
    return ok(about, f"{folder} keeps what is written (fsync), and locks work")
