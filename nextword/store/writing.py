"""Write a run folder atomically: complete or not at all.

Protocol: files go to a hidden sibling folder, each is hashed while written and fsynced, then the manifest,
then one rename puts the folder in place. Killed at any moment, either the old run or the new one is there.
Standard library only; arrays come in as buffers, and the ``.npy`` header is built here.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from nextword.core.errors import RunError
from nextword.store import replace
from nextword.store.manifest import (
    CHUNK,
    MANIFEST,
    FileRecord,
    Manifest,
    hash_file,
    plain_size,
    read_manifest,
    safe_name,
)
from nextword.store.names import RUNS, mark_latest
from nextword.store.unfinished import FOLDER, checkpoints_in
from nextword.system import disk
from nextword.system.disk import fsync_file, fsync_folder

_WRITERS = 2


class NewRun:
    """A run that is being written; ``path`` is its temporary folder.

    `write` and `later` hash while they write. Files put into ``path`` in any other way (by a library, by
    worker processes) are hashed at the end.
    """

    def __init__(self, path: Path, target: Path) -> None:
        self.path, self.target = path, target
        self.resumes = False  # the target may hold checkpoints of this training run
        self.private = False  # it holds text that others may not be meant to read: only its owner can
        self._records: dict[str, FileRecord] = {}
        self._pending: list[Future[None]] = []
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    def write(self, name: str, *pieces: Any) -> None:
        """Write one file from bytes-like pieces (str as UTF-8); a name is written only once. Thread-safe."""
        path = self._new_path(name)
        digest, size = hashlib.sha256(), 0
        with self._translated():
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            try:
                for piece in pieces:
                    data = memoryview(piece.encode() if isinstance(piece, str) else piece)
                    view = data.cast("B") if data.nbytes else memoryview(b"")
                    for start in range(0, len(view), CHUNK):
                        chunk = view[start : start + CHUNK]
                        digest.update(chunk)
                        disk.write_all(descriptor, chunk)
                        disk.begin_writeback(descriptor, size, len(chunk))
                        size += len(chunk)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        with self._lock:
            self._records[name] = FileRecord(size, digest.hexdigest())

    def later(self, name: str, *pieces: Any) -> None:
        """Call `write` in the background; its errors are raised when the run is finished."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_WRITERS, thread_name_prefix="run-writer")
        self._pending.append(self._pool.submit(self.write, name, *pieces))

    def write_array(self, name: str, array: Any, wait: bool = True) -> None:
        """Write a NumPy array as a ``.npy`` file; with ``wait=False`` in the background, like `later`."""
        whole = array if array.flags.c_contiguous else array.copy(order="C")
        (self.write if wait else self.later)(name, npy_header(whole), whole)

    def write_json(self, name: str, value: Any) -> None:
        """Write one indented JSON file with a final newline."""
        self.write(name, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")

    def record(self, name: str) -> FileRecord:
        """Return the size and SHA-256 of a file that was written."""
        return self._records[name]

    def adopt(self, name: str, record: FileRecord) -> None:
        """Register a file that another process wrote and synced here, with the record it reported."""
        if plain_size(self.path, safe_name(name)) != record.size:
            raise RunError(
                f"{self.path / name} does not have the {record.size:,} bytes that were written to it"
            )
        with self._lock:
            self._records[name] = record

    def need(self, size: int) -> None:
        """Raise an error with the numbers if ``size`` bytes will not fit."""
        disk.check_space(self.target, size)

    def _new_path(self, name: str) -> Path:
        path = self.path / safe_name(name)
        if "/" in name:
            path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def _wait(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True)
            for future in self._pending:
                future.result()

    def _abandon(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def finish(self, after: int = 0) -> None:
        """Bring everything to disk: hash and fsync other files, write the manifest (newer than ``after``).

        Checkpoints have manifests of their own and come and go, so they are not listed.
        """
        self._wait()
        with self._translated():
            for name in _files_in(self.path):
                if name not in self._records and not name.startswith(f"{FOLDER}/"):
                    safe_name(name)
                    plain_size(self.path, name)
                    self._records[name] = hash_file(self.path / name)
                    fsync_file(self.path / name)
            created = max(time.time_ns(), _newest_created(self.target) + 1, after + 1)
            self.write(MANIFEST, Manifest(dict(self._records), created).to_json())
            for folder in {self.path, *((self.path / name).parent for name in self._records)}:
                fsync_folder(folder)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise disk.translate(error, self.target) from error


def npy_header(array: Any) -> bytes:
    """Return the header of a ``.npy`` file (format 1.0) of an array in C order; the raw data follow it."""
    if array.dtype.hasobject:
        raise TypeError(f"an array of {array.dtype} holds Python objects, which are never written")
    fields = f"{{'descr': {array.dtype.str!r}, 'fortran_order': False, 'shape': {tuple(array.shape)!r}, }}"
    text = fields + " " * (-(len(fields) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode("ascii")


@contextmanager
def new_run(
    path: str | os.PathLike[str], overwrite: bool = False, need: int = 0, resumes: bool = False
) -> Iterator[NewRun]:
    """Write a run: ``with new_run("runs/x") as folder: folder.write("config.toml", text)``.

    Enter it before the work: it takes the target's lock, so that a second process fails at once because
    the folder is busy. On success the run is at ``path``; after any exception nothing is left, and an earlier
    run is untouched. A run in a folder named ``runs`` becomes its ``latest``. ``need``: bytes that must be
    free. ``resumes``: the target may hold an unfinished training run.
    """
    target = real_path(path)
    made = _make_parents(target)
    try:
        with translating(target), replace.locked(target):
            replace.repair(target)
            replace.clean(target)
            _check_replaceable(target, overwrite, resumes)
            if need:
                disk.check_space(target, need)
            yield from _write_run(target, overwrite, resumes)
            if target.parent.name == RUNS.name:
                mark_latest(target)
    except BaseException:
        for folder in reversed(made):
            with suppress(OSError):
                folder.rmdir()
        raise


def tidy(path: str | os.PathLike[str]) -> None:
    """Remove leftovers of a killed process beside a finished run, unless one is writing now."""
    target = real_path(path)
    if not replace.leftovers(target, "new") and not (target.parent / f".{target.name}.lock").exists():
        return
    with suppress(RunError, OSError), replace.locked(target):
        replace.repair(target)
        replace.clean(target)


def _write_run(target: Path, overwrite: bool, resumes: bool) -> Iterator[NewRun]:
    folder = NewRun(replace.sibling_name(target), target)
    folder.resumes = resumes
    try:
        folder.path.mkdir()
        mode = stat.S_IMODE(folder.path.stat().st_mode)
        _set_mode(folder.path, 0o700)  # until it is known what it holds
        yield folder
        folder.finish()
        _restrict(folder.path) if folder.private else _set_mode(folder.path, mode)
        _check_replaceable(target, overwrite, folder.resumes)
        replace.put_in_place(folder.path, target)
    except BaseException:
        folder._abandon()
        replace.remove(folder.path)
        raise


def _restrict(folder: Path) -> None:
    """Let only the owner read a folder and every file in it."""
    for root, _, names in os.walk(folder):
        _set_mode(Path(root), 0o700)
        for name in names:
            _set_mode(Path(root, name), 0o600)


def _set_mode(path: Path, mode: int) -> None:
    with suppress(OSError):  # a file system without permissions
        path.chmod(mode)


def check_target(path: str | os.PathLike[str], overwrite: bool = False, resumes: bool = False) -> None:
    """Raise now, before any work, what `new_run` would raise: exists, busy, not a run, not writable."""
    target = real_path(path)
    parent = target.parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        why = "not writable" if parent.is_dir() else "not a folder"
        raise RunError(f"'{target}' cannot be written: '{parent}' is {why}; choose another --out")
    if replace.is_locked(target):
        raise RunError(f"'{target}' is being written by another process; wait for it or choose another --out")
    _check_replaceable(target, overwrite, resumes)


def _check_replaceable(target: Path, overwrite: bool, resumes: bool) -> None:
    if not os.path.lexists(target):
        return
    if not target.is_dir():
        raise RunError(f"'{target}' is a file, but a run is a folder; choose another --out")
    if resumes and checkpoints_in(target):
        return
    if {path.name for path in target.iterdir()} <= {FOLDER}:
        if overwrite or resumes or not checkpoints_in(target):
            return
        raise RunError(
            f"'{target}' holds an unfinished training run; resume it with --resume, or pass --overwrite to "
            "start over"
        )
    if not (target / MANIFEST).is_file():
        raise RunError(
            f"'{target}' holds files other than a nextword run and is left untouched; choose another --out"
        )
    if not overwrite:
        raise RunError(
            f"'{target}' already holds a run; choose another --out or pass --overwrite to replace it"
        )


@contextmanager
def translating(target: Path) -> Iterator[None]:
    """Translate errors of the disk and of our own folders; errors of the caller's files pass through."""
    try:
        yield
    except OSError as error:
        name = error.filename if isinstance(error.filename, str) else ""
        ours = name.startswith(str(target.parent / f".{target.name}."))
        if ours or error.errno in (*disk.FULL, errno.EROFS):
            raise disk.translate(error, target) from error
        raise


def _make_parents(target: Path) -> list[Path]:
    """Create missing parents; return the created ones, outermost first."""
    missing = []
    parent = target.parent
    while not parent.exists():
        missing.append(parent)
        parent = parent.parent
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk.translate(error, target) from error
    return missing[::-1]


def _files_in(folder: Path) -> list[str]:
    found = []
    for root, _, names in os.walk(folder):
        found += [Path(root, name).relative_to(folder).as_posix() for name in names]
    return sorted(found)


def _newest_created(target: Path) -> int:
    """Return ``created`` of the run this one replaces or follows, so that a clock set back is harmless."""
    newest = 0
    pointer = target.parent / ".latest"
    with suppress(OSError, UnicodeDecodeError):
        follows = target.parent / pointer.read_text()[:300].strip()
        for folder in (follows, target):
            with suppress(RunError):
                newest = max(newest, read_manifest(folder).created)
    return min(newest, time.time_ns() + 366 * 86_400 * 10**9)  # do not inherit an absurd future date


def real_path(path: str | os.PathLike[str]) -> Path:
    """Return the absolute path of a run, links resolved, so that a linked run is replaced, not its link."""
    text = os.fspath(path)
    if not text or "\0" in text:
        raise RunError(f"invalid path {text!r} for a run; give a folder name")
    return Path(os.path.realpath(text))
