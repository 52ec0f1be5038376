r"""Where things are in an ARPA file: its counts, its sections, ``\end\``; and what it may be instead.

Counts are compared with the bytes that follow before anything is allocated. The messages follow KenLM's,
which name the likely cause.
"""

from __future__ import annotations

import mmap
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from nextword.core.errors import FormatError
from nextword.formats.arpa.lines import shown
from nextword.formats.gz import MAGIC, gunzip

Data = bytes | mmap.mmap
_HEAD = 1 << 16  # how far into a file prose may stand before \data\
_MAX_ORDER = 50
_DATA_LINE = re.compile(rb"^\\data\\[ \t]*\r?$", re.MULTILINE)
_COUNT_LINE = re.compile(rb"ngram\s+(\d{1,20})\s*=\s*(\d{1,30})\s*")
_BLANKS = b" \t\r\n"


@dataclass(frozen=True)
class Section:
    """The lines of one order: bytes ``start … end`` of the file, and how many the header promises."""

    n: int
    count: int
    start: int
    end: int


@dataclass(frozen=True)
class ArpaFile:
    """The bytes of a file, unpacked, and where its sections are."""

    path: str
    data: Data
    sections: tuple[Section, ...]

    def line_at(self, offset: int) -> int:
        """Return the number of the line that holds a byte."""
        step = 1 << 24
        return 1 + sum(self.data[i : min(i + step, offset)].count(b"\n") for i in range(0, offset, step))

    def line_of_row(self, section: Section, row: int) -> int:
        """Return the number of the line of an n-gram, counted from 0 in its section."""
        return self.line_at(section.start) + row


def open_source(path: str | os.PathLike[str]) -> ArpaFile:
    """Map a file (or unpack a gzip one, known by its first bytes) and find its sections."""
    name = os.fspath(path)
    data = _bytes_of(name)
    if not len(data):
        raise FormatError("the file is empty; it was probably never finished", name)
    return ArpaFile(name, data, _sections(data, name))


def _bytes_of(path: str) -> Data:
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            mappable = stat.S_ISREG(status.st_mode) and status.st_size > 0
            data: Data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if mappable else file.read()
    except FileNotFoundError as error:
        raise FormatError(f"there is no such file{_nearest(path)}", path) from error
    except OSError as error:
        raise FormatError(
            f"the file cannot be read ({error.strerror}); check its permissions", path
        ) from error
    if data[:2] == MAGIC:
        return gunzip(memoryview(data), path)
    return data


def _nearest(path: str) -> str:
    import difflib

    folder = Path(path).parent
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    near = difflib.get_close_matches(Path(path).name, names, n=1)
    return f"; did you mean '{folder / near[0]}'?" if near else "; check the path"


def _sections(data: Data, path: str) -> tuple[Section, ...]:
    found = _DATA_LINE.search(data[:_HEAD])
    if found is None:
        raise _not_arpa(data[:_HEAD], path)
    counts, at = _counts(data, found.end(), path)
    _check_sizes(counts, data, at, path)
    sections = []
    start = _expect_header(data, at, 1, path, whole_gap=True)
    for n, count in enumerate(counts, start=1):
        if n < len(counts):
            end = data.find(b"\n\\%d-grams:" % (n + 1), start - 1)
        else:
            end = data.find(b"\n\\end\\", start - 1)
        if end < 0:
            raise _cut_off(data, n, len(counts), path)
        first = _skip_blank_lines(data, min(start, end), end)
        sections.append(Section(n, count, first, _trim(data, first, end)))
        start = _expect_header(data, end, n + 1, path) if n < len(counts) else end + len(b"\n\\end\\")
    rest = data[start : start + 1000].strip(_BLANKS)
    if rest:
        raise FormatError(
            f"{shown(rest)} comes after \\end\\, where the file should end; cut it off, or write it again",
            path,
            _line(data, start) + 1,
        )
    return tuple(sections)


