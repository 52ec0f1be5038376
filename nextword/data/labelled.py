"""Texts with labels: TSV, CSV, JSON lines, Parquet, and fastText's ``__label__x text``.

Which column is the label is found from the table where nobody says it: labels repeat, texts are long. Labels
separated by commas make several-label data. Everything wrong is reported with its file and line.
"""

from __future__ import annotations

import hashlib
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, Literal, NamedTuple

from pydantic import Field

from nextword.core.errors import DataError
from nextword.core.settings import Settings
from nextword.data.columns import Row, column_of, json_objects, no_field, parquet_records, read_rows
from nextword.data.delimiter import NAMES, find_delimiter, peek
from nextword.data.paths import Source, resolve
from nextword.data.plain import TextChecker
from nextword.data.settings import DataSettings
from nextword.data.tables import lines_of

FASTTEXT = "__label__"
_TEXTS = (  # usual names of the column of the text, the surest first
    "text", "sentence", "message", "review", "body", "content", "document", "comment", "tweet", "article",
    "description", "question", "headline", "title",
)  # fmt: skip
_LABELS = (
    "label", "labels", "class", "category", "target", "sentiment", "topic", "topics", "tag", "y", "emotion",
    "intent", "language", "genre", "author", "rating", "stars",
)  # fmt: skip
_SEEN = 5000  # rows from which columns are found
_TELLING = 10  # rows that show whether the first one differs from all others
_NAME = re.compile(r"[^\W\d][\w .#/-]{0,39}")  # what a column may be called


class LabelledDataSettings(Settings):
    """How labelled text is read."""

    format: Literal["auto", "tsv", "csv", "jsonl", "parquet", "fasttext"] = Field(
        "auto", description="of files; auto: by the extension and the first lines"
    )
    text: str = Field(
        "auto",
        description="column of the text: a name, or a number from 1; several joined by +, as in title+body",
    )
    label: str = Field("auto", description="column of the label: a name, or a number from 1")
    delimiter: Literal["auto", "comma", "semicolon", "tab"] = Field(
        "auto", description="what separates the columns of CSV and TSV; auto: by the header and the rows"
    )
    several: Literal["auto", "true", "false"] = Field(
        "auto", description="labels separated by commas are several labels; auto: if their parts are fewer"
    )
    hold_out: float = Field(
        0.1, ge=0.0, le=0.5, description="share of the texts held out for validation, without --valid"
    )


class Labelled(NamedTuple):
    """A text, its label as it is written, and where it stands."""

    text: str
    label: str
    path: str
    line: int


