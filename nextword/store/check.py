"""Is a run folder whole? Manifest and every SHA-256, checkpoints, locks, and what dead processes left.

Nothing is changed: what is found is told, with the command that goes on from it.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from nextword.core.errors import RunError
from nextword.core.findings import Finding, note, ok, problem
from nextword.core.sizes import show_size
from nextword.store import replace
from nextword.store.checkpoints import DAMAGED, TEMPORARY, Found, find_last
from nextword.store.manifest import MANIFEST
from nextword.store.reading import open_run
from nextword.store.unfinished import FOLDER, checkpoints_in

_LEFT = re.compile(r"\.(?P<name>.+)\.(?:lock|(?P<kind>new|old)-\d+-[0-9a-f]{16})")


def check_run(run: Path, named: bool = True) -> Iterator[Finding]:
    """One run: its files against the manifest, then its training if that has not ended.

    ``named``: somebody asked for it, so that a folder which is no run is a problem.
    """
    about = os.fspath(run)
    if replace.is_locked(Path(os.path.realpath(run))):
        yield note(about, "another process is writing it now; wait for it")
    if os.path.lexists(run / MANIFEST):
        yield _verified(run, about)
    if checkpoints_in(run):
        yield from _training(run, about)
    elif not os.path.lexists(run / MANIFEST):
        said = f"it has neither a {MANIFEST} nor a checkpoint, so it is no run of nextword"
        yield (problem if named else note)(about, f"{said}; name the folder of a run")
    yield from _set_aside(run, about)


def runs_in(folder: Path) -> list[Path]:
    """The run itself; for a folder that is none, the runs right within it, as `compare` makes them."""
    if _is_run(folder):
        return [folder]
    within = [path for path in sorted(folder.iterdir()) if path.is_dir() and _is_run(path)]
    return within or [folder]


def _is_run(folder: Path) -> bool:
    return os.path.lexists(folder / MANIFEST) or bool(checkpoints_in(folder))


def _verified(run: Path, about: str) -> Finding:
    try:
        folder = open_run(run, verify=True)
    except RunError as error:
        return problem(about, str(error))
    size = sum(record.size for record in folder.manifest.files.values())
    return ok(about, f"{len(folder.names)} files, {show_size(size)}, every SHA-256 is right")


def _training(run: Path, about: str) -> Iterator[Finding]:
    """A training that has not ended: which checkpoint is good, and how to go on."""
    found = find_last(run, only_look=True)
    for message in found.damaged:
        yield problem(about, f"{message}; {_instead(found)}")
    if found.checkpoint is not None:
        state = "was stopped" if os.path.lexists(run / MANIFEST) else "has not ended"
        yield note(
            about,
            f"the training {state}; its checkpoint of step {found.checkpoint.step:,} is whole; go on with: "
            f"nextword train --out {shlex.quote(about)} --resume",
        )


def _instead(found: Found) -> str:
    if found.checkpoint is None:
        return "no other is left, so --resume starts from the beginning"
    return f"--resume takes the one of step {found.checkpoint.step:,} instead"


def _set_aside(run: Path, about: str) -> Iterator[Finding]:
    """Damaged checkpoints that were set aside, and halves of a writer that died."""
    try:
        names = sorted(os.listdir(run / FOLDER))
    except OSError:
        return
    for name in names:
        path = run / FOLDER / name
        if name.endswith(DAMAGED):
            yield note(about, f"{FOLDER}/{name} was damaged and set aside{_delete(path)}")
        elif TEMPORARY in name and not replace.is_locked(Path(os.path.realpath(run))):
            yield note(about, f"{FOLDER}/{name} was left by a writer that died; the next one removes it")


def check_leftovers(runs: Path) -> Iterator[Finding]:
    """Locks and halves of runs that processes left which were killed."""
    try:
        names = sorted(os.listdir(runs))
    except OSError:
        return
    for name in names:
        match = _LEFT.fullmatch(name)
        if match is None:
            continue
        target = Path(os.path.realpath(runs)) / match["name"]
        if replace.is_locked(target):
            continue
        yield _left(runs / name, match["kind"], target)


def _left(path: Path, kind: str | None, target: Path) -> Finding:
    about = os.fspath(path)
    if kind is None:
        return note(
            about,
            "a lock that a killed process left; it locks nothing, and the next training of that name takes it"
            f"; or remove it: rm {shlex.quote(about)}",
        )
    if kind == "old" and not target.exists():
        return problem(
            about,
            f"a process died while it replaced '{target.name}'; opening that run puts it back: "
            f"nextword generate {shlex.quote(os.fspath(target))}",
        )
    return note(about, f"half of a run that a killed process left{_delete(path)}")


def _delete(path: Path) -> str:
    size = sum(file.lstat().st_size for file in path.rglob("*"))
    return f" ({show_size(size)}); delete it when you need the room: rm -r {shlex.quote(os.fspath(path))}"
