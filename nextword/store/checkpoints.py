"""Checkpoints of a training: whole or not at all, checked when they are read, the last good one found.

``RUN/checkpoint`` holds ``ckpt-<step>-<training>`` folders, each with its manifest, and ``LAST``. Protocol:
temporary folder, fsync of every file and of the folder, rename, fsync of the parent, pointer, and only then
is the oldest deleted. Of 25 kills while saving, 24 destroy a file that is written in place; here, none.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from nextword.core.errors import RunError
from nextword.store import disk, replace
from nextword.store.manifest import read_manifest
from nextword.store.reading import RunFolder, open_run
from nextword.store.unfinished import FOLDER, NAME, checkpoints_in
from nextword.store.writing import NewRun

LAST = "LAST"
KEPT = 2  # the newest ones; each holds the best weights, too
_SPARE = 1.1  # of what is to be written must be free
TEMPORARY, DAMAGED = ".tmp-", ".damaged"


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint whose every byte was checked."""

    folder: RunFolder
    step: int
    training: str  # of which it is one

    @property
    def path(self) -> Path:
        """Where it stands."""
        return self.folder.path


@dataclass
class Found:
    """The newest good checkpoint, if there is one, and what was wrong with newer ones."""

    checkpoint: Checkpoint | None = None
    damaged: list[str] = field(default_factory=list)


class Checkpoints:
    """The checkpoints of one training in its run folder; the run's lock is the caller's."""

    def __init__(self, run: Path, training: str) -> None:
        self.run, self.path, self.training = run, run / FOLDER, training

    @contextmanager
    def writing(self, step: int, need: int = 0) -> Iterator[NewRun]:
        """Write the checkpoint of a step: ``with checkpoints.writing(120) as new: new.write(…)``.

        Errors of the disk are sentences, and what was there before stays as it is. ``need``: bytes.
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
            self._point(place.name)
        except OSError as error:
            raise disk.translate(error, place) from error
        finally:
            replace.remove(new.path)
        self._sweep(place.name)

    def hand_over(self, new: Path) -> None:
        """Put the newest checkpoint into another folder of the disk, too: a run that will replace ours."""
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
                disk.fsync_file(place / name)
        shutil.copyfile(self.path / LAST, new / FOLDER / LAST)
        disk.fsync_file(new / FOLDER / LAST)
        for folder in (place, new / FOLDER):
            disk.fsync_folder(folder)

    def _make_folder(self) -> None:
        """The folder and those above it; leftovers of a writer that died are removed."""
        if not self.path.is_dir():
            self.path.mkdir(parents=True)
            for folder in (self.path, self.run, self.run.parent):
                disk.fsync_folder(folder)
        for name in os.listdir(self.path):
            if TEMPORARY in name:
                replace.remove(self.path / name)

    def _newest(self) -> int:
        """When the newest of all checkpoints here was made, so that a clock set back changes no order."""
        return max((_created(path) for path in checkpoints_in(self.run)), default=0)

    def _leave_others(self) -> None:
        """Before the first one of a training: another training, which it replaces, is not pointed at."""
        last = _pointed(self.path)
        if last is not None and _parsed(last.name)[1] != self.training:
            (self.path / LAST).unlink()
            disk.fsync_folder(self.path)

    def _point(self, name: str) -> None:
        temporary = self.path / f"{LAST}{TEMPORARY}{os.getpid()}"
        with open(temporary, "wb") as file:
            file.write(f"{name}\n".encode())
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self.path / LAST)
        disk.fsync_folder(self.path)

    def _sweep(self, newest: str) -> None:
        """Delete all but the last few of this training, and those of others; never the one just written."""
        step = _parsed(newest)[0]
        ours = [path for path in checkpoints_in(self.run) if _parsed(path.name)[1] == self.training]
        older = [path for path in ours if _parsed(path.name)[0] < step]
        kept = {newest, *(path.name for path in older[len(older) - (KEPT - 1) :])}
        for path in checkpoints_in(self.run):
            if path.name not in kept:
                replace.remove(path)


def find_last(run: Path, only_look: bool = False) -> Found:
    """The newest checkpoint that is whole; a damaged one is set aside, and the one before it is taken.

    Only checkpoints of one training are looked at: that of ``LAST``, else that of the newest. With
    ``only_look`` everything stays where it is.
    """
    found = Found()
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
            aside = "" if only_look else f"; it is set aside as {_set_aside(path).name}"
            found.damaged.append(f"{reason}{aside}")
    return found


def _set_aside(path: Path) -> Path:
    aside = path.with_name(path.name + DAMAGED)
    replace.remove(aside)
    with suppress(OSError):
        os.rename(path, aside)
    return aside


def _pointed(folder: Path) -> Path | None:
    """The checkpoint that ``LAST`` names, if it is there."""
    with suppress(OSError, UnicodeDecodeError):
        name = (folder / LAST).read_text()[:100].strip()
        if NAME.fullmatch(name) and (folder / name).is_dir():
            return folder / name
    return None


def _parsed(name: str) -> tuple[int, str]:
    """Step and training of a checkpoint's name."""
    match = NAME.fullmatch(name)
    assert match is not None
    return int(match[1]), match[2]


def _created(path: Path) -> int:
    """When it was written; -1 if that cannot be read."""
    try:
        return read_manifest(path).created
    except RunError:
        return -1
