"""Sentences with a tag for each word: CoNLL-U, columns (CoNLL-2000, CoNLL-2003, word TAB tag), JSON lines.

A sentence ends at a blank line. Everything wrong is reported with its file and line before training begins.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from pydantic import Field

from nextword.core.errors import DataError
from nextword.core.settings import Settings
from nextword.data.json_lines import json_records
from nextword.data.paths import Source, resolve
from nextword.data.plain import TextChecker
from nextword.data.settings import DataSettings
from nextword.data.tables import lines_of

CONLLU = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
DOCUMENT = "-DOCSTART-"  # CoNLL-2003: a document begins


class TagDataSettings(Settings):
    """How tagged text is read."""

    format: Literal["auto", "conllu", "columns", "jsonl"] = Field(
        "auto", description="of files; auto: by the extension and the first lines"
    )
    column: str = Field(
        "auto",
        description="the tag: a CoNLL-U name (upos, xpos, …), a number from 1, or a JSON field; auto: upos, "
        "of other columns the last",
    )
    word_column: str = Field("auto", description="the word: a number from 1; auto: the first column")
    bio: Literal["repair", "strict", "none"] = Field(
        "repair",
        description="tags that do not follow their scheme (I- after O): repair and count them, strict: "
        "refuse the file; none: the tags are names, not spans",
    )
    hold_out: float = Field(
        0.1, ge=0.0, le=0.5, description="share of the sentences held out for validation, without --valid"
    )


class Tagged(NamedTuple):
    """A sentence: words, their tags, and where it stands."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    path: str
    line: int
    lines: tuple[int, ...] = ()  # of each word, where a word is a line

    def line_of(self, at: int) -> int:
        """Return the line of a word."""
        return self.lines[at] if self.lines else self.line


class TaggedText:
    """The sentences of some files, and what the run's facts say about them."""

    def __init__(self, names: Sequence[str], settings: TagDataSettings) -> None:
        self.names, self.settings = tuple(names), settings
        self.sources = resolve(names)
        self.sha256 = ""
        self.documents = 0

    @property
    def size(self) -> int | None:
        """Return the bytes of the files, if known."""
        sizes = [source.size for source in self.sources]
        return None if None in sizes else sum(size or 0 for size in sizes)

    def read(self) -> list[Tagged]:
        """Read all sentences; at least one must have a word."""
        digest = hashlib.sha256()
        found: list[Tagged] = []
        for source in self.sources:
            own = list(self._file(source, digest))
            if not own:
                raise DataError("there is no sentence in this file", source.shown)
            found.extend(own)
        self.sha256 = digest.hexdigest()
        return found

    def _file(self, source: Source, digest: hashlib._Hash) -> Iterator[Tagged]:
        lines = _hashed(lines_of(source, TextChecker(source.shown, DataSettings(format="text"))), digest)
        kind = format_of(source, self.settings)
        if kind == "jsonl":
            yield from _json(lines, source.shown, self.settings.column)
            return
        pick = Columns(self.settings, kind == "conllu", source.shown)
        for sentence in blocks(lines, kind == "conllu"):
            if (tagged := pick.sentence(sentence)) is not None:
                yield tagged


def format_of(source: Source, settings: TagDataSettings) -> str:
    """Return the format of a file: conllu, columns or jsonl."""
    if settings.format != "auto":
        return settings.format
    name = source.path.lower().removesuffix(".gz")
    return "conllu" if name.endswith(".conllu") else "jsonl" if name.endswith("jsonl") else "columns"


def _hashed(lines: Iterable[str], digest: hashlib._Hash) -> Iterator[str]:
    for line in lines:
        digest.update(line.encode())
        yield line


class Row(NamedTuple):
    """One line of a file."""

    line: int
    text: str


def blocks(lines: Iterable[str], has_comments: bool) -> Iterator[list[Row]]:
    """Yield the rows between blank lines."""
    rows: list[Row] = []
    for number, line in enumerate(lines, start=1):
        text = line.rstrip("\r\n")
        if not text.strip():
            if rows:
                yield rows
            rows = []
        elif not (has_comments and text.startswith("#") and not rows):
            rows.append(Row(number, text))
    if rows:
        yield rows


