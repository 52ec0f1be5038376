"""Write files atomically: a killed process or a power failure leaves the old file or the new one.

A temporary file in the same folder is written and fsynced, renamed over the target, and the folder is
fsynced: rename is atomic within a file system, and without the two fsyncs it may reach the disk before the
bytes do (Pillai et al. 2014).
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

TEMPORARY = ".tmp-"  # in the name of every temporary file


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
