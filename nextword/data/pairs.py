"""Pairs of texts, a source and its target: two aligned files, TSV, CSV, JSON lines or Parquet.

[PENN "Sequence to sequence": translation, summarization, dialogue, question answering.] Everything wrong is
reported with its file and line; a pair with an empty side is left out and counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, zip_longest
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from nextword.core.errors import DataError
from nextword.core.settings import Settings, Slot
from nextword.data.columns import Row, column_of, json_objects, no_field, parquet_records, read_rows
from nextword.data.delimiter import NAMES, find_delimiter, peek
from nextword.data.paths import Source, resolve
from nextword.data.plain import TextChecker
from nextword.data.settings import DataSettings
from nextword.data.tables import lines_of

SOURCES = frozenset(("source", "src", "input", "question", "document", "body", "text"))
TARGETS = frozenset(("target", "tgt", "output", "answer", "summary", "subject", "translation", "reference"))
_SEEN = 100  # rows from which the columns are found
_TABLES = ("csv", "tsv", "jsonl", "parquet")
_RAGGED = 0.01  # of the rows: a table with more of another width is not a table


class PairDataSettings(Settings):
    """How pairs of texts are read."""

    format: Literal["auto", "lines", "tsv", "csv", "jsonl", "parquet"] = Field(
        "auto", description="of files; lines: two aligned files; auto: by their number and extensions"
    )
    source: str = Field(
        "auto", description="column of the source: a name, or a number from 1; several joined by +"
    )
    target: str = Field("auto", description="column of the target: a name, or a number from 1")
    delimiter: Literal["auto", "comma", "semicolon", "tab"] = Field(
        "auto", description="what separates the columns of CSV and TSV; auto: by the header and the rows"
    )
    longest: int = Field(250, ge=1, le=2**20, description="most tokens of a side of a pair in training")
    too_long: Literal["skip", "cut"] = Field(
        "skip", description="longer pairs are left out of training; cut: ends are cut off, of sources always"
    )
    measure: Slot["measure"] = Field(
        "translation", description="what kind of job it is, which says what eval measures: slot measure"
    )
    splitter: Literal["auto", "13a", "intl", "char", "zh"] = Field(
        "auto", description="how sacrebleu splits texts into words for BLEU; auto: by the script"
    )
    hold_out: float = Field(
        0.05, ge=0.0, le=0.5, description="share of the pairs held out for validation, without --valid"
    )


class Pair(NamedTuple):
    """A source, its target, and where they stand."""

    source: str
    target: str
    path: str
    line: int


class PairedText:
    """The pairs of some files; ``untargeted``: a table may lack the column of the target."""

    def __init__(self, names: Sequence[str], settings: PairDataSettings, untargeted: bool = False) -> None:
        self.names, self.settings, self.untargeted = tuple(names), settings, untargeted
        self.sources = resolve(names)
        self.sha256 = ""
        self.empty = 0  # pairs that were left out because a side is empty
        self.remarks: list[str] = []

    @property
    def size(self) -> int | None:
        """Return the bytes of the files, if known."""
        sizes = [source.size for source in self.sources]
        return None if None in sizes else sum(size or 0 for size in sizes)

    def read(self) -> list[Pair]:
        """Read all pairs whose sides are not empty; there must be at least one."""
        digest, found = hashlib.sha256(), []
        self.empty = 0
        for each in self.stream():
            if not each.source.strip() or not each.target.strip():
                self.empty += 1
                continue
            digest.update(f"{each.source}\0{each.target}\0".encode("utf-8", "surrogatepass"))
            found.append(each)
        if not found:
            raise DataError("there is no pair of texts here", self.sources[0].shown)
        self.sha256 = digest.hexdigest()
        if self.empty:
            self.remarks.append(f"{self.empty:,} pairs with an empty side were left out")
        return found

    def stream(self) -> Iterator[Pair]:
        """Yield all pairs in bounded memory, empty sides included."""
        if self.are_aligned:
            for at in range(0, len(self.sources), 2):
                yield from _aligned(*self.sources[at : at + 2])
            return
        for source in self.sources:
            each = None
            for each in self._file(source):
                yield each
            if each is None:
                raise DataError("there is no pair of texts in this file", source.shown)

    @property
    def are_aligned(self) -> bool:
        """Tell whether the files belong together two by two, line by line."""
        kind = self.settings.format
        if kind == "auto" and (len(self.sources) < 2 or any(each.format in _TABLES for each in self.sources)):
            return False
        if kind not in ("auto", "lines"):
            return False
        if kind == "auto" and all("\t" in _first_line(each) for each in self.sources):
            return False
        if len(self.sources) % 2:
            raise DataError(
                f"aligned files come in twos, a source and its target, and there are {len(self.sources)}; "
                "give both files, or one table with a source and a target in each line",
                self.sources[-1].shown,
            )
        return True

    def _file(self, source: Source) -> Iterator[Pair]:
        kind: str = self.settings.format
        if kind == "auto":
            kind = source.format if source.format in _TABLES else "tsv"
        if kind == "parquet":
            yield from self._records(parquet_records(source), source.shown)
            return
        lines = _lines(source)
        if kind == "jsonl":
            yield from self._records(json_objects(lines, source.shown, "a source and a target"), source.shown)
            return
        sample, lines = peek(lines)
        usual = "\t" if kind == "tsv" else ","
        named = NAMES.get(self.settings.delimiter)
        delimiter = named or find_delimiter(sample, usual, _named(self.settings), source.shown)
        ragged: list[Row] = []
        count = 0
        for pair in self._table(read_rows(lines, delimiter, usual, source.shown, ragged), source.shown):
            count += 1
            yield pair
        self._leave_out(ragged, count, source.shown)

    def _leave_out(self, ragged: Sequence[Row], count: int, path: str) -> None:
        """Count rows with a tab too many or too few; refuse a table that has many of them."""
        if not ragged:
            return
        first = ragged[0]
        if len(ragged) > max(1, _RAGGED * count):
            raise DataError(
                f"{len(ragged):,} of {count + len(ragged):,} rows have another number of columns than the "
                f"first, this one {len(first.cells)}; separate source and target by one tab",
                path, first.line,
            )  # fmt: skip
        self.remarks.append(
            f"{len(ragged):,} rows with another number of columns than the first were left out, as in "
            f"{path}:{first.line}"
        )

    def _records(self, records: Iterable[tuple[int, dict[str, Any]]], path: str) -> Iterator[Pair]:
        for line, record in records:
            sources = self._fields(record, "source", SOURCES, path, line)
            taken = set(sources)
            targets = self._fields(record, "target", TARGETS - taken, path, line)
            yield Pair(_joined(record, sources), _joined(record, targets), path, line)

    def _fields(
        self, record: dict[str, Any], side: str, usual: Iterable[str], path: str, line: int
    ) -> list[str]:
        """Return the fields of a side; none where only sources are read."""
        wanted = getattr(self.settings, side)
        if wanted != "auto":
            names: list[str] = wanted.split("+")
            missing = [name for name in names if name not in record]
        else:
            names = [name for name in record if name.lower() in usual][:1]
            missing = [] if names else [side]
        if missing and side == "target" and self.untargeted:
            return []
        if missing:
            raise DataError(no_field(f"data.{side}", missing[0], list(record)), path, line)
        return names

    def _table(self, rows: Iterator[Row], path: str) -> Iterator[Pair]:
        first = list(islice(rows, _SEEN))
        if not first:
            return
        header = _header(first[0].cells, self.settings)
        body = first[1:] if header else first
        if not body:
            raise DataError("the table has a header line but no rows", path, 1)
        sources, targets = self._columns(header, len(body[0].cells), body[0].line, path)
        for row in chain(body, rows):
            source = " ".join(row.cells[at] for at in sources)
            yield Pair(source, " ".join(row.cells[at] for at in targets), path, row.line)

    def _columns(
        self, header: list[str] | None, width: int, line: int, path: str
    ) -> tuple[list[int], list[int]]:
        """Return the columns of the source and of the target: named, by the header, or the first two."""
        found = []
        for side, usual in (("source", SOURCES), ("target", TARGETS)):
            wanted = getattr(self.settings, side)
            names = [] if wanted == "auto" else wanted.split("+")
            named = [at for at, name in enumerate(header or ()) if name.lower() in usual][:1]
            if side == "target" and self.untargeted and names and header and names[0] not in header:
                names = []
            found.append([column_of(f"data.{side}", name, header, width, path) for name in names] or named)
        sources, targets = found
        if width == 1 and self.untargeted:
            return [0], []
        if width == 1:
            raise DataError(
                "a line must have a source and a target, separated by a tab; this table has one column "
                "(two aligned files are given one after the other: SOURCE TARGET)",
                path, line,
            )  # fmt: skip
        rest = [at for at in range(width) if at not in (*sources, *targets)]
        sources = sources or [rest.pop(0)]
        if not targets and rest:
            targets = [rest.pop(0)]
            if rest and header is None and self.settings.target == "auto":
                self.remarks.append(
                    f"of the {width} columns, {sources[0] + 1} is the source and {targets[0] + 1} the "
                    "target; choose others with --set data.source=NUMBER and data.target=NUMBER"
                )
        if set(sources) & set(targets):
            raise DataError("'data.source' and 'data.target' name the same column", path)
        return sources, targets


def _lines(source: Source) -> Iterator[str]:
    return lines_of(source, TextChecker(source.shown, DataSettings(format="text")))


def _first_line(source: Source) -> str:
    return "" if source.size is None else next(_lines(source), "")


def _named(settings: PairDataSettings) -> list[str]:
    """Return the columns that the settings call by a name."""
    given = (*settings.source.split("+"), *settings.target.split("+"))
    return [name for name in given if name != "auto" and not name.isdigit()]


def _header(cells: list[str], settings: PairDataSettings) -> list[str] | None:
    """Return the first row if it names the columns."""
    names = [cell.strip() for cell in cells]
    if any(name in names for name in _named(settings)):
        return names
    low = [name.lower() for name in names]
    is_header = any(name in SOURCES for name in low) and any(name in TARGETS for name in low)
    return names if is_header or _named(settings) else None


def _joined(record: dict[str, Any], names: Sequence[str]) -> str:
    return " ".join(str(record[name]) for name in names if record[name] is not None)


def _aligned(source: Source, target: Source) -> Iterator[Pair]:
    """Yield line by line; files of different lengths are refused, with the first line that looks wrong."""
    lengths: tuple[list[int], list[int]] = ([], [])
    for line, sides in enumerate(zip_longest(_lines(source), _lines(target)), start=1):
        texts = [None if side is None else side.removesuffix("\n").removesuffix("\r") for side in sides]
        for side, text in zip(lengths, texts, strict=True):
            if text is not None:
                side.append(len(text))
        if texts[0] is None or texts[1] is None:
            continue
        yield Pair(texts[0], texts[1], source.shown, line)
    counts = [len(side) for side in lengths]
    if counts[0] != counts[1]:
        raise DataError(
            f"it has {counts[0]:,} lines and {target.shown} has {counts[1]:,}, so they are not aligned; by "
            f"the lengths of the lines, look at line {_first_suspicious(*lengths):,}",
            source.shown,
        )


def _first_suspicious(ones: Sequence[int], others: Sequence[int]) -> int:
    """Return the line from which on the lengths of two files fit better if the longer one is moved up.

    Up to it lines of the same number are compared, and behind it those that are as far apart as the numbers
    of lines: the place where the lengths differ least in all.
    """
    short_N, long_N = (np.log(np.array(each, np.float64) + 1.0) for each in sorted((ones, others), key=len))
    count = len(short_N)
    if not count:
        return 1
    together_N, moved_N = long_N[:count] - short_N, long_N[-count:] - short_N
    usual = np.median(together_N)
    unlike_N, behind_N = np.abs(together_N - usual), np.abs(moved_N - usual)
    costs = np.append(0.0, np.cumsum(unlike_N - behind_N))  # less what all lines cost when moved
    return int(np.argmin(costs)) + 1
