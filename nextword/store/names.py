"""Names of runs: a folder, a name under ``runs/``, or ``latest``; and names for new runs.

"RUN is a folder, or a name under runs/" (design, section 6). ``latest`` is a pointer file beside the runs,
so that a clock that jumps back does not change which run is the newest.
"""

from __future__ import annotations

import difflib
import os
import re
from contextlib import suppress
from pathlib import Path

from nextword.core.errors import RunError
from nextword.store import replace
from nextword.store.manifest import MANIFEST, read_manifest
from nextword.system.disk import write_atomically

RUNS = Path("runs")
_POINTER = ".latest"


def resolve(name: str | os.PathLike[str], runs: Path = RUNS) -> Path:
    """Return a run's folder: ``name`` itself if it is one, ``runs/name``, or the newest for ``latest``."""
    text = os.fspath(name)
    if not text or "\0" in text:
        raise RunError(f"invalid run name {text!r}; give a folder, a name under '{runs}' or 'latest'")
    path = Path(text)
    if path.is_dir() or replace.leftovers(path, "old"):
        return path
    plain = len(path.parts) == 1 and text not in (".", "..")
    if plain and ((runs / text).is_dir() or replace.leftovers(runs / text, "old")):
        return runs / text
    if text == "latest":
        return latest(runs)
    if path.exists():
        raise RunError(
            f"'{text}' is a file, not a run; give the run's folder, or import a model file with "
            f"'nextword import {text} --out RUN'"
        )
    raise RunError(f"there is no run '{text}', neither as a folder nor under '{runs}'{_hint(path, runs)}")


def latest(runs: Path = RUNS) -> Path:
    """Return the newest run under ``runs``."""
    with suppress(OSError, UnicodeDecodeError):
        pointed = (runs / _POINTER).read_text()[:300].strip()
        if pointed and Path(pointed).name == pointed and (runs / pointed / MANIFEST).is_file():
            return runs / pointed
    found = [(created, folder) for folder in list_runs(runs) if (created := _created(folder)) is not None]
    if not found:
        raise RunError(
            f"there is no run under '{runs}' yet, so no 'latest'; train one with: nextword train DATA"
        )
    return max(found)[1]


def mark_latest(folder: str | os.PathLike[str]) -> None:
    """Record a finished run as the newest of its parent folder; a failure only costs the convenience."""
    path = Path(os.path.realpath(folder))
    with suppress(OSError):
        write_atomically(path.parent / _POINTER, path.name + "\n")


def list_runs(runs: Path = RUNS) -> list[Path]:
    """Return the folders under ``runs`` that hold a run, sorted by name."""
    try:
        names = sorted(os.listdir(runs))
    except OSError:
        return []
    return [runs / name for name in names if not name.startswith(".") and (runs / name / MANIFEST).is_file()]


def default_name(model: str, data: str, runs: Path = RUNS) -> Path:
    """Return ``runs/<model>-<data>-<n>`` with the first number after the existing ones.

    ``data`` is a path or the name of a corpus: ``/a/My Book.txt.gz`` becomes ``my-book``.
    """
    stem = f"{_slug(model)}-{_slug(_stem(data))}"
    try:
        names = os.listdir(runs)
    except OSError:
        names = []
    pattern = re.compile(re.escape(stem) + r"-(\d{1,9})")
    number = 1 + max((int(match[1]) for name in names if (match := pattern.fullmatch(name))), default=0)
    while replace.is_locked(Path(os.path.realpath(runs / f"{stem}-{number}"))):
        number += 1  # another process is training under this name
    return runs / f"{stem}-{number}"


def _stem(data: str) -> str:
    name = os.path.basename(data.rstrip("/")) or "text"
    while (root := os.path.splitext(name))[1].lower() in _EXTENSIONS and root[0]:
        name = root[0]
    return name


_EXTENSIONS = {".txt", ".gz", ".jsonl", ".csv", ".tsv", ".parquet", ".json", ".tokens"}


def _slug(text: str) -> str:
    """Return lower-case ASCII letters, digits, dots and dashes, at most 40; the rest become dashes."""
    plain = re.sub(r"[^a-z0-9._]+", "-", text.lower()).strip("-._")
    return plain[:40].rstrip("-._") or "text"


def _created(folder: Path) -> int | None:
    try:
        return read_manifest(folder).created
    except RunError:
        return None


def _hint(path: Path, runs: Path) -> str:
    names = [folder.name for folder in list_runs(runs)]
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.5)
    if near:
        return f"; did you mean '{near[0]}'?"
    if names:
        return f"; runs there: {', '.join(names[:5])}{', …' if len(names) > 5 else ''}"
    return "; train one with: nextword train DATA"
