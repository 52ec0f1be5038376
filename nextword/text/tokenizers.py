"""Tokenizers by name or file: trained on a text, written to ``tokenizer.json`` and read back.

Names are those of the catalog: words, characters, bytes, bpe, unigram. The file is one JSON object; every
value is checked before use, and a large vocabulary is a single string, so that reading takes milliseconds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol, cast

from nextword.core.catalog import SLOTS, find, names
from nextword.core.contracts import Block, Tokenizer, Unit
from nextword.core.errors import ConfigError, FormatError
from nextword.core.suggestions import unknown
from nextword.text.settings import TextSettings
from nextword.text.vocab import read_word_list

NAMES = tuple(SLOTS["tokenizer"])  # built in; plug-ins may add others
FORMAT, VERSION = "nextword-tokenizer", 1
FILE = "tokenizer.json"
_LIMIT = 2 << 30  # a larger file cannot be a vocabulary
_MANY_TYPES = 1_000_000


class _Kind(Protocol):
    """A tokenizer class, as this module sees it."""

    def fit(self, blocks: Iterable[Block], settings: TextSettings, unit: Unit) -> Tokenizer: ...

    def from_json(self, value: Fields) -> Tokenizer: ...


class _WordKind(_Kind, Protocol):
    """The tokenizer of words, which can also be made of a list of them."""

    def from_words(self, words: Iterable[str], settings: TextSettings, unit: Unit) -> Tokenizer: ...


def default_unit(name: str) -> Unit:
    """Return the default unit of a sequence: a line for words, a document for all others."""
    return "line" if name == "words" else "document"


def tokenizer_from_file(
    path: str | os.PathLike[str], settings: TextSettings, unit: Unit | None = None
) -> Tokenizer:
    """Load a tokenizer written by nextword, the one of a run folder, or a word list (one word per line)."""
    file = Path(path)
    if file.is_dir():
        return load_tokenizer(file)
    try:
        with open(file, "rb") as opened:
            head = opened.read(256)
    except OSError as error:
        raise FormatError(f"the tokenizer cannot be read ({error.strerror or error})", str(file)) from error
    if FORMAT.encode() in head or head.lstrip().startswith(b"{") or file.name == FILE:
        return load_tokenizer(file)
    words = cast(_WordKind, find("tokenizer", "words"))
    return words.from_words(read_word_list(file), settings, unit or "line")


def fit_tokenizer(
    name: str, blocks: Iterable[Block], settings: TextSettings, unit: Unit | None = None
) -> Tokenizer:
    """Train the tokenizer of this name on a text, or load it if the name is a file or a run folder.

    ``bytes`` and files do not read the blocks. ``unit=None`` means the tokenizer's default.
    """
    check_tokenizer(name)
    if name not in names("tokenizer"):
        return tokenizer_from_file(name, settings, unit)
    kind = cast(_Kind, find("tokenizer", name))
    settings = settings.model_copy(update={"tokenizer": name})
    return kind.fit(blocks, settings, unit or default_unit(name))


def check_tokenizer(name: str) -> None:
    """Raise a ConfigError unless this is a tokenizer's name or an existing file; nothing is read."""
    if name not in names("tokenizer") and not os.path.exists(name):
        raise ConfigError(unknown("tokenizer", name, names("tokenizer"), "(no such file either)"))


def vocabulary_note(types: int, words: int) -> str | None:
    """Return a sentence for a vocabulary that looks like hashes or numbers, else None."""
    if types > _MANY_TYPES or (words > 100_000 and types > 0.5 * words):
        return (
            f"the text has {types:,} distinct words among {words:,}; if many are numbers or codes, "
            "limit the vocabulary with --set text.max_vocab=200000 or --set text.min_count=2"
        )
    return None


class Fields:
    """The fields of a JSON object, each checked when read."""

    def __init__(self, values: dict[str, Any], path: str) -> None:
        self.values, self.path = values, path

    def text(self, name: str, allowed: tuple[str, ...] = ()) -> str:
        """Return a string, one of ``allowed`` if given."""
        value = self.values.get(name)
        if not isinstance(value, str) or (allowed and value not in allowed):
            raise self.wrong(name, " or ".join(allowed) or "a string")
        return value

    def flag(self, name: str) -> bool:
        """Return a Boolean."""
        value = self.values.get(name)
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return value

    def count(self, name: str, limit: int = 2**53) -> int:
        """Return a whole number from 0 to a limit."""
        value = self.values.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= limit:
            raise self.wrong(name, f"a whole number from 0 to {limit}")
        return value

    def unit(self) -> Unit:
        """Return the unit of a sequence."""
        return "line" if self.text("unit", ("line", "document")) == "line" else "document"

    def utf8(self, text: str) -> bytes:
        """Return the UTF-8 bytes of a string of the file; JSON allows lone surrogates, which are an error."""
        try:
            return text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise FormatError("the tokenizer contains a lone surrogate; train it again", self.path) from error

    def wrong(self, name: str, expected: str) -> FormatError:
        """Return the error for an invalid field."""
        found = repr(self.values[name])[:40] if name in self.values else "nothing"
        return FormatError(
            f"the field '{name}' is {found}, expected {expected}; train the tokenizer again", self.path
        )


def write_json(path: str | os.PathLike[str], values: dict[str, Any]) -> None:
    """Write a tokenizer's fields, preceded by the format's name and version."""
    text = json.dumps({"format": FORMAT, "version": VERSION, **values}, ensure_ascii=False, indent=0)
    Path(path).write_bytes(text.encode("utf-8"))


def find_tokenizer_file(path: str | os.PathLike[str]) -> Path:
    """Return the path of a tokenizer file, or of the one in a run folder."""
    found = Path(path)
    return found / FILE if found.is_dir() else found


def read_fields(path: str | os.PathLike[str]) -> Fields:
    """Read the fields of a tokenizer file; anything invalid is a FormatError."""
    file = find_tokenizer_file(path)
    try:
        if file.stat().st_size > _LIMIT:
            raise FormatError("the file is too large for a tokenizer (more than 2 GB)", str(file))
        values = json.loads(file.read_bytes().decode("utf-8"))
    except OSError as error:
        raise FormatError(f"the tokenizer cannot be read ({error.strerror or error})", str(file)) from error
    except UnicodeDecodeError as error:
        raise FormatError("the tokenizer is not UTF-8; the file is damaged", str(file)) from error
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        message = "this is not JSON; a tokenizer file is one written by nextword"
        raise FormatError(message, str(file), line) from error
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise FormatError("this is not a tokenizer written by nextword ('format' is missing)", str(file))
    fields = Fields(values, str(file))
    if fields.count("version") > VERSION:
        raise FormatError(
            f"the tokenizer has version {values['version']}, but this nextword reads up to {VERSION}; "
            "update nextword",
            str(file),
        )
    return fields


def load_tokenizer(path: str | os.PathLike[str]) -> Tokenizer:
    """Read ``tokenizer.json``, or that of a run folder; a damaged file is a FormatError."""
    fields = read_fields(path)
    kind = cast(_Kind, find("tokenizer", fields.text("name", tuple(names("tokenizer")))))
    return kind.from_json(fields)