class Columns:
    """Takes word and tag from the columns of a row; all rows of a file have as many columns."""

    def __init__(self, settings: TagDataSettings, is_conllu: bool, path: str, fewest: int = 2) -> None:
        self.settings, self.is_conllu, self.path, self.fewest = settings, is_conllu, path, fewest
        self.width = len(CONLLU) if is_conllu else 0
        self.first_line = 0
        self.separator: str | None = "\t"
        self.places: tuple[int, int] | None = None

    def sentence(self, rows: list[Row]) -> Tagged | None:
        """Return the sentence of some rows; None if it holds no words (a document's first line)."""
        words, tags, lines = [], [], []
        for row in rows:
            cells = self.cells(row)
            if not self.is_word(cells):
                continue
            word_at, tag_at = self.places or self.find(row, cells)
            word, tag = cells[word_at].strip(), cells[tag_at].strip()
            if not word:
                raise DataError("the word is empty", self.path, row.line)
            if not tag:
                raise DataError(f"the word '{word}' has no tag", self.path, row.line)
            words.append(word)
            tags.append(tag)
            lines.append(row.line)
        return Tagged(tuple(words), tuple(tags), self.path, lines[0], tuple(lines)) if words else None

    def is_word(self, cells: list[str]) -> bool:
        """Tell whether a row is a word: 1-2 is written over two words, 1.1 is a word that is left out."""
        if self.is_conllu:
            return "-" not in cells[0] and "." not in cells[0]
        return cells[0] != DOCUMENT

    def cells(self, row: Row) -> list[str]:
        """Return the columns of a row; every row must have as many, but for the first line of a document."""
        if not self.is_conllu and row.text.split(maxsplit=1)[0] == DOCUMENT:
            return row.text.split()
        if not self.width:
            self.separator = "\t" if "\t" in row.text else None
        cells = row.text.split(self.separator)
        if not self.width:
            self.width, self.first_line = len(cells), row.line
            if self.width < self.fewest:
                raise DataError(
                    "a line must have a word and a tag, separated by a tab or spaces; this one has one "
                    "column",
                    self.path, row.line,
                )  # fmt: skip
        if len(cells) != self.width:
            expected = "CoNLL-U" if self.is_conllu else f"line {self.first_line}"
            has_tabs = self.separator is None or "\t" in row.text
            hint = "" if has_tabs else "; columns must be separated by tabs, and this line has none"
            raise DataError(
                f"expected {self.width} columns as in {expected}, found {len(cells)}{hint}",
                self.path, row.line,
            )  # fmt: skip
        return cells

    def find(self, row: Row, cells: list[str]) -> tuple[int, int]:
        """Find the columns of word and tag."""
        word = _number(self.settings.word_column, cells, "data.word_column", self.path)
        word_at = word if word is not None else 1 if self.is_conllu else 0
        name = self.settings.column
        if name == "auto":
            tag_at = CONLLU.index("upos") if self.is_conllu else len(cells) - 1
        elif self.is_conllu and name in CONLLU:
            tag_at = CONLLU.index(name)
        else:
            found = _number(name, cells, "data.column", self.path)
            if found is None:
                allowed = f"one of {', '.join(CONLLU)}, or " if self.is_conllu else ""
                raise DataError(
                    f"'data.column' is '{name}'; it must be {allowed}a number from 1 to {len(cells)}",
                    self.path, row.line,
                )  # fmt: skip
            tag_at = found
        if tag_at == word_at:
            raise DataError(f"'data.column' names column {tag_at + 1}, which has the words", self.path)
        self.places = word_at, tag_at
        return self.places


def _number(name: str, cells: list[str], setting: str, path: str) -> int | None:
    """Return a column given by its number, from 0; None if the setting is not a number."""
    if not name.isdigit():
        return None
    if not 1 <= int(name) <= len(cells):
        raise DataError(f"'{setting}' is {name}, but there are {len(cells)} columns", path)
    return int(name) - 1


def _json(lines: Iterable[str], path: str, column: str) -> Iterator[Tagged]:
    """Read {"tokens": [...], "tags": [...]}, or tokens as objects with "text" and "tag"."""
    name = "tags" if column == "auto" else column
    for number, record in json_records(lines, path):
        if not isinstance(record, dict) or "tokens" not in record:
            raise DataError('a line must be {"tokens": […], "tags": […]}', path, number)
        words, tags = record["tokens"], record.get(name)
        if tags is None and words and all(isinstance(word, dict) for word in words):
            words, tags = [word.get("text") for word in words], [word.get("tag") for word in words]
        if not isinstance(words, list) or not isinstance(tags, list):
            raise DataError(f"'tokens' and '{name}' must be lists of strings", path, number)
        if len(words) != len(tags):
            raise DataError(f"there are {len(words)} tokens but {len(tags)} tags", path, number)
        if not all(isinstance(each, str) and each.strip() for each in (*words, *tags)):
            raise DataError("every token and every tag must be a string that is not empty", path, number)
        if words:
            yield Tagged(tuple(words), tuple(tags), path, number)
