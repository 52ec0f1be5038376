"""Models for a server that was given no run: trained on the embedded corpus, and kept for the next time.

An n-gram is there at once; a network is trained by a process of its own for most of a minute, and is served
when it is done. So a class sees something at the first command.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from nextword.api.serve import ServeSettings
from nextword.api.train import train
from nextword.core.errors import NextwordError
from nextword.data.corpora import DEFAULT
from nextword.server.models import Shelf
from nextword.store.names import list_runs
from nextword.system.machine import cache_folder

COUNTS, NETWORK = "ngram", "lstm"
MINUTES = "0.7"
_log = logging.getLogger("nextword.server")


def folder() -> Path:
    """Return where these runs are kept: another version of the program trains its own."""
    return cache_folder() / "first" / version("nextword")


def first_shelf(settings: ServeSettings, tell: Callable[[str], None], place: Path | None = None) -> Shelf:
    """Return a shelf with what is trained already, and at least the n-gram."""
    place = place or folder()
    found = {path.name: path for path in list_runs(place)}
    if COUNTS not in found:
        tell(f"no run was named: an n-gram is counted on the embedded corpus '{DEFAULT}'")
        train(DEFAULT, model=COUNTS, set={"model.order": 3}, out=place / COUNTS, overwrite=True)
        found[COUNTS] = place / COUNTS
    shelf = Shelf({name: found[name] for name in sorted(found, key=lambda name: name != COUNTS)}, settings)
    if NETWORK not in found and importlib.util.find_spec("torch") is not None:
        shelf.expected.add(NETWORK)
        tell(f"'{NETWORK}' is trained meanwhile; it is served in about a minute")
    return shelf


class Training:
    """A network that is trained by a process of its own while the server answers."""

    def __init__(self, shelf: Shelf, place: Path | None = None) -> None:
        self.shelf, self.out = shelf, (place or folder()) / NETWORK
        self.process: subprocess.Popen[bytes] | None = None

    async def run(self) -> None:
        """Train, then serve what was trained; an error is logged, and the server goes on without it."""
        command = [
            sys.executable, "-m", "nextword", "train", DEFAULT, "--model", NETWORK, "--minutes", MINUTES,
            "--out", str(self.out), "--overwrite",
        ]  # fmt: skip
        quiet = subprocess.DEVNULL
        self.process = await asyncio.to_thread(
            subprocess.Popen, command, stdin=quiet, stdout=quiet, stderr=quiet
        )
        try:
            code = await asyncio.to_thread(self.process.wait)
            if code == 0:
                await asyncio.to_thread(self.shelf.add, NETWORK, self.out)
            elif not self.shelf.is_draining:
                _log.warning("'%s' could not be trained (exit code %d)", NETWORK, code)
        except NextwordError as error:
            _log.warning("'%s' could not be opened: %s", NETWORK, error)
        finally:
            self.shelf.expected.discard(NETWORK)

    def stop(self) -> None:
        """End the training if the server ends before it."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
            if self.process.poll() is None:
                self.process.kill()