def _counts(data: Data, at: int, path: str) -> tuple[list[int], int]:
    """Return the numbers of ``ngram N=COUNT``, and the byte where they end."""
    counts: list[int] = []
    at += 1
    while at < len(data):
        stop = data.find(b"\n", at)
        stop = len(data) if stop < 0 else stop
        line = data[at : min(stop, at + 1000)]
        if line.startswith(b"\\"):
            break
        if line.strip(_BLANKS):
            match = _COUNT_LINE.fullmatch(line.strip(_BLANKS))
            if match is None or int(match[1]) != len(counts) + 1 or len(counts) >= _MAX_ORDER:
                raise FormatError(
                    f"{shown(line)} should be 'ngram {len(counts) + 1}=COUNT': the header lists the orders "
                    f"1, 2, … (at most {_MAX_ORDER}), one a line; write the file again",
                    path,
                    _line(data, at),
                )
            counts.append(int(match[2]))
        at = stop + 1
    if not counts:
        raise FormatError(
            "no 'ngram 1=COUNT' follows \\data\\; the file is cut off or is not an ARPA file",
            path,
            _line(data, at - 1),
        )
    return counts, min(at, len(data))


def _check_sizes(counts: list[int], data: Data, at: int, path: str) -> None:
    """Refuse a header that promises more n-grams than fit: each takes at least 2n+2 bytes."""
    left = len(data) - at
    for n, count in enumerate(counts, start=1):
        if count * (2 * n + 2) > left + 1:
            line = _line(data, data.find(b"ngram"))
            raise FormatError(
                f"the header promises {count:,} {n}-grams, but only {left:,} bytes follow; the file "
                "is cut off or its counts are wrong",
                path,
                line + n - 1,
            )
    if counts[0] == 0:
        raise FormatError("the header promises 0 1-grams; a model needs words", path, _line(data, at) - 1)


def _expect_header(data: Data, at: int, n: int, path: str, whole_gap: bool = False) -> int:
    r"""Return the byte after the line ``\n-grams:``, which must be the next line that is not empty."""
    header = b"\\%d-grams:" % n
    place = at
    while place < len(data) and data[place : place + 1] in (b" ", b"\t", b"\r", b"\n"):
        place += 1
    stop = data.find(b"\n", place)
    stop = len(data) if stop < 0 else stop
    line = data[place : min(stop, place + 1000)]
    if line.strip(_BLANKS) != header:
        if not line and whole_gap:
            raise _cut_off(data, 0, n, path)
        raise FormatError(
            f"{shown(line)} was found where '{header.decode()}' should begin; write the file again",
            path,
            _line(data, place),
        )
    return min(stop + 1, len(data))


def _skip_blank_lines(data: Data, start: int, end: int) -> int:
    """Return where the first line with something in it begins: KenLM reads over blank lines there."""
    while (stop := data.find(b"\n", start, end)) >= 0 and not data[start:stop].strip(_BLANKS):
        start = stop + 1
    return start


def _trim(data: Data, start: int, end: int) -> int:
    while end > start and data[end - 1 : end] in (b" ", b"\t", b"\r", b"\n"):
        end -= 1
    return max(start, end)


def _cut_off(data: Data, n: int, order: int, path: str) -> FormatError:
    missing = f"\\{n + 1}-grams:" if n < order else "\\end\\"
    return FormatError(
        f"the file stops before '{missing}'; it is cut off, so write or copy it again",
        path,
        _line(data, max(0, len(data) - 1)),
    )


def _line(data: Data, offset: int) -> int:
    return ArpaFile("", data, ()).line_at(max(0, offset))


def _not_arpa(head: bytes, path: str) -> FormatError:
    r"""Return what a file without ``\data\`` probably is."""
    start = head.lstrip(_BLANKS)[:200]
    lower = start.lower()
    if start.startswith(b"mmap lm http://kheafield.com/code"):
        what = "this is a KenLM binary, which only KenLM can read; keep the ARPA file that it was built from"
    elif start.startswith(b"iARPA"):
        what = "this is an IRSTLM iARPA file; make an ARPA file of it with: compile-lm --text=yes IN OUT"
    elif start.startswith(b"blmt"):
        what = "this is an IRSTLM binary; make an ARPA file of it with: compile-lm --text=yes IN OUT"
    elif lower.startswith((b"<!doctype", b"<html", b"<?xml")):
        what = "this looks like HTML, probably a download that failed; download the file again"
    elif start.startswith(b"version https://git-lfs"):
        what = "this is a Git LFS pointer, not the file itself; run: git lfs pull"
    elif head.startswith((b"\xff\xfe", b"\xfe\xff")):
        what = "this looks like UTF-16 text; convert it to UTF-8"
    elif b"\\data\\" in head:
        what = "'\\data\\' must be on a line of its own"
    else:
        what = f"an ARPA file begins with the line '\\data\\', but this one with {shown(start[:40])}"
    return FormatError(what, path, 1)
