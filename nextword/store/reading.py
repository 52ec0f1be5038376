"""A finished run folder: verified when it is opened.

A flipped bit in an ordinary checkpoint loads silently. Here sizes and contents are verified on every load,
and those of large memory-mapped arrays on request. Files that only describe a run may be edited or deleted: a
run opens without them, and says so.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from nextword.core.errors import DamagedError, RunError
from nextword.store import replace
from nextword.store.manifest import MANIFEST, Manifest, check_file, is_hashed_on_opening, read_manifest
from nextword.store.unfinished import checkpoints_in
from nextword.store.writing import real_path, translating

# Files that describe a run and do not affect what it computes.
ABOUT = ("README.md", "metrics.jsonl", "training.json")
_READERS = 2


class RunFolder:
    """A finished run: its files by name, checked against the manifest."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path, self.manifest = path, manifest
        self.changed: dict[str, str] = {}  # files about the run that are not as written, and what is wrong
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
        """Return the path of a file listed in the manifest."""
        if name not in self.manifest.files:
            raise DamagedError(f"'{self.path}' has no file '{name}' in its {MANIFEST}; train the run again")
        return self.path / name

    def read(self, name: str) -> bytes:
        """Read a file, verified against its SHA-256."""
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
        """Read a file as UTF-8 text."""
        try:
            return self.read(name).decode()
        except UnicodeDecodeError as error:
            raise DamagedError(f"{self.path / name} is not UTF-8 text; train the run again") from error

    def read_json(self, name: str) -> Any:
        """Read a file as JSON."""
        try:
            return json.loads(self.read_text(name))
        except (ValueError, RecursionError) as error:
            raise DamagedError(f"{self.path / name} is not valid JSON; train the run again") from error

    def verify(self, contents: bool = True, about: Collection[str] = ()) -> None:
        """Verify every file: its size and SHA-256, that of large mapped arrays only with ``contents``.

        ``about``: names of files that the run can do without. What is wrong with them is kept in ``changed``.
        """
        records = self.manifest.files
        for name, record in records.items():
            try:
                check_file(self.path, name, record, contents=not record.large)
            except RunError as error:
                if Path(name).name not in about:
                    raise
                self.changed[name] = str(error)
        large = [name for name, record in records.items() if record.large and name not in self.changed]
        hashed = [name for name in large if contents or is_hashed_on_opening(name, records[name])]
        if hashed:
            with ThreadPoolExecutor(_READERS) as pool:
                for _ in pool.map(lambda name: check_file(self.path, name, records[name], True), hashed):
                    pass

    def ensure_unchanged(self) -> None:
        """Raise an error if the run was replaced since it was opened; call it after loading several files."""
        if _identity(self.path) != self._identity:
            raise RunError(f"'{self.path}' was replaced by another process while being read; open it again")


def open_run(path: str | os.PathLike[str], verify: bool = False, about: Collection[str] = ()) -> RunFolder:
    """Open a finished run and verify it; the SHA-256 of large mapped arrays only with ``verify``.

    ``about``: files that it opens without, such as `ABOUT`; see `RunFolder.changed`.
    """
    target = real_path(path)
    if not target.is_dir():
        _repair_or_explain(target)
    if not os.path.lexists(target / MANIFEST) and checkpoints_in(target):
        raise RunError(
            f"'{target}' is an unfinished training run; resume it with the same command and --resume"
        )
    folder = RunFolder(target, read_manifest(target))
    folder.verify(contents=verify, about=about)
    return folder


def _repair_or_explain(target: Path) -> None:
    if os.path.lexists(target):
        raise RunError(f"'{target}' is a file, but a run is a folder; give the run's folder or name")
    if replace.leftovers(target, "old"):  # a writer died, or is, between the two renames of an exchange
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
