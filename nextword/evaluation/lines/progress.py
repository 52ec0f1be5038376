"""The scores of the lines so far, kept on disk, so that a long job can be resumed.

Two files beside the output: the scores, which are only appended to, and a small one that says how many of
them are valid and where the input continues. It is replaced atomically, after the scores are on disk; a crash
loses seconds.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from nextword.evaluation.lines.rules import Scores
from nextword.system.disk import write_atomically


class ScoreLog:
    """Append scores, with the offset in the input that they reach."""

    def __init__(self, path: Path | None, task: dict[str, Any]) -> None:
        """Open a log; ``path=None`` keeps scores in memory only, and another `task` starts over."""
        self.path, self.task = path, task
        self.parts: list[Scores] = []
        self.lines = self.offset = 0
        if path is not None:
            self._resume(path)

    @property
    def scores(self) -> Scores:
        """All scores so far."""
        if len(self.parts) != 1:
            self.parts = [np.concatenate([np.empty(0, np.float32), *self.parts])]
        return self.parts[0]

    def append(self, scores: Scores, offset: int) -> None:
        """Add the scores of some lines; the input continues at `offset`."""
        self.parts.append(scores)
        self.lines += len(scores)
        self.offset = offset
        if self.path is None:
            return
        with open(self._scores_file(self.path), "ab") as file:
            file.write(scores.astype("<f4").tobytes())
            file.flush()
            os.fsync(file.fileno())
        self._write_state(self.path)

    def remove(self) -> None:
        """Delete the log, because the job is done."""
        if self.path is not None:
            for file in (self.path, self._scores_file(self.path)):
                with suppress(FileNotFoundError):
                    file.unlink()

    def _resume(self, path: Path) -> None:
        state = _read_state(path)
        count = state.get("lines") if state.get("task") == self.task else None
        file = self._scores_file(path)
        if isinstance(count, int) and file.is_file() and file.stat().st_size >= 4 * count >= 0:
            self.lines, self.offset = count, int(state["offset"])
            self.parts = [np.fromfile(file, dtype="<f4", count=count).astype(np.float32, copy=False)]
            os.truncate(file, 4 * count)  # drop what came after the last complete step
        else:
            self.remove()
            path.parent.mkdir(parents=True, exist_ok=True)

    def _write_state(self, path: Path) -> None:
        state = {"task": self.task, "lines": self.lines, "offset": self.offset}
        write_atomically(path, json.dumps(state))

    @staticmethod
    def _scores_file(path: Path) -> Path:
        return path.with_name(path.name + ".scores")


def _read_state(path: Path) -> dict[str, Any]:
    """Read the state, or nothing: a state that cannot be read only costs time."""
    try:
        state = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) and isinstance(state.get("offset"), int) else {}


def fingerprint(path: Path) -> dict[str, Any]:
    """Identify an input: its size, time and beginning."""
    status = path.stat()
    with open(path, "rb") as file:
        head = hashlib.sha256(file.read(1 << 20)).hexdigest()
    return {"path": str(path.absolute()), "size": status.st_size, "time": status.st_mtime_ns, "head": head}


def kept_bytes(data: bytes, mask: np.ndarray[Any, np.dtype[np.bool_]]) -> bytes:
    """Return the lines of a block that the mask keeps, line ends included; no loop over lines."""
    if not len(mask) or not data:
        return b""
    letters = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(letters == 10) + 1
    if data[-1] != 10:
        ends = np.append(ends, len(data))
    return letters[np.repeat(mask, np.diff(ends, prepend=0))].tobytes()


def count_lines(data: bytes) -> int:
    """Count the lines of a block; the last one needs no line end."""
    return data.count(b"\n") + int(bool(data) and data[-1] != 10)


def blank_lines(data: bytes) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Tell which lines of a block hold whitespace only, if anything; no loop over lines."""
    letters = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(letters == 10)
    starts = np.concatenate([[0], ends + 1])
    starts = starts[starts < len(letters)]
    return ~np.logical_or.reduceat(letters > 32, starts) if len(starts) else np.zeros(0, np.bool_)


def whole_lines(pieces: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Yield the same bytes in blocks of about `size` that end with a line."""
    parts: list[bytes] = []
    total = 0
    for piece in pieces:
        end = piece.rfind(b"\n") + 1
        total += len(piece)
        if total < size or not end:
            parts.append(piece)
            continue
        yield b"".join([*parts, piece[:end]])
        parts, total = [piece[end:]], len(piece) - end
    rest = b"".join(parts)
    if rest:
        yield rest
