"""Models for a server that was given no run: trained on the embedded corpus, and kept for the next time.

The server listens at once. Beside it an n-gram is counted within seconds, then a network is trained for most
of a minute, each by a process of its own, and served when it is done: a class sees something at once.
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
from nextword.core.errors import NextwordError
from nextword.data.corpora import DEFAULT
from nextword.server.models import Shelf
from nextword.store.names import list_runs
from nextword.system.machine import cache_folder

COUNTS, NETWORK = "ngram", "lstm"
MINUTES = "0.7"  # for the network
_log = logging.getLogger("nextword.server")


def folder() -> Path:
    """Return where these runs are kept: another version of the program trains its own."""
    return cache_folder() / "first" / version("nextword") / DEFAULT


def first_shelf(settings: ServeSettings, tell: Callable[[str], None], place: Path | None = None) -> Shelf:
    """Return a shelf with what is trained already; what is not is expected."""
    place = place or folder()
    found = {path.name: path for path in list_runs(place)}
    shelf = Shelf({name: found[name] for name in sorted(found, key=lambda name: name != COUNTS)}, settings)
    if COUNTS not in found:
        shelf.expected[COUNTS] = place / COUNTS
        tell(f"no run was named: an n-gram is counted on the embedded corpus '{DEFAULT}', in a few seconds")
    if NETWORK not in found and importlib.util.find_spec("torch") is not None:
        shelf.expected[NETWORK] = place / NETWORK
        tell(f"'{NETWORK}' is trained meanwhile; it is served in about a minute")
    return shelf


class Training:
    """Models that are trained by processes of their own while the server answers."""

    def __init__(self, shelf: Shelf, tell: Callable[[str], None]) -> None:
        self.shelf, self.tell = shelf, tell
        self.process: subprocess.Popen[bytes] | None = None

    async def run(self) -> None:
        """Train what is expected, the n-gram first; both are measured on the same end of the text."""
        counted = ["--set", "model.order=3", "--set", "data.hold_out=0.05"]
        how = {COUNTS: counted, NETWORK: ["--minutes", MINUTES]}
        for name, out in list(self.shelf.expected.items()):
            if not self.shelf.is_draining:
                await self._train(name, out, how[name])

    async def _train(self, name: str, out: Path, how: list[str]) -> None:
        """Train one, then serve it; an error is logged, and the server goes on without it."""
        quiet = subprocess.DEVNULL
        program = [sys.executable, "-m", "nextword", "train", DEFAULT, "--model", name]
        self.process = await asyncio.to_thread(
            subprocess.Popen, [*program, *how, "--out", str(out), "--overwrite"],
            stdin=quiet, stdout=quiet, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            _, said = await asyncio.to_thread(self.process.communicate)
            if self.process.returncode == 0:
                await asyncio.to_thread(self.shelf.add, name, out)
                self.tell(f"'{name}' is served now")
            elif not self.shelf.is_draining:
                _log.warning("'%s' could not be trained: %s", name, _reason(said, self.process.returncode))
        except NextwordError as error:
            _log.warning("'%s' could not be opened: %s", name, error)
        finally:
            del self.shelf.expected[name]

    def stop(self) -> None:
        """End the training if the server ends before it."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
            if self.process.poll() is None:
                self.process.kill()


def _reason(said: bytes, code: int) -> str:
    """Return the last line that a process printed: its error."""
    lines = said.decode("utf-8", "replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), f"exit code {code}")
    return last.removeprefix("nextword: ")
