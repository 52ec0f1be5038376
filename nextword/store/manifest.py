"""The manifest of a run folder: sizes and SHA-256 of its files, in ``MANIFEST.json``.

The idea is Megatron's integrity manifest, made the default: sizes and contents are checked whenever a run
is opened, so that a flipped bit is detected. Only large arrays that are memory-mapped, and so never read as
a whole, are hashed on request: opening them stays instant.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nextword.core.errors import DamagedError, RunError

MANIFEST = "MANIFEST.json"
FORMAT = 1  # increased when older versions cannot read a new folder
LARGE = 1 << 20  # memory-mapped files from this size on are hashed only on request
MAPPED = (".npy", ".usearch")  # arrays and the index of neighbours: opened without being read
CHUNK = 8 << 20
_MAX_MANIFEST = 16 << 20
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class FileRecord:
    """One file as it was written."""

    size: int
    sha256: str

    @property
    def large(self) -> bool:
        """Whether hashing it would make opening a run slow."""
        return self.size >= LARGE


def is_hashed_on_opening(name: str, record: FileRecord) -> bool:
    """Tell whether a file is verified whenever its run is opened: all but large memory-mapped ones."""
    return not (record.large and name.endswith(MAPPED))


@dataclass(frozen=True)
class Manifest:
    """All files of a run. ``created`` is in nanoseconds and increases from run to run in one folder."""

    files: Mapping[str, FileRecord]
    created: int

    @property
    def fingerprint(self) -> str:
        """The run's hash: equal for equal files, whatever the folder and the time."""
        lines = (f"{name} {self.files[name].size} {self.files[name].sha256}\n" for name in sorted(self.files))
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    def to_json(self) -> bytes:
        """Return the text of ``MANIFEST.json``; its own checksum comes last."""
        body: dict[str, Any] = {
            "nextword_format": FORMAT,
            "created": self.created,
            "files": {
                name: {"size": record.size, "sha256": record.sha256, "large": record.large}
                for name, record in sorted(self.files.items())
            },
        }
        body["check"] = _check(body)
        return (json.dumps(body, indent=1) + "\n").encode()


def safe_name(name: str) -> str:
    """Return ``name`` if it is a plain relative file name such as ``config.toml`` or ``part-1/config.toml``.

    Only letters, digits, ``.``, ``-`` and ``_``, and no part may start with a dot: a manifest can
    never point outside its folder.
    """
    if len(name) > 512 or not all(_PART.fullmatch(part) for part in name.split("/")):
        raise RunError(
            f"'{name[:80]}' cannot be a file of a run; use letters, digits, '.', '-' and '_', "
            "with no part that starts with a dot"
        )
    return name


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a run and check every field; ``DamagedError`` names what is wrong."""
    path = folder / MANIFEST
    if not os.path.lexists(path):
        raise DamagedError(f"{path} is missing, so '{folder}' is not a complete run; train it again")
    if plain_size(folder, MANIFEST) > _MAX_MANIFEST:
        raise DamagedError(f"{path} has more than {_MAX_MANIFEST:,} bytes; train the run again")
    try:
        raw = path.read_bytes()
        manifest = _parse(json.loads(raw))
        if manifest.to_json() != raw:
            raise ValueError("its text was changed")
    except OSError as error:
        raise RunError(f"{path} cannot be read ({error.strerror}); check its permissions") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedError(f"{path} is damaged ({_short(error)}); train the run again") from error
    except RunError as error:
        raise DamagedError(f"{path} is damaged: {error}") from error
    return manifest


def check_file(folder: Path, name: str, record: FileRecord, contents: bool) -> None:
    """Check a file against its record: a plain file of the right size and, on request, contents."""
    path = folder / name
    size = plain_size(folder, name)
    if size != record.size:
        raise DamagedError(
            f"{path} has {size:,} bytes, but {record.size:,} were written; restore it or train the run again"
        )
    if contents:
        found = hash_file(path).sha256
        if found != record.sha256:
            raise DamagedError(
                f"{path} was changed after it was written (SHA-256 {found[:12]}…, expected "
                f"{record.sha256[:12]}…); restore it or train the run again"
            )


def plain_size(folder: Path, name: str) -> int:
    """Return the size of a file in the folder; links and special files are errors, also in its path."""
    path = folder
    try:
        for part in name.split("/"):
            path = path / part
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                raise DamagedError(f"{path} is a symbolic link, and a run holds plain files only")
    except (FileNotFoundError, NotADirectoryError) as error:
        raise DamagedError(f"{folder / name} is missing; the run is incomplete, train it again") from error
    except OSError as error:
        raise RunError(f"{path} cannot be read ({error.strerror}); check its permissions") from error
    if not stat.S_ISREG(status.st_mode):
        raise DamagedError(f"{path} is not a plain file; train the run again")
    return status.st_size


def hash_file(path: Path) -> FileRecord:
    """Return the size and SHA-256 of a file as it is now."""
    digest, size = hashlib.sha256(), 0
    try:
        with open(path, "rb", buffering=0) as file:
            buffer = memoryview(bytearray(CHUNK))
            while count := file.readinto(buffer):
                digest.update(buffer[:count])
                size += count
    except OSError as error:
        raise RunError(f"{path} cannot be read ({error.strerror}); check its permissions") from error
    return FileRecord(size, digest.hexdigest())


def _check(body: Mapping[str, Any]) -> str:
    text = json.dumps({key: body[key] for key in sorted(body) if key != "check"}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _parse(body: Any) -> Manifest:
    version = body["nextword_format"]
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ValueError(f"format version {version!r}")
    if version > FORMAT:
        raise RunError(
            f"it has format {version}, but this version of nextword reads up to {FORMAT}; upgrade nextword"
        )
    if body["check"] != _check(body):
        raise ValueError("its own checksum does not match")
    files = {}
    for name, entry in body["files"].items():
        size, digest = entry["size"], entry["sha256"]
        if not isinstance(size, int) or size < 0 or not _DIGEST.fullmatch(digest):
            raise ValueError(f"entry of '{name[:80]}'")
        files[safe_name(name)] = FileRecord(size, digest)
    created = body["created"]
    if not isinstance(created, int):
        raise ValueError("field 'created'")
    return Manifest(files, created)


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:120]
