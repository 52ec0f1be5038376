"""Read and write ``tokenizer.json``.

One JSON object; every value is checked before use, and a large vocabulary is a single string, so that
reading takes milliseconds.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Protocol, cast

from nextword.core.catalog import find, names
from nextword.core.contracts import Tokenizer, Unit
from nextword.core.errors import FormatError

FORMAT, VERSION = "nextword-tokenizer", 1
FILE = "tokenizer.json"
_LIMIT = 2 << 30  # a larger file cannot be a vocabulary


class _Kind(Protocol):
    """A tokenizer class, as this module sees it."""

    def from_json(self, value: Fields) -> Tokenizer: ...


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
