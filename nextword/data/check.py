"""Check a text before training: counts, repeated lines, unseen words, and anything suspicious.

One pass, bounded memory. Encoding problems are all collected here with their places, whereas training stops
at the first. The curve of unseen words is the lectures' sparsity problem, on the user's own text.
[IITD-1 "Sparsity Problems with n-gram Language models"]
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from itertools import pairwise
from typing import IO, Any

import numpy as np

from nextword.core.contracts import END, START, Block
from nextword.core.errors import DataError
from nextword.core.events import Done, Event, Progress, Stage, result_of
from nextword.data.paths import Source, resolve
from nextword.data.readers import Paths, Reader
from nextword.data.report import CheckReport, Longest, advise
from nextword.data.settings import DataSettings
from nextword.text.chunks import word_chunks
from nextword.text.scan import Scanner
from nextword.text.vocab import FIRST_WORD, Vocabulary

MOST_PROBLEMS = 20
TENTHS = 10
_SAMPLE = 1_000_000  # maximum number of line fingerprints

_ODD = {
    "odd spaces": "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000",
    "line separators": "\u2028\u2029\u0085\v\f",
    "zero-width characters": "\u200b-\u200d\u2060\ufeff\u00ad",
    "direction marks": "\u200e\u200f\u202a-\u202e\u2066-\u2069",
    "control characters": "\x01-\x08\x0e-\x1f\x7f",
    "replacement characters": "\ufffd",
}
_KINDS = {name: re.compile(f"[{members}]") for name, members in _ODD.items()}
_ANY = re.compile(f"[{''.join(_ODD.values())}]")


def check(paths: Paths, settings: DataSettings | None = None) -> CheckReport:
    """Check the user's files and return the report."""
    report: CheckReport = result_of(checking(paths, settings))
    return report


def checking(paths: Paths, settings: DataSettings | None = None) -> Iterator[Event]:
    """Check with progress in bytes; the last event is ``Done(report)``."""
    looking = _Looking(resolve(paths), settings or DataSettings())
    yield Stage("check", looking.reader_size, "bytes")
    done = 0
    with tempfile.TemporaryFile(prefix="nextword-") as file:
        for size in looking.read(file):
            done += size
            yield Progress(done)
        report = looking.report(file)
    yield Done(report)


class _Looking:
    """One pass over the sources."""

    def __init__(self, sources: list[Source], settings: DataSettings) -> None:
        self._sources, self._settings = sources, settings
        self._problems: list[str] = []
        self._more_problems = 0
        self._notes: list[str] = []
        self._lines, self._odd = _Lines(), Counter[str]()
        self._scanner = Scanner(Vocabulary(b""), "line", learn=True)
        self._bytes = self._documents = 0
        self.reader_size = Reader(sources, settings, True, False).size

    def _collect(self, error: DataError) -> None:
        if len(self._problems) < MOST_PROBLEMS:
            self._problems.append(str(error))
        else:
            self._more_problems += 1

    def read(self, file: IO[bytes]) -> Iterator[int]:
        """Read every source; one that cannot be read at all is recorded as a problem."""
        for source in self._sources:
            reader = Reader([source], self._settings, True, False, self._collect)
            for chunk in word_chunks(self._seen(reader), "line"):
                file.write(self._scanner.scan(chunk).ids.tobytes())
                yield chunk.bytes
            self._notes += [note.message for note in reader.notes]
            self._bytes += reader.bytes
            self._documents += reader.documents

    def _seen(self, reader: Reader) -> Iterator[Block]:
        try:
            for block in reader:
                self._lines.add(block)
                self._count_odd(block.data)
                yield block
        except DataError as error:  # the rest of this file is unreadable
            self._collect(error)

    def _count_odd(self, data: bytes) -> None:
        """Count characters that are often mistakes."""
        for character, count in Counter(_ANY.findall(data.decode("utf-8", "replace"))).items():
            kind = next(name for name, pattern in _KINDS.items() if pattern.match(character))
            self._odd[kind] += count

    def report(self, file: IO[bytes]) -> CheckReport:
        """Build the report."""
        file.seek(0, 2)
        ids = np.memmap(file, np.int32, "r") if file.tell() else np.zeros(0, np.int32)
        lines = self._lines
        counts: dict[str, Any] = {
            "lines": lines.count,
            "blank_lines": lines.blank,
            "words": int(len(ids) - np.count_nonzero(ids == START) - np.count_nonzero(ids == END)),
            "types": int(ids.max(initial=FIRST_WORD - 1)) - FIRST_WORD + 1,
            "bytes": self._bytes,
            "documents": self._documents,
            "duplicate_lines": lines.duplicates,
        }
        curve = unseen_curve(ids)
        if self._more_problems:
            self._problems.append(f"and {self._more_problems:,} more")
        advice = advise(counts, curve, lines.longest, dict(self._odd), bool(self._problems))
        return CheckReport(
            **counts,
            longest_line=lines.longest,
            unknown_curve=curve,
            odd_characters=dict(self._odd),
            problems=tuple(self._problems),
            notes=tuple(self._notes),
            advice=tuple(advice),
        )


def unseen_curve(ids: Any) -> tuple[float, ...]:
    """Return, for each tenth of the words after the first, the share that no earlier tenth had.

    Ids are in order of first occurrence, so an id above all earlier ones is a new word.
    """
    edges = [len(ids) * i // TENTHS for i in range(TENTHS + 1)]
    known, shares = 0, []
    for first, stop in pairwise(edges):
        words = ids[first:stop]
        words = words[words >= FIRST_WORD]
        if len(words):
            if known:
                shares.append(float(np.count_nonzero(words >= known) / len(words)))
            known = max(known, int(words.max()) + 1)
    return tuple(shares)


class _Lines:
    """Counts lines, finds the longest, and counts repetitions of earlier ones.

    Repetitions are exact up to a million distinct lines, then estimated on a fixed fraction of the lines.
    """

    def __init__(self) -> None:
        self.count = self.blank = 0
        self.longest = Longest(0, "", 0)
        self._fingerprints: set[int] = set()
        self._fraction, self._repeats = 1, 0
        self._open = b""  # the start of an unfinished line, or as much of it as needed
        self._open_size = 0

    @property
    def duplicates(self) -> int:
        """Number of lines, other than blank ones, that repeat an earlier one."""
        return self._repeats * self._fraction

    def add(self, block: Block) -> None:
        """Process every line of a block."""
        *whole, rest = block.data.split(b"\n")
        number = block.line
        for line in whole:
            self._line(self._open + line, self._open_size + len(line), block.source, number)
            self._open, self._open_size = b"", 0
            number += 1
        self._open, self._open_size = (self._open + rest)[:4096], self._open_size + len(rest)
        if block.ends_document and self._open_size:
            self._line(self._open, self._open_size, block.source, number)
            self._open, self._open_size = b"", 0

    def _line(self, line: bytes, size: int, source: str, number: int) -> None:
        self.count += 1
        if size > self.longest.bytes:
            self.longest = Longest(size, source, number)
        text = line.strip()
        if not text:
            self.blank += 1
            return
        mark = int.from_bytes(blake2b(text, digest_size=8).digest(), "little")
        if mark % self._fraction:
            return
        if mark in self._fingerprints:
            self._repeats += 1
        else:
            self._fingerprints.add(mark)
            if len(self._fingerprints) > _SAMPLE:
                self._fraction *= 2
                self._fingerprints = {mark for mark in self._fingerprints if not mark % self._fraction}
                self._repeats //= 2
