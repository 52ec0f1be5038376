"""Check whether runs can be stored here: free space, a write with fsync, and a working lock."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from nextword.core.display import show_size
from nextword.core.errors import NextwordError
from nextword.core.findings import Finding, note, ok, problem
from nextword.store import replace
from nextword.system.disk import free_bytes, fsync_file

SCARCE, _TIGHT = 200_000_000, 2_000_000_000  # bytes free: too little, and low
_SLOW = 1.0  # seconds to write a small file


def check_disk(about: str, folder: Path) -> Iterator[Finding]:
    """Check a folder that files are to be written to; ``about`` says which."""
    yield _room(about, folder)
    yield _keeps(about, folder)


def nearest(folder: Path) -> Path:
    """Return the folder, or its nearest existing parent."""
    path = Path(os.path.realpath(folder))
    while not path.is_dir():
        path = path.parent
    return path


def _room(about: str, folder: Path) -> Finding:
    free = free_bytes(folder)
    if free is None:
        return note(about, f"{folder} does not report its free space; check it before a long training run")
    if free < SCARCE:
        return problem(
            about, f"{folder} has only {free:,} bytes free; free some space or choose another --out"
        )
    if free < _TIGHT:
        return note(about, f"{folder} has {show_size(free)} free; check --estimate before training")
    return ok(about, f"{folder} has {show_size(free)} free")


def _keeps(about: str, folder: Path) -> Finding:
    """Check that a file can be written, synced to disk and locked."""
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
        return problem(about, f"{folder} cannot be written ({reason}); choose a writable folder")
    took = time.perf_counter() - began
    if not locks:
        return note(
            about, f"{folder} does not support locks; make sure that two training runs never share a folder"
        )
    if took > _SLOW:
        return note(about, f"{folder} takes {took:.1f} s to write a small file; a local disk is faster")
    return ok(about, f"{folder} writes files durably (fsync), and locks work")
