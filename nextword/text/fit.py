"""Create a tokenizer by name or from a file: the one place where that choice is made.

Names are those of the catalog: words, characters, bytes, bpe, unigram.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol, cast

from nextword.core.catalog import SLOTS, find, names, unknown
from nextword.core.contracts import Block, Tokenizer, Unit
from nextword.core.errors import ConfigError, FormatError
from nextword.text.files import FILE, FORMAT, load_tokenizer
from nextword.text.settings import TextSettings
from nextword.text.vocab import read_word_list
from nextword.text.words import WordTokenizer

NAMES = tuple(SLOTS["tokenizer"])  # built in; plug-ins may add others
_MANY_TYPES = 1_000_000


class _Fits(Protocol):
    def fit(self, blocks: Iterable[Block], settings: TextSettings, unit: Unit) -> Tokenizer: ...


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
    return WordTokenizer.from_words(read_word_list(file), settings, unit or "line")


def fit_tokenizer(
    name: str, blocks: Iterable[Block], settings: TextSettings, unit: Unit | None = None
) -> Tokenizer:
    """Train the tokenizer of this name on a text, or load it if the name is a file or a run folder.

    ``bytes`` and files do not read the blocks. ``unit=None`` means the tokenizer's default.
    """
    check_tokenizer(name)
    if name not in names("tokenizer"):
        return tokenizer_from_file(name, settings, unit)
    kind = cast(_Fits, find("tokenizer", name))
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
