r"""ARPA files, the common format of n-gram programs: read and written, plain or gzipped.

[XMU "n-gram language models"]; the format is Doug Paul's (MIT Lincoln Laboratory, 1992) as SRILM and KenLM
use it. What KenLM writes we read, and what we write KenLM reads, to 1e-5 in log10 p.

Choices: a word of the text that looks like ``<unk>``, ``<s>`` or ``</s>`` is written with one backslash
before it, and reading undoes that. log10 of zero is -99. ``<s>`` is never predicted, so its probability is
zero whatever a file says. A file without ``<unk>`` gives unknown words the probability 0, with a note.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from nextword.core.contracts import SPECIALS
from nextword.core.errors import ConfigError, DamagedError, FormatError
from nextword.core.events import Note
from nextword.formats.arpa import trie as arpa_trie
from nextword.formats.arpa import writer
from nextword.formats.arpa.lines import ZERO_LOG10, fields_of, shown
from nextword.formats.arpa.reader import CompiledReader, Unigrams, read_plain, read_words
from nextword.formats.arpa.sections import ArpaFile, open_source
from nextword.ngram.arrays import Trie
from nextword.text.vocab import FIRST_WORD, Vocabulary, escape, unescape

SMALL = writer.SMALL
Path = str | os.PathLike[str]

_SPACE = re.compile(r"[ \t\r\v\f\0]")
_WHY_NOT = {
    "unigram": "its unseen words go straight to the unigram distribution",
    "uniform": "its unseen words share one uniform probability",
    "none": "it gives unseen words no probability at all",
}


@dataclass(frozen=True)
class ArpaModel:
    """What an ARPA file holds. ``vocabulary`` has the words as they stand in texts, unescaped."""

    vocabulary: Vocabulary
    trie: Trie
    notes: tuple[Note, ...] = field(default=())
    log10_start: float = ZERO_LOG10  # what the file says of ``<s>``; a model never predicts it
    log10_unknown: float | None = None  # of ``<unk>``; None: it is not in the file

    @property
    def words(self) -> list[str]:
        """The words with the ids 3, 4, …"""
        return self.vocabulary.words


def read_arpa(
    path: Path, missing_context: Literal["error", "insert"] = "error", plain: bool | None = None
) -> ArpaModel:
    """Read ``.arpa`` or ``.arpa.gz`` (known by its first bytes); an error is a `FormatError` with its line.

    N-grams may stand in any order. A missing suffix, as SRILM's pruning leaves it, is restored with its
    backed-off probability; a missing context is an error as in KenLM, or is restored too
    (``missing_context="insert"``). ``plain`` forces the plain or the compiled path (default: by size).
    """
    source = open_source(path)
    words = read_words(source)
    if plain is None:
        plain = sum(section.count for section in source.sections) < SMALL
    compiled = None if plain else CompiledReader(source, words)
    grams = [words.grams]
    for section in source.sections[1:]:
        grams.append(read_plain(source, section, words) if compiled is None else compiled.read(section))
    try:
        trie, added = arpa_trie.build(grams, missing_context == "insert", plain)
    except arpa_trie.DuplicateError as error:
        raise _duplicate(source, error) from None
    except arpa_trie.MissingContextError as error:
        raise _missing(source, error) from None
    joined = b"".join(_unescaped(name) + b"\n" for name in words.names[FIRST_WORD:])
    notes = _notes(source.path, words, added)
    return ArpaModel(Vocabulary(joined), trie, notes, words.log10_start, words.log10_unknown)


def write_arpa(
    path: Path, trie: Trie, words: Vocabulary | Iterable[str], plain: bool | None = None
) -> list[Note]:
    """Write a model as ``.arpa``, or gzipped if the name ends in ``.gz``; the file appears when complete.

    ``words`` are those with the ids 3, 4, …, as they stand in texts. ``plain`` forces the plain or the
    compiled path (default: by size); both write the same bytes. The notes say what a reader should know.
    """
    if trie.fallback != "shorter":
        raise ConfigError(
            f"this smoothing cannot be an ARPA file: {_WHY_NOT[trie.fallback]}, and ARPA only knows backing "
            "off to one word less; train with witten-bell, katz, kneser-ney or modified-kneser-ney for that"
        )
    joined = _shown_words(words)
    count = joined.count(b"\n")
    if count != trie.vocab_size:
        raise DamagedError(
            f"the model has {trie.vocab_size:,} words and its vocabulary {count:,}; use those of one run"
        )
    if plain is None:
        plain = sum(trie.sizes) < SMALL
    writer.write_file(path, trie, joined, plain)
    over = float(trie.levels[0].probs.sum(dtype=np.float64))
    if abs(over - 1) <= 0.01:
        return []
    return [Note(f"{os.fspath(path)}: the 1-grams sum to {over:.3g}, not to 1: scores, not probabilities")]


def _shown_words(words: Vocabulary | Iterable[str]) -> bytes:
    """Return all words as they stand in the file, specials first, each followed by a newline."""
    listed = words.words if isinstance(words, Vocabulary) else list(words)
    joined = "".join(escape(word) + "\n" for word in listed)
    if _SPACE.search(joined) or joined.count("\n") != len(listed) or "\n\n" in "\n" + joined:
        bad = next(word for word in listed if not word or "\n" in word or _SPACE.search(word))
        raise FormatError(
            f"the token {bad!r} cannot be a word of an ARPA file, where whitespace separates words; only "
            "models of tokens without whitespace, such as 'words', can be written"
        )
    return "".join(name + "\n" for name in SPECIALS).encode() + joined.encode("utf-8")


def _unescaped(name: bytes) -> bytes:
    return unescape(name.decode("utf-8")).encode("utf-8") if name.startswith(b"\\") else name


def _notes(path: str, words: Unigrams, added: int) -> tuple[Note, ...]:
    found = []
    if "<unk>" in words.absent:
        found.append(Note(f"{path}: there is no <unk>, so unknown words get the probability 0"))
    for name in words.absent:
        if name != "<unk>":
            found.append(Note(f"{path}: there is no {name}, so it has the probability 0 and no n-grams"))
    if added:
        found.append(
            Note(f"{path}: {added:,} missing parts of longer n-grams got their backed-off probability")
        )
    return tuple(found)


def _duplicate(source: ArpaFile, error: arpa_trie.DuplicateError) -> FormatError:
    section = source.sections[error.n - 1]
    first, second = (source.line_of_row(section, row) for row in (error.first, error.second))
    return FormatError(
        f"the {error.n}-gram {_words_at(source, error.n, error.second)} is in line {first} already; keep one",
        source.path,
        second,
    )


def _missing(source: ArpaFile, error: arpa_trie.MissingContextError) -> FormatError:
    return FormatError(
        f"the {error.n}-gram {_words_at(source, error.n, error.row)} has a context that is not among the "
        f"{error.n - 1}-grams, as after wrong pruning; write the file again with the program that made it",
        source.path,
        source.line_of_row(source.sections[error.n - 1], error.row),
    )


def _words_at(source: ArpaFile, n: int, row: int) -> str:
    section = source.sections[n - 1]
    text = source.data[section.start : section.end].split(b"\n", row + 1)[row]
    return shown(b" ".join(fields_of(text)[1 : n + 1]))
