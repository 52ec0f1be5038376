"""Checkpoints of a training run: written atomically, verified when read; the last intact one is found.

``RUN/checkpoint`` holds ``ckpt-<step>-<training>`` folders, each with its manifest, and ``LAST``. Protocol:
temporary folder, fsync of every file and of the folder, rename, fsync of the parent, pointer, and only then
the oldest is deleted. Of 25 kills while saving, 24 destroyed a file that is written in place; here, none.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from nextword.core.errors import RunError
from nextword.store import replace
from nextword.store.manifest import read_manifest
from nextword.store.reading import RunFolder, open_run
from nextword.store.unfinished import FOLDER, NAME, checkpoints_in
from nextword.store.writing import NewRun
from nextword.system import disk
from nextword.system.disk import TEMPORARY, fsync_file, fsync_folder, write_atomically

LAST = "LAST"
KEPT = 2  # newest checkpoints; each also holds the best weights
_SPARE = 1.1  # times the bytes to be written must be free
DAMAGED = ".damaged"


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint whose every byte was verified."""

    folder: RunFolder
    step: int
    training: str  # identifier of the training run

    @property
    def path(self) -> Path:
        """Its folder."""
        return self.folder.path


@dataclass
class LatestCheckpoint:
    """The newest intact checkpoint, if any, and what was wrong with newer ones."""

    checkpoint: Checkpoint | None = None
    damaged: list[str] = field(default_factory=list)


class Checkpoints:
    """The checkpoints of one training run in its folder; the caller holds the run's lock."""

    def __init__(self, run: Path, training: str) -> None:
        self.run, self.path, self.training = run, run / FOLDER, training

    @contextmanager
    def writing(self, step: int, need: int = 0) -> Iterator[NewRun]:
        """Write the checkpoint of a step: ``with checkpoints.writing(120) as new: new.write(…)``.

        A failed write is an error of one sentence and leaves earlier checkpoints untouched. ``need``: bytes.
        """
        disk.check_space(self.path, int(_SPARE * need))
        place = self.path / f"ckpt-{step:06d}-{self.training}"
        new = NewRun(self.path / f"{place.name}{TEMPORARY}{os.getpid()}", place)
        try:
            self._make_folder()
            new.path.mkdir()
            yield new
            new.finish(self._newest())
            self._leave_others()
            replace.put_in_place(new.path, place)
            write_atomically(self.path / LAST, f"{place.name}\n")
        except OSError as error:
            raise disk.translate(error, place) from error
        finally:
            replace.remove(new.path)
        self._sweep(place.name)

    def hand_over(self, new: Path) -> None:
        """Copy the newest checkpoint into another folder on the same disk: the run that will replace ours."""
        last = _pointed(self.path)
        if last is None:
            return
        place = new / FOLDER / last.name
        place.mkdir(parents=True)
        for name in sorted(os.listdir(last)):
            try:
                os.link(last / name, place / name)
            except OSError:  # a file system without hard links
                shutil.copyfile(last / name, place / name)
                fsync_file(place / name)
        shutil.copyfile(self.path / LAST, new / FOLDER / LAST)
        fsync_file(new / FOLDER / LAST)
        for folder in (place, new / FOLDER):
            fsync_folder(folder)

    def _make_folder(self) -> None:
        """Create the folder and its parents; remove leftovers of a writer that died."""
        if not self.path.is_dir():
            self.path.mkdir(parents=True)
            for folder in (self.path, self.run, self.run.parent):
                fsync_folder(folder)
        for name in os.listdir(self.path):
            if TEMPORARY in name:
                replace.remove(self.path / name)

    def _newest(self) -> int:
        """Return when the newest checkpoint was created, so that a clock set back changes no order."""
        return max((_created(path) for path in checkpoints_in(self.run)), default=0)

    def _leave_others(self) -> None:
        """Remove the pointer to another training run, which the first checkpoint of this one replaces."""
        last = _pointed(self.path)
        if last is not None and _parsed(last.name)[1] != self.training:
            (self.path / LAST).unlink()
            fsync_folder(self.path)

    def _sweep(self, newest: str) -> None:
        """Delete all but the last few of this training run, and all of others; never the one just written."""
        step = _parsed(newest)[0]
        ours = [path for path in checkpoints_in(self.run) if _parsed(path.name)[1] == self.training]
        older = [path for path in ours if _parsed(path.name)[0] < step]
        kept = {newest, *(path.name for path in older[len(older) - (KEPT - 1) :])}
        for path in checkpoints_in(self.run):
            if path.name not in kept:
                replace.remove(path)


def find_last(run: Path, only_look: bool = False) -> LatestCheckpoint:
    """Find the newest intact checkpoint; a damaged one is renamed, and the one before it is used.

    Only checkpoints of one training run are considered: that of ``LAST``, else that of the newest. With
    ``only_look`` nothing is renamed.
    """
    found = LatestCheckpoint()
    pointed = _pointed(run / FOLDER)
    every = sorted(checkpoints_in(run), key=lambda path: (path == pointed, _created(path)), reverse=True)
    every = [path for path in every if _parsed(path.name)[1] == _parsed(every[0].name)[1]]
    for path in every:
        try:
            step, training = _parsed(path.name)
            found.checkpoint = Checkpoint(open_run(path, verify=True), step, training)
            return found
        except RunError as error:
            reason = str(error).split(";")[0]
            aside = "" if only_look else f"; it was renamed to {_set_aside(path).name}"
            found.damaged.append(f"{reason}{aside}")
    return found


def _set_aside(path: Path) -> Path:
    aside = path.with_name(path.name + DAMAGED)
    replace.remove(aside)
    with suppress(OSError):
        os.rename(path, aside)
    return aside


def _pointed(folder: Path) -> Path | None:
    """Return the checkpoint that ``LAST`` names, if it exists."""
    with suppress(OSError, UnicodeDecodeError):
        name = (folder / LAST).read_text()[:100].strip()
        if NAME.fullmatch(name) and (folder / name).is_dir():
            return folder / name
    return None


def _parsed(name: str) -> tuple[int, str]:
    """Return the step and the training run of a checkpoint's name."""
    match = NAME.fullmatch(name)
    assert match is not None
    return int(match[1]), match[2]


def _created(path: Path) -> int:
    """Return when it was created; -1 if unknown."""
    try:
        return read_manifest(path).created
    except RunError:
        return -1
