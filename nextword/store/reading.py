"""The run folder: checked when it is opened, written whole or not at all.

"Nobody detects bit rot": one flipped bit in a common checkpoint loads in silence. Here sizes and small files
are verified on every load and large arrays on request.
"""

from __future__ import annotations

import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from nextword.core.errors import DamagedError, RunError
from nextword.store import replace
from nextword.store.manifest import MANIFEST, Manifest, check_file, read_manifest
from nextword.store.unfinished import checkpoints_in
from nextword.store.writing import real_path, translating

_READERS = 2


class RunFolder:
    """A finished run: its files by name, checked against the manifest."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path, self.manifest = path, manifest
        self._identity = _identity(path)

    @property
    def names(self) -> list[str]:
        """All files, sorted."""
        return sorted(self.manifest.files)

    @property
    def fingerprint(self) -> str:
        """The run's hash; compressed files name it."""
        return self.manifest.fingerprint

    def __contains__(self, name: str) -> bool:
        return name in self.manifest.files

    def file(self, name: str) -> Path:
        """The path of a file that the manifest lists."""
        if name not in self.manifest.files:
            raise DamagedError(f"'{self.path}' has no file '{name}' in its {MANIFEST}; train the run again")
        return self.path / name

    def read(self, name: str) -> bytes:
        """The bytes of a file, checked against its SHA-256."""
        path, record = self.file(name), self.manifest.files[name]
        check_file(self.path, name, record, contents=False)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise RunError(f"{path} cannot be read ({error.strerror}); check its permissions") from error
        if hashlib.sha256(data).hexdigest() != record.sha256:
            raise DamagedError(f"{path} was changed after it was written; restore it or train the run again")
        return data

    def read_text(self, name: str) -> str:
        """A file as UTF-8 text."""
        try:
            return self.read(name).decode()
        except UnicodeDecodeError as error:
            raise DamagedError(f"{self.path / name} is not UTF-8 text; train the run again") from error

    def read_json(self, name: str) -> Any:
        """A file as JSON."""
        try:
            return json.loads(self.read_text(name))
        except (ValueError, RecursionError) as error:
            raise DamagedError(f"{self.path / name} is not valid JSON; train the run again") from error

    def verify(self, contents: bool = True) -> None:
        """Check every file: size always, SHA-256 of the small ones, with ``contents`` of all."""
        records = self.manifest.files
        for name, record in records.items():
            check_file(self.path, name, record, contents=not record.large)
        large = [name for name, record in records.items() if record.large] if contents else []
        if large:
            with ThreadPoolExecutor(_READERS) as pool:
                for _ in pool.map(lambda name: check_file(self.path, name, records[name], True), large):
                    pass

    def ensure_unchanged(self) -> None:
        """After loading several files: raise if the run was replaced since it was opened."""
        if _identity(self.path) != self._identity:
            raise RunError(f"'{self.path}' was replaced by another process while it was read; open it again")


def open_run(path: str | os.PathLike[str], verify: bool = False) -> RunFolder:
    """Open a finished run: all sizes and the SHA-256 of small files are checked, of all with ``verify``."""
    target = real_path(path)
    if not target.is_dir():
        _repair_or_explain(target)
    if not os.path.lexists(target / MANIFEST) and checkpoints_in(target):
        raise RunError(
            f"'{target}' is a training that has not ended; go on with the same command and --resume"
        )
    folder = RunFolder(target, read_manifest(target))
    folder.verify(contents=verify)
    return folder


def _repair_or_explain(target: Path) -> None:
    if os.path.lexists(target):
        raise RunError(f"'{target}' is a file, and a run is a folder; give the run's folder or its name")
    if replace.leftovers(target, "old"):  # a writer died, or stands, between the two renames of an exchange
        with translating(target), replace.locked(target, patience=5.0):
            if replace.repair(target):
                return
    raise RunError(f"there is no run '{target}'; train one with: nextword train DATA --out {target.name}")


def _identity(path: Path) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return (-1, -1)
    return (status.st_dev, status.st_ino)
