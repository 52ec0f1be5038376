"""Disk operations: free space, complete writes, and errors as sentences with bytes and paths."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from nextword.core.errors import RunError
from nextword.system.atomic import write_atomically

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = (errno.EROFS, errno.EACCES, errno.EPERM)
_SYNC_FILE_RANGE_WRITE = 2


def check_space(path: Path, need: int) -> None:
    """Raise ``RunError`` with both numbers if the disk of ``path`` has less than ``need`` bytes free."""
    folder = path
    while not folder.exists():
        folder = folder.parent
    free = free_bytes(folder)
    if free is not None and free < need:
        raise RunError(
            f"'{path}' needs {need:,} bytes, but its disk has {free:,} free; "
            "free some space or choose another --out"
        )


def free_bytes(folder: Path) -> int | None:
    """Return the bytes this user may still write, or None if the system does not say."""
    try:
        status = os.statvfs(folder)
    except (OSError, AttributeError):
        return None
    return status.f_bavail * status.f_frsize


def translate(error: OSError, target: Path) -> RunError:
    """Turn a system error while writing into one sentence with the path and, for a full disk, the bytes."""
    reason = error.strerror or str(error)
    if error.errno in FULL:
        free = free_bytes(target.parent)
        left = "" if free is None else f"; {free:,} bytes are free at '{target.parent}'"
        return RunError(
            f"'{target}' could not be written ({reason}){left}; nothing was saved; free some space"
        )
    if error.errno in _FORBIDDEN:
        return RunError(f"'{target}' cannot be written ({reason}); choose a writable folder")
    where = error.filename if isinstance(error.filename, str) else str(target)
    return RunError(f"'{target}' could not be written ({reason} at '{where}'); nothing was saved")


@contextmanager
def explaining(target: Path) -> Iterator[None]:
    """Turn system errors while a file is written into sentences; errors about other files pass through."""
    try:
        yield
    except OSError as error:
        name = error.filename if isinstance(error.filename, str) else ""
        if _is_written(name, target) if name else error.errno in (*FULL, *_FORBIDDEN):
            raise translate(error, target) from error
        raise


def _is_written(name: str, target: Path) -> bool:
    """Tell whether a file is the target, one beside it that belongs to it, or a folder it is in."""
    place = os.path.realpath(name)
    for path in (Path(os.path.abspath(target)), Path(os.path.realpath(target))):
        own = (str(path), str(path.parent / f".{path.name}"))
        if place.startswith(own) or Path(place) in path.parents:
            return True
    return False


def write_file(path: str | os.PathLike[str], data: bytes | str) -> Path:
    """Write a file atomically, creating its folder if needed; a failure is a ``RunError``."""
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, data)
    except OSError as error:
        raise translate(error, target) from error
    return target


def write_all(descriptor: int, data: memoryview) -> None:
    """Write every byte, however many calls the system takes."""
    while data:
        data = data[os.write(descriptor, data) :]


def begin_writeback(descriptor: int, start: int, size: int) -> None:
    """Start to write this range of a file to disk without waiting, so that fsync has less to do.

    A hint: it is ignored where the system does not support it.
    """
    function = _sync_file_range()
    if function is not None:
        function(descriptor, start, size, _SYNC_FILE_RANGE_WRITE)


@cache
def _sync_file_range() -> Callable[[int, int, int, int], int] | None:
    try:
        function = ctypes.CDLL(None).sync_file_range
    except (OSError, AttributeError, TypeError):  # only Linux has it
        return None
    function.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    return function
