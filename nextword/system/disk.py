"""Write to disk: files atomically, free space, complete writes, and errors as sentences with bytes and paths.

Atomically: a killed process or a power failure leaves the old file or the new one. A temporary file in the
same folder is written and fsynced, renamed over the target, and the folder is fsynced: rename is atomic
within a file system, and without the two fsyncs it may reach the disk before the bytes do (Pillai et al.
2014).
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO

from nextword.core.errors import RunError

TEMPORARY = ".tmp-"  # in the name of every temporary file
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = (errno.EROFS, errno.EACCES, errno.EPERM)
_SYNC_FILE_RANGE_WRITE = 2


def write_atomically(path: str | os.PathLike[str], data: bytes | str, mode: int = 0o666) -> None:
    """Write a file atomically (str is written as UTF-8); the umask applies to ``mode``."""
    with writing(path, mode) as file:
        file.write(data.encode() if isinstance(data, str) else data)


@contextmanager
def writing(path: str | os.PathLike[str], mode: int = 0o666, sync: bool = True) -> Iterator[IO[bytes]]:
    """Open a file that replaces the target when the block ends; after an exception nothing is left of it.

    Links are followed, and a pipe or device is written directly. Without ``sync`` a power failure may
    lose the file: for a large one that can be created again.
    """
    if _is_special(path):
        with open(path, "wb") as file:
            yield file
        return
    target = Path(os.path.realpath(path))
    temporary = target.parent / f".{target.name}{TEMPORARY}{os.getpid()}-{secrets.token_hex(8)}"
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            if sync:
                os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    if sync:
        fsync_folder(target.parent)


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove leftovers of killed writers of this file; call it under a lock, so that nobody is writing."""
    target = Path(os.path.realpath(path))
    for name in os.listdir(target.parent):
        if name.startswith(f".{target.name}{TEMPORARY}"):
            with suppress(OSError):
                (target.parent / name).unlink()


def _is_special(path: str | os.PathLike[str]) -> bool:
    """Return whether the path is a pipe, terminal or device, not a file, a folder or missing."""
    try:
        kind = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(kind) and not stat.S_ISDIR(kind)


def fsync_file(path: Path) -> None:
    """Make the contents of a file survive a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def fsync_folder(path: Path) -> None:
    """Make renames and new entries in a folder survive a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:  # some network file systems do not support fsync of a folder
        if error.errno not in (errno.EINVAL, errno.EBADF, errno.EOPNOTSUPP):
            raise
    finally:
        os.close(descriptor)


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