class LabelledText:
    """The labelled texts of some files."""

    def __init__(
        self, names: Sequence[str], settings: LabelledDataSettings, unlabelled: bool = False
    ) -> None:
        self.names, self.settings, self.unlabelled = tuple(names), settings, unlabelled
        self.sources = resolve(names)
        self.sha256 = ""
        self.columns = ""  # which columns were taken, where there was a choice

    @property
    def size(self) -> int | None:
        """Return the bytes of the files, if known."""
        sizes = [source.size for source in self.sources]
        return None if None in sizes else sum(size or 0 for size in sizes)

    def read(self) -> list[Labelled]:
        """Read all texts; there must be at least one."""
        digest = hashlib.sha256()
        found = list(self.stream())
        for each in found:
            digest.update(f"{each.text}\0{each.label}\0".encode("utf-8", "surrogatepass"))
        self.sha256 = digest.hexdigest()
        return found

    def stream(self) -> Iterator[Labelled]:
        """Yield the texts in bounded memory; there must be at least one in each file."""
        for source in self.sources:
            each = None
            for each in self._file(source):
                yield each
            if each is None:
                raise DataError("there is no labelled text in this file", source.shown)

    def _file(self, source: Source) -> Iterator[Labelled]:
        kind: str = self.settings.format
        if kind == "auto":
            kind = source.format if source.format in ("csv", "jsonl", "parquet") else "tsv"
        if kind == "parquet":
            yield from self._records(parquet_records(source), source.shown)
            return
        lines = lines_of(source, TextChecker(source.shown, DataSettings(format="text")))
        if kind == "jsonl":
            yield from self._records(json_objects(lines, source.shown, "a text and a label"), source.shown)
            return
        sample, lines = peek(lines)
        if kind == "fasttext" or (kind == "tsv" and sample and sample[0].startswith(FASTTEXT)):
            yield from _fasttext(lines, source.shown)
            return
        usual = "\t" if kind == "tsv" else ","
        named = NAMES.get(self.settings.delimiter)
        delimiter = named or find_delimiter(sample, usual, _named(self.settings), source.shown)
        yield from self._table(read_rows(lines, delimiter, usual, source.shown), source.shown)

    def _records(self, records: Iterable[tuple[int, dict[str, Any]]], path: str) -> Iterator[Labelled]:
        for line, record in records:
            names = self._text_fields(record, path, line)
            label = self._label_field(record, path, line)
            value = None if label is None else record[label]
            value = "" if value is None else value
            shown = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            text = " ".join(str(record[name] or "") for name in names)
            yield Labelled(text, shown.strip(), path, line)

    def _text_fields(self, record: dict[str, Any], path: str, line: int) -> list[str]:
        if self.settings.text != "auto":
            names = self.settings.text.split("+")
            for name in names:
                if name not in record:
                    raise DataError(no_field("data.text", name, list(record)), path, line)
            return names
        names = list(record)
        found = _usual(names, _TEXTS)
        if found is None:
            raise DataError(no_field("data.text", "text", names), path, line)
        return [names[found]]

    def _label_field(self, record: dict[str, Any], path: str, line: int) -> str | None:
        name = self.settings.label
        if name != "auto":
            if name not in record and self.unlabelled:
                return None
            if name not in record:
                raise DataError(no_field("data.label", name, list(record)), path, line)
            return name
        names = list(record)
        found = _usual(names, _LABELS)
        if found is None and not self.unlabelled:
            raise DataError(no_field("data.label", "label", names), path, line)
        return None if found is None else names[found]

    def _table(self, rows: Iterator[Row], path: str) -> Iterator[Labelled]:
        first = list(islice(rows, _SEEN))
        if not first:
            return
        header = _header(first, self.settings, self.unlabelled)
        body = first[1:] if header else first
        if not body:
            raise DataError("the table has a header line but no rows", path, 1)
        texts, label = self._columns(header, body, path)
        for row in chain(body, rows):
            text = " ".join(row.cells[at] for at in texts)
            yield Labelled(text, "" if label is None else row.cells[label].strip(), path, row.line)

    def _columns(self, header: list[str] | None, body: list[Row], path: str) -> tuple[list[int], int | None]:
        """Return the columns of the text and of the label."""
        width, settings = len(body[0].cells), self.settings
        texts = [
            column_of("data.text", name, header, width, path)
            for name in ([] if settings.text == "auto" else settings.text.split("+"))
        ]
        label: int | None = None
        is_there = header is None or settings.label in header or settings.label.isdigit()
        if settings.label != "auto" and (is_there or not self.unlabelled):
            label = column_of("data.label", settings.label, header, width, path)
        elif header is not None:
            label = _usual(header, _LABELS)
        if not texts and header is not None:
            found = _usual(header, _TEXTS)
            texts = [] if found in (None, label) else [found]
        if width == 1 and self.unlabelled:
            return [0], None
        if width == 1:
            raise DataError(
                "a line must have a text and a label, separated by a tab; this table has one column",
                path, body[0].line,
            )  # fmt: skip
        if label is None:
            label = _find_label(body, texts)
        if not texts:
            others = [at for at in range(width) if at != label]
            if len(others) > 1 and header is None and width > 2:
                raise DataError(
                    f"which of the {width} columns is the text? Say it with --set data.text=NUMBER and "
                    "--set data.label=NUMBER (from 1; several texts joined by +)",
                    path, body[0].line,
                )  # fmt: skip
            texts = [max(others, key=lambda at: statistics.fmean(len(row.cells[at]) for row in body))]
        if label in texts:
            raise DataError(f"'data.text' and 'data.label' name the same column, {label + 1}", path)
        if header is not None and "auto" in (settings.text, settings.label) and not _is_usual(header):
            taken = "+".join(header[at] for at in texts)
            self.columns = (
                f"of the columns {', '.join(header)}, the text is '{taken}' and the label '{header[label]}'; "
                "choose others with --set data.text=NAME --set data.label=NAME"
            )
        return texts, label


