"""Pretrained word vectors in files of other programs: word2vec (text, binary), GloVe and fastText text.

Text: a word and its numbers on each line; word2vec and fastText begin with a line "words size", GloVe does
not. Binary (Mikolov et al. 2013): the same first line, then each word, a space, and its float32 numbers.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from nextword.core.errors import FormatError
from nextword.text.lexicon import entry

Vector = npt.NDArray[np.float32]
_FASTTEXT = (793712314).to_bytes(4, "little")  # how a fastText model file begins
_LONGEST_WORD = 4096  # bytes; a longer one means that the file is something else
_LOOKED_AT = 4096  # bytes that tell text from binary
_BLOCK = 1 << 20


@dataclass(frozen=True)
class WordVectors:
    """The vectors of those words of a list that a file has."""

    rows_N: npt.NDArray[np.int64]  # places in the list
    vectors_NE: Vector
    exact: int  # found as they are written; the others differ in case or digits
    new: tuple[str, ...] = ()  # words of the file that the list lacks, frequent ones first
    new_ME: Vector | None = None

    @property
    def size(self) -> int:
        """Return the size E of a vector."""
        return int(self.vectors_NE.shape[1])


def find_vectors(path: str | Path, words: Sequence[str], lower: bool = True, more: int = 0) -> WordVectors:
    """Read the vectors of words from a file; ``more``: for this many words besides, in the order of the file.

    A word that the file does not have takes the vector of the first that differs in case or digits only.
    """
    exact = {word: at for at, word in enumerate(words)}
    folded: dict[str, list[int]] = {}
    for at, word in enumerate(words):
        folded.setdefault(entry(word), []).append(at)
    found: dict[int, Vector] = {}
    similar: dict[int, Vector] = {}
    new: dict[str, Vector] = {}
    size = 0
    for word, vector_E in read_vectors(path):
        size = len(vector_E)
        own = exact.get(word)
        if own is not None:
            found.setdefault(own, vector_E)
        key = entry(word)
        for place in folded.get(key, ()):
            similar.setdefault(place, vector_E)
        if more and own is None and key not in folded and len(new) < more:
            new.setdefault(key if lower else word, vector_E)
    chosen = similar | found
    rows = sorted(chosen)
    return WordVectors(
        np.array(rows, np.int64), _stacked([chosen[row] for row in rows], size), len(found),
        tuple(new), _stacked(list(new.values()), size),
    )  # fmt: skip


def _stacked(vectors: list[Vector], size: int) -> Vector:
    return np.stack(vectors) if vectors else np.zeros((0, size), np.float32)


def read_vectors(path: str | Path) -> Iterator[tuple[str, Vector]]:
    """Yield the words of a file with their vectors; which of the forms it has is seen from its beginning."""
    try:
        with _opened(path) as file:
            head = file.peek(_LOOKED_AT)[:_LOOKED_AT]  # type: ignore[attr-defined]
            if head.startswith(_FASTTEXT):
                raise FormatError(
                    "this is a fastText model; give the text file of its vectors, which ends in .vec", path
                )
            first, _, rest = head.partition(b"\n")
            counts = _header(first)
            if counts is not None and rest and _is_binary(rest):
                yield from _binary(file, path)
            else:
                yield from _text(file, path, counts)
    except FormatError:
        raise
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FormatError(f"the word vectors cannot be read ({reason})", path) from error


def _opened(path: str | Path) -> IO[bytes]:
    if str(path).endswith(".gz"):
        return io.BufferedReader(gzip.open(path))
    return open(path, "rb")


def _header(line: bytes) -> tuple[int, int] | None:
    """Return the numbers of the first line "words size"; None if the line is a vector."""
    parts = line.split()
    if len(parts) != 2 or not all(part.isdigit() for part in parts):
        return None
    return int(parts[0]), int(parts[1])


def _is_binary(rest: bytes) -> bool:
    """Tell whether what follows the first line is a word and float32 numbers rather than a line of text."""
    parts = rest.partition(b"\n")[0].split(maxsplit=2)
    return len(parts) < 2 or not _is_number(parts[1])


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _text(file: IO[bytes], path: str | Path, counts: tuple[int, int] | None) -> Iterator[tuple[str, Vector]]:
    size, number = (0, 0) if counts is None else (counts[1], 0)
    for number, line in enumerate(file, start=1):
        if number == 1 and counts is not None:
            continue
        parts = line.rstrip().split(b" ") if b"\t" not in line else line.split()
        if not size:
            size = len(parts) - 1
        if len(parts) < size + 1 or size < 1:
            if not line.strip():
                continue
            raise FormatError(
                f"expected a word and {max(size, 1)} numbers, found {max(0, len(parts) - 1)} numbers; give a "
                "file of word2vec, GloVe or fastText vectors",
                path,
                number,
            )
        try:
            vector_E = np.array(parts[-size:], dtype=np.float32)
        except ValueError:
            bad = next(part for part in parts[-size:] if not _is_number(part))
            raise FormatError(
                f"expected a word and {size} numbers, found '{bad.decode('utf-8', 'replace')[:40]}' among "
                "them; give a file of word2vec, GloVe or fastText vectors",
                path,
                number,
            ) from None
        if not np.isfinite(vector_E).all():
            raise FormatError("a number of this vector is NaN or infinite; remove the line", path, number)
        # a few words of GloVe have spaces within
        yield b" ".join(parts[:-size]).decode("utf-8", "replace"), vector_E
    if number <= (counts is not None):
        raise FormatError("there are no word vectors in this file", path)


def _binary(file: IO[bytes], path: str | Path) -> Iterator[tuple[str, Vector]]:
    header = _header(file.readline())
    assert header is not None
    count, size = header
    waiting, at = b"", 0
    for number in range(1, count + 1):
        while (space := waiting.find(b" ", at)) < 0 or len(waiting) < space + 1 + 4 * size:
            block = file.read(_BLOCK)
            if not block or (space < 0 and len(waiting) - at > _LONGEST_WORD):
                raise FormatError(
                    f"vector {number:,} of {count:,} is cut off: the file is not complete; get it again", path
                )
            waiting, at = waiting[at:] + block, 0
        vector_E = np.frombuffer(waiting, "<f4", size, space + 1).astype(np.float32)
        if not np.isfinite(vector_E).all():
            raise FormatError(f"vector {number:,} has a number that is NaN or infinite; get it again", path)
        yield waiting[at:space].lstrip(b"\n").decode("utf-8", "replace"), vector_E
        at = space + 1 + 4 * size


def told(found: WordVectors, total: int, path: str) -> str:
    """Return a sentence about how many of the words have vectors."""
    share = len(found.rows_N) / max(1, total)
    other = len(found.rows_N) - found.exact
    case = f", {other:,} of them in another case" if other else ""
    more = f"; {len(found.new):,} words that the training text lacks are known by it" if found.new else ""
    return f"{path} has vectors for {len(found.rows_N):,} of {total:,} words ({share:.0%}){case}{more}"
