"""The n-grams of an ARPA file as arrays: plain Python for small files, compiled threads for large ones."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from nextword.core.contracts import SPECIALS, START, UNKNOWN
from nextword.core.errors import FormatError
from nextword.formats.arpa.lines import LARGEST, LN10, ZERO_LOG10, fields_of, parse_line, shown
from nextword.formats.arpa.sections import ArpaFile, Section
from nextword.formats.arpa.trie import Grams

Array = np.ndarray[Any, np.dtype[Any]]
_PIECE = 16 << 20  # bytes that one thread parses at a time
_SPECIAL_IDS = {name.encode(): index for index, name in enumerate(SPECIALS)}
_NOT_IN_WORDS = (b"\0", b"\v", b"\f")


@dataclass(frozen=True)
class Unigrams:
    """The 1-grams: ``names`` as they stand in the file, by id; specials that were not there are noted."""

    names: list[bytes]
    index: dict[bytes, int]
    grams: Grams
    absent: tuple[str, ...]
    log10_start: float
    log10_unknown: float | None


def read_words(source: ArpaFile) -> Unigrams:
    """Give the words ids 3, 4, … in the order of the file; ``<unk>``, ``<s>``, ``</s>`` have their own."""
    section, highest = source.sections[0], len(source.sections) == 1
    lines = _lines(source, section)
    first = source.line_at(section.start)
    index: dict[bytes, int] = {}
    probs, backoffs = [-math.inf] * len(SPECIALS), [0.0] * len(SPECIALS)
    for row, (probability, (word,), backoff) in enumerate(_parsed(lines, 1, highest, source.path, first)):
        if word in index:
            before = first + _row_of(lines, word)
            message = f"the word {shown(word)} is in line {before} already; keep one"
            raise FormatError(message, source.path, first + row)
        special = _SPECIAL_IDS.get(word)
        if special is not None:
            index[word] = special
            probs[special], backoffs[special] = probability, backoff
        else:
            index[word] = len(probs)
            probs.append(probability)
            backoffs.append(backoff)
    _adopt_capital_unknown(index, probs, backoffs)
    absent = tuple(name for name in SPECIALS if name.encode() not in index)
    index.update(_SPECIAL_IDS)
    start = max(probs[START], ZERO_LOG10)
    unknown = None if "<unk>" in absent else max(probs[UNKNOWN], ZERO_LOG10)
    probs[START] = -math.inf  # lmplz writes 0 and SRILM -99: it is never predicted
    names = [name for name, _ in sorted(index.items(), key=lambda item: item[1])]
    _check_names(names, lines, source, first)
    rows = np.arange(len(probs), dtype=np.int32)[:, None]
    grams = Grams(rows, _powers(probs), _powers([] if highest else backoffs))
    return Unigrams(names, index, grams, absent, start, unknown)


def _adopt_capital_unknown(index: dict[bytes, int], probs: list[float], backoffs: list[float]) -> None:
    """Use ``<UNK>``, as some programs write it, as the unknown word if there is no ``<unk>``."""
    place = index.pop(b"<UNK>", None) if b"<unk>" not in index and b"<UNK>" in index else None
    if place is None:
        return
    probs[UNKNOWN], backoffs[UNKNOWN] = probs.pop(place), backoffs.pop(place)
    for word, other in index.items():
        index[word] = other - (other > place)
    index[b"<unk>"] = UNKNOWN


def _check_names(names: list[bytes], lines: list[bytes], source: ArpaFile, first: int) -> None:
    joined = b"\n".join(names)
    try:
        joined.decode("utf-8")
        bad = (
            next((name for name in names if any(byte in name for byte in _NOT_IN_WORDS)), None)
            if any(byte in joined for byte in _NOT_IN_WORDS)
            else None
        )
        why = "contains a control character, which cannot stand within a word"
    except UnicodeDecodeError as error:
        bad = names[joined.count(b"\n", 0, error.start)]
        why = "is not UTF-8; if the file is Latin-1, convert it with: iconv -f latin1 -t utf8"
    if bad is not None:
        raise FormatError(f"the word {shown(bad)} {why}", source.path, first + _row_of(lines, bad))


def _row_of(lines: list[bytes], word: bytes) -> int:
    return next(row for row, text in enumerate(lines) if word in fields_of(text))


def _lines(source: ArpaFile, section: Section) -> list[bytes]:
    text = source.data[section.start : section.end]
    lines = text.split(b"\n") if text else []
    check_count(source, section, len(lines))
    return lines


def check_count(source: ArpaFile, section: Section, found: int) -> None:
    """Check the number of lines against the header."""
    if found != section.count:
        line = source.line_at(source.data.find(b"ngram")) + section.n - 1
        raise FormatError(
            f"the header says 'ngram {section.n}={section.count}', but {found:,} {section.n}-grams follow "
            f"(from line {source.line_at(section.start)}); the file is cut off or its counts are wrong",
            source.path,
            line,
        )


def _powers(logs: list[float]) -> Array:
    """Return 10 to the power of each, as float32: weights beyond its range were refused."""
    return np.exp(np.array(logs, dtype=np.float64) * LN10).astype(np.float32)


def _parsed(
    lines: list[bytes], n: int, highest: bool, path: str, first: int
) -> Iterator[tuple[float, list[bytes], float]]:
    """Call `parse_line` for each; a line in the usual form is parsed faster."""
    for line, text in enumerate(lines, start=first):
        fields = text.split()
        try:
            probability = float(fields[0])
            backoff = 0.0 if len(fields) == n + 1 else float(fields[-1])
            usual = n + 1 <= len(fields) <= n + 2 and -LARGEST < probability <= 0.0
            usual = usual and _is_plain(text, fields[0], fields[-1] if len(fields) == n + 2 else b"")
        except (ValueError, IndexError):
            usual = False
        if not usual or not abs(backoff) <= LARGEST or (highest and backoff):  # NaN is not at most anything
            yield parse_line(text, n, highest, path, line)
        else:
            yield probability, fields[1 : n + 1], backoff


def _is_plain(text: bytes, probability: bytes, backoff: bytes) -> bool:
    """Tell whether Python splits and reads a line as this format does: no other whitespace, no 1_000."""
    return b"_" not in probability and b"_" not in backoff and b"\v" not in text and b"\f" not in text


def read_plain(source: ArpaFile, section: Section, words: Unigrams) -> Grams:
    """Read one order line by line."""
    n, highest = section.n, section.n == len(source.sections)
    first, index = source.line_at(section.start), words.index
    rows, probs, backoffs = [], [], []
    for probability, names, backoff in _parsed(_lines(source, section), n, highest, source.path, first):
        try:
            rows.append([index[name] for name in names])
        except KeyError:
            raise _unknown(names, words, source, first + len(rows)) from None
        probs.append(probability)
        backoffs.append(backoff)
    shaped = np.array(rows, dtype=np.int32).reshape(len(rows), n)
    return Grams(shaped, _powers(probs), _powers([] if highest else backoffs))


def _unknown(names: list[bytes], words: Unigrams, source: ArpaFile, line: int) -> FormatError:
    name = next(name for name in names if name not in words.index)
    return FormatError(
        f"the word {shown(name)} is not among the 1-grams, and every word of an n-gram must be; write the "
        "file again",
        source.path,
        line,
    )


class CompiledReader:
    """Reads one order after another with the compiled parser, in several threads."""

    def __init__(self, source: ArpaFile, words: Unigrams) -> None:
        from nextword.formats.arpa import kernels

        self.source, self.words, self.kernels = source, words, kernels
        self.bytes = np.frombuffer(source.data, dtype=np.uint8)
        self.arena = np.frombuffer(b"".join(words.names), dtype=np.uint8)
        self.offsets = np.concatenate([[0], np.cumsum([len(name) for name in words.names])]).astype(np.uint64)
        self.powers = 10.0 ** np.arange(19)
        self.table = np.full(1 << (2 * len(words.names)).bit_length(), -1, dtype=np.int32)
        kernels.fill_table(self.arena, self.offsets, self.table)

    def read(self, section: Section) -> Grams:
        """Read one order: pieces of the section that end at a line's end, each parsed into its own place."""
        n, highest = section.n, section.n == len(self.source.sections)
        cuts = self._cuts(section)
        with ThreadPoolExecutor(max(1, min(8, os.cpu_count() or 1))) as pool:
            pairs = list(itertools.pairwise(cuts))
            counts = list(pool.map(lambda pair: self._count(pair[0], pair[1], section.end), pairs))
            starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
            check_count(self.source, section, int(starts[-1]))
            rows = np.empty((section.count, n), dtype=np.int32)
            probs = np.empty(section.count, dtype=np.float32)
            backoffs = np.empty(0 if highest else section.count, dtype=np.float32)

            def parse(k: int) -> int:
                place = slice(int(starts[k]), int(starts[k + 1]))
                result: int = self.kernels.parse_lines(
                    self.bytes, *pairs[k], highest, self.arena, self.offsets, self.table, self.powers,
                    rows[place], probs[place], backoffs[place],
                )  # fmt: skip
                return result

            for bad in pool.map(parse, range(len(pairs))):
                if bad >= 0:
                    self._explain(section, bad)
        return Grams(rows, probs, backoffs)

    def _cuts(self, section: Section) -> list[int]:
        cuts = [section.start]
        while cuts[-1] < section.end:
            stop = self.source.data.find(b"\n", cuts[-1] + _PIECE, section.end)
            cuts.append(section.end if stop < 0 else stop + 1)
        return cuts

    def _count(self, start: int, stop: int, end: int) -> int:
        lines: int = self.kernels.count_lines(self.bytes, start, stop)
        return lines + (stop == end)  # the last line of a section has lost its newline

    def _explain(self, section: Section, at: int) -> None:
        """Raise what is wrong with the line at a byte."""
        stop = self.source.data.find(b"\n", at, section.end)
        text = self.source.data[at : section.end if stop < 0 else stop]
        line, highest = self.source.line_at(at), section.n == len(self.source.sections)
        names = parse_line(text, section.n, highest, self.source.path, line)[1]
        if any(name not in self.words.index for name in names):
            raise _unknown(names, self.words, self.source, line)
        raise FormatError(f"{shown(text)} cannot be read; write the file again", self.source.path, line)