def _usual(names: Sequence[str], usual: Sequence[str]) -> int | None:
    """Return the place of the name that is usual for such a column, of several the surest."""
    low = [name.strip().lower() for name in names]
    return next((low.index(name) for name in usual if name in low), None)


def _is_usual(header: Sequence[str]) -> bool:
    """Tell whether a table has nothing but a column of texts and one of labels, both with usual names."""
    return len(header) == 2 and None not in (_usual(header, _TEXTS), _usual(header, _LABELS))


def _named(settings: LabelledDataSettings) -> list[str]:
    """Return the columns that the settings call by a name."""
    given = (*settings.text.split("+"), settings.label)
    return [name for name in given if name != "auto" and not name.isdigit()]


def _header(rows: list[Row], settings: LabelledDataSettings, unlabelled: bool) -> list[str] | None:
    """Return the first row if it names the columns."""
    names = [cell.strip() for cell in rows[0].cells]
    has_text = _usual(names, _TEXTS) is not None
    wanted = _named(settings)
    if wanted and (not unlabelled or has_text or any(name in names for name in wanted)):
        return names
    if unlabelled:
        return names if has_text else None
    is_header = (has_text and _usual(names, _LABELS) is not None) or _differs(rows)
    return names if is_header else None


def _differs(rows: list[Row]) -> bool:
    """Tell whether all cells of the first row look like names, and none stands in its column again."""
    first = [cell.strip() for cell in rows[0].cells]
    if len(rows) <= _TELLING or not all(map(_NAME.fullmatch, first)):
        return False
    return all(name not in {row.cells[at].strip() for row in rows[1:]} for at, name in enumerate(first))


def _find_label(rows: list[Row], texts: list[int]) -> int:
    """Return the column that looks like labels: few different values, and short ones."""

    def cost(at: int) -> tuple[float, float]:
        cells = [row.cells[at] for row in rows]
        return len(set(cells)) / len(cells), statistics.fmean(map(len, cells))

    return min((at for at in range(len(rows[0].cells)) if at not in texts), key=cost)


def _fasttext(lines: Iterable[str], path: str) -> Iterator[Labelled]:
    for number, line in enumerate(lines, start=1):
        words = line.split()
        if not words:
            continue
        labels = [word.removeprefix(FASTTEXT) for word in words if word.startswith(FASTTEXT)]
        if not labels:
            raise DataError(f"the line has no label; a line must be: {FASTTEXT}NAME text", path, number)
        text = " ".join(word for word in words if not word.startswith(FASTTEXT))
        yield Labelled(text, ",".join(labels), path, number)


Splitter = Callable[[str], tuple[str, ...]]


def label_splitter(examples: Sequence[Labelled], several: str) -> tuple[bool, Splitter]:
    """Return whether a text may have several labels, and what takes a label apart.

    Labels with commas are several if the parts are fewer than the whole labels: "grain,wheat" beside "grain"
    and "wheat", but not "Paris, Texas".
    """
    whole = Counter(each.label for each in examples)
    parts = {part.strip() for label in whole for part in label.split(",")}
    has_commas = any("," in label for label in whole)
    is_several = several == "true" or (several == "auto" and has_commas and len(parts) < len(whole))
    if not is_several:
        return False, lambda label: (label,)
    return True, lambda label: tuple(dict.fromkeys(part.strip() for part in label.split(",") if part.strip()))
