"""Sentences to be tagged: lines of raw text, lines of words, or a CoNLL file whose other columns are kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from nextword.data.conll import CONLLU, Columns, Row, TagDataSettings, blocks
from nextword.data.lines import read_lines
from nextword.data.paths import Source, resolve
from nextword.data.plain import TextChecker
from nextword.data.settings import DataSettings
from nextword.data.tables import lines_of
from nextword.text.splitter import pieces

_ENDINGS = (".conllu", ".conll")


class Place(NamedTuple):
    """Where a word stands in its text: from the first character to behind the last."""

    start: int
    end: int


class FileRows(NamedTuple):
    """The lines of a sentence in a CoNLL file."""

    lines: tuple[str, ...]  # with comments
    words: tuple[int, ...]  # which of them are words
    column: int  # of the tag, from 0; past the last column: it is added
    separator: str

    def fill(self, tags: Sequence[str]) -> str:
        """Return the lines with these tags; everything else stays as it was."""
        made = list(self.lines)
        for at, tag in zip(self.words, tags, strict=True):
            cells = made[at].split("\t" if self.separator == "\t" else None)
            cells[self.column : self.column + 1] = [tag]
            made[at] = self.separator.join(cells)
        return "".join(f"{line}\n" for line in made)


class Untagged(NamedTuple):
    """A sentence: its words, the text they stand in, and the rows of the file it comes from."""

    words: tuple[str, ...]
    text: str
    places: tuple[Place, ...]
    rows: FileRows | None = None
    is_raw: bool = False  # the text is as it was written; otherwise it is the words, joined by spaces


def of_text(text: str) -> Untagged:
    """Split raw text into words."""
    found = pieces(text)
    places = tuple(Place(each.start, each.end) for each in found)
    return Untagged(tuple(each.text for each in found), text, places, is_raw=True)


def of_words(words: Sequence[str], rows: FileRows | None = None) -> Untagged:
    """Take words as they are."""
    places, at = [], 0
    for word in words:
        places.append(Place(at, at + len(word)))
        at += len(word) + 1
    return Untagged(tuple(words), " ".join(words), tuple(places), rows)


def read(inputs: Iterable[str], pretokenized: bool) -> Iterator[Untagged]:
    """Yield a sentence for each line."""
    for line in inputs:
        yield of_words(line.split()) if pretokenized else of_text(line)


def read_file(file: str, settings: TagDataSettings, pretokenized: bool) -> Iterator[Untagged]:
    """Yield the sentences of a file: CoNLL by its extension, otherwise one a line."""
    if not file.lower().removesuffix(".gz").endswith(_ENDINGS):
        yield from read(read_lines(file), pretokenized)
        return
    for source in resolve(file):
        yield from _columns(source, settings)


def _columns(source: Source, settings: TagDataSettings) -> Iterator[Untagged]:
    is_conllu = source.path.lower().removesuffix(".gz").endswith(".conllu")
    is_named = settings.column.isdigit() or (is_conllu and settings.column in CONLLU)
    settings = settings if is_named else settings.model_copy(update={"column": "auto"})
    columns = Columns(settings, is_conllu, source.shown, fewest=1)
    lines = lines_of(source, TextChecker(source.shown, DataSettings(format="text")))
    for rows in blocks(lines, has_comments=False):
        yield _sentence(rows, columns)


def _sentence(rows: list[Row], columns: Columns) -> Untagged:
    words: list[str] = []
    places: list[int] = []
    tag_at = 1
    for at, row in enumerate(rows):
        if columns.is_conllu and row.text.startswith("#") and not words:
            continue
        cells = columns.cells(row)
        if not columns.is_word(cells):
            continue
        if columns.width > 1:
            word_at, tag_at = columns.places or columns.find(row, cells)
        else:
            word_at = 0
        words.append(cells[word_at].strip())
        places.append(at)
    separator = "\t" if columns.separator == "\t" or columns.width == 1 else " "
    kept = FileRows(tuple(row.text for row in rows), tuple(places), tag_at, separator)
    return of_words(words, kept)
