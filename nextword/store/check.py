"""Check whether a run folder is intact: manifest, every SHA-256, checkpoints, locks, and leftovers.

Nothing is changed: every finding comes with the command that fixes it.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from nextword.core.display import show_size
from nextword.core.errors import RunError
from nextword.core.findings import Finding, note, ok, problem
from nextword.store import replace
from nextword.store.checkpoints import DAMAGED, LatestCheckpoint, find_last
from nextword.store.manifest import MANIFEST
from nextword.store.reading import ABOUT, open_run
from nextword.store.unfinished import FOLDER, checkpoints_in
from nextword.system.disk import TEMPORARY

_LEFT = re.compile(r"\.(?P<name>.+)\.(?:lock|(?P<kind>new|old)-\d+-[0-9a-f]{16})")


def check_run(run: Path, named: bool = True) -> Iterator[Finding]:
    """Check one run: its files against the manifest, then its checkpoints if training is unfinished.

    ``named``: the user asked for it, so a folder that is not a run is a problem.
    """
    about = os.fspath(run)
    if replace.is_locked(Path(os.path.realpath(run))):
        yield note(about, "another process is writing it; wait for it to finish")
    if os.path.lexists(run / MANIFEST):
        yield _verified(run, about)
    if checkpoints_in(run):
        yield from _training(run, about)
    elif not os.path.lexists(run / MANIFEST):
        said = f"it has neither a {MANIFEST} nor a checkpoint, so it is not a nextword run"
        yield (problem if named else note)(about, f"{said}; give the folder of a run")
    yield from _set_aside(run, about)


def runs_in(folder: Path) -> list[Path]:
    """Return the run itself, or the runs directly inside a folder such as `compare` creates."""
    if _is_run(folder):
        return [folder]
    within = [path for path in sorted(folder.iterdir()) if path.is_dir() and _is_run(path)]
    return within or [folder]


def _is_run(folder: Path) -> bool:
    return os.path.lexists(folder / MANIFEST) or bool(checkpoints_in(folder))


def _verified(run: Path, about: str) -> Finding:
    try:
        folder = open_run(run, verify=True, about=ABOUT)
    except RunError as error:
        return problem(about, str(error))
    if folder.changed:
        names = ", ".join(folder.changed)
        return note(about, f"{names} changed or missing; the model is intact and does not need them")
    size = sum(record.size for record in folder.manifest.files.values())
    return ok(about, f"{len(folder.names)} files, {show_size(size)}, every SHA-256 matches")


def _training(run: Path, about: str) -> Iterator[Finding]:
    """Report an unfinished training run: which checkpoint is intact, and how to resume."""
    found = find_last(run, only_look=True)
    for message in found.damaged:
        yield problem(about, f"{message}; {_instead(found)}")
    if found.checkpoint is not None:
        state = "was interrupted" if os.path.lexists(run / MANIFEST) else "is unfinished"
        yield note(
            about,
            f"training {state}; its checkpoint of step {found.checkpoint.step:,} is intact; resume with: "
            f"nextword train --out {shlex.quote(about)} --resume",
        )


def _instead(found: LatestCheckpoint) -> str:
    if found.checkpoint is None:
        return "there is no other, so --resume starts over"
    return f"--resume uses the checkpoint of step {found.checkpoint.step:,} instead"


def _set_aside(run: Path, about: str) -> Iterator[Finding]:
    """Report damaged checkpoints that were renamed, and partial ones of a writer that died."""
    try:
        names = sorted(os.listdir(run / FOLDER))
    except OSError:
        return
    for name in names:
        path = run / FOLDER / name
        if name.endswith(DAMAGED):
            yield note(about, f"{FOLDER}/{name} is a damaged checkpoint that was renamed{_delete(path)}")
        elif TEMPORARY in name and not replace.is_locked(Path(os.path.realpath(run))):
            yield note(about, f"{FOLDER}/{name} was left by a dead process; the next training run removes it")


def check_leftovers(runs: Path) -> Iterator[Finding]:
    """Report locks and partial runs left by killed processes."""
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
            "a stale lock of a killed process; it does no harm, and the next run of that name reuses it"
            f"; or remove it: rm {shlex.quote(about)}",
        )
    if kind == "old" and not target.exists():
        return problem(
            about,
            f"a process died while replacing '{target.name}'; opening that run restores it: "
            f"nextword generate {shlex.quote(os.fspath(target))}",
        )
    return note(about, f"a partial run left by a killed process{_delete(path)}")


def _delete(path: Path) -> str:
    size = sum(file.lstat().st_size for file in path.rglob("*"))
    return f" ({show_size(size)}); to free the space: rm -r {shlex.quote(os.fspath(path))}"
