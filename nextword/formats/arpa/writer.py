"""From the trie to an ARPA file: slices of neighbouring n-grams, formatted by threads, written in order."""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nextword.core.errors import DamagedError
from nextword.formats.arpa.lines import fixed_point, show_lines
from nextword.formats.gz import GzipJoiner
from nextword.ngram.arrays import Trie
from nextword.system.disk import translate, write_all, writing

Array = np.ndarray[Any, np.dtype[Any]]
SMALL = 200_000  # up to this many n-grams are written in plain Python, without compiled kernels
_SLICE = 100_000  # n-grams that one thread formats at a time
_GENEROUS = 2_000
_EXTRA = 32  # bytes of a line besides its words: two numbers, two tabs, a newline


@dataclass(frozen=True)
class NgramSlice:
    """Neighbouring n-grams of one level, with the words of all their prefixes."""

    words: Array
    numbers: Array
    backoffs: Array | None
    parents: Array  # where the n-grams of each prefix start; one more than prefixes
    prefixes: Array  # int32: one row of words for each prefix


def cut(trie: Trie, n: int, low: int, high: int) -> NgramSlice:
    """Return the n-grams ``low … high-1`` of level n. Prefixes come from repeating each ancestor's words."""
    level = trie.levels[n - 1]
    columns: list[Array] = []
    parents = np.array([0, high - low], dtype=np.int64)
    first, last, rows = low, high, None
    for m in range(n - 1, 0, -1):  # from the direct prefix to the first word
        children = trie.levels[m - 1].children
        assert children is not None
        above = int(np.searchsorted(children, children.dtype.type(first), side="right")) - 1
        end = int(np.searchsorted(children, children.dtype.type(last), side="left"))
        starts = np.clip(children[above : end + 1].astype(np.int64), first, last) - first
        words = trie.levels[m - 1].words[above:end]
        if rows is None:
            parents, rows = starts, np.arange(len(words))
        else:
            rows = np.repeat(np.arange(len(words)), np.diff(starts))[rows]
        columns.append(words[rows])
        first, last = above, end
    prefixes = np.stack(columns[::-1], axis=1) if columns else np.zeros((1, 0), dtype=np.int32)
    words = level.words[low:high]
    for ids in (words, prefixes):
        if ids.size and not 0 <= ids.min() <= ids.max() < trie.vocab_size:
            raise DamagedError(f"the words of the {n}-grams are damaged near {low:,}; train the run again")
    weights = None if level.backoffs is None else fixed_point(level.backoffs[low:high], positive=True)
    return NgramSlice(words, fixed_point(level.probs[low:high], False), weights, parents, prefixes)


def check_offsets(trie: Trie) -> None:
    """Check that offsets ascend from 0 to the size of the next level, so that damage is noticed early."""
    for n, (level, above) in enumerate(itertools.pairwise(trie.levels), start=1):
        children, step = level.children, 1 << 20
        assert children is not None
        fits = len(children) == len(level) + 1 and children[0] == 0 and children[-1] == len(above)
        for low in range(0, len(children), step):
            part = children[low : low + step + 1]
            fits = fits and bool((part[1:] >= part[:-1]).all())
        if not fits:
            raise DamagedError(f"the offsets of the {n}-grams are damaged; train the run again")


def write_file(path: str | os.PathLike[str], trie: Trie, joined: bytes, plain: bool) -> None:
    """Write the whole file; ``joined`` holds all words as they are shown, each followed by a newline."""
    check_offsets(trie)
    show = _plain_formatter(joined) if plain else _compiled_formatter(joined)
    with _replaced(Path(path)) as descriptor:
        if os.fspath(path).endswith(".gz"):
            _write_gzip(descriptor, _pieces(trie, lambda part: _squeezed(show(part)), _squeezed))
        else:
            for piece, done in _pieces(trie, show, lambda text: (memoryview(text), None)):
                write_all(descriptor, piece)
                if done is not None:
                    done()


Done = Callable[[], None] | None
Formatter = Callable[[NgramSlice], tuple[memoryview, Done]]


def _pieces(trie: Trie, show: Callable[[NgramSlice], Any], wrap: Callable[[bytes], Any]) -> Iterator[Any]:
    """Yield all pieces of the file in order: text as it is, slices formatted by threads some way ahead."""
    yield wrap(_header(trie))
    workers = max(1, min(8, _cores()))
    with ThreadPoolExecutor(workers, thread_name_prefix="arpa") as pool:
        for n, size in enumerate(trie.sizes, start=1):
            yield wrap(b"\\%d-grams:\n" % n)
            ahead: deque[Future[Any]] = deque()
            for low in range(0, size, _SLICE):
                ahead.append(pool.submit(_job, trie, n, low, min(low + _SLICE, size), show))
                if len(ahead) > workers + 1:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
            yield wrap(b"\n")
    yield wrap(b"\\end\\\n")


def _job(trie: Trie, n: int, low: int, high: int, show: Callable[[NgramSlice], Any]) -> Any:
    return show(cut(trie, n, low, high))


def _header(trie: Trie) -> bytes:
    counts = b"".join(b"ngram %d=%d\n" % (n, size) for n, size in enumerate(trie.sizes, start=1))
    return b"\\data\\\n" + counts + b"\n"


def _plain_formatter(joined: bytes) -> Formatter:
    names = joined.split(b"\n")[:-1]

    def show(part: NgramSlice) -> tuple[memoryview, Done]:
        lines = show_lines(part.numbers, part.backoffs, part.words, part.parents, part.prefixes, names)
        return memoryview(b"".join(lines)), None

    return show


def _compiled_formatter(joined: bytes) -> Formatter:
    from nextword.formats.arpa.kernels import PADDING, format_lines

    arena = np.frombuffer(joined, dtype=np.uint8)
    stops = np.flatnonzero(arena == ord("\n"))
    offsets = np.concatenate([[0], stops + 1 - np.arange(1, len(stops) + 1)])  # without the newlines
    letters = np.append(np.delete(arena, stops), np.zeros(PADDING, dtype=np.uint8))
    lengths, unsigned = np.diff(offsets), offsets.astype(np.uint64)
    pairs = np.frombuffer(b"".join(b"%02d" % i for i in range(100)), dtype=np.uint8)
    none = np.empty(0, dtype=np.int32)
    spare: deque[Array] = deque()  # reused buffers: fresh memory costs more than formatting

    def show(part: NgramSlice) -> tuple[memoryview, Done]:
        need, longest = _room(part, lengths, int(lengths.max()))
        try:
            buffer = spare.pop()
        except IndexError:
            buffer = np.empty(0, dtype=np.uint8)
        if len(buffer) < need + PADDING:
            buffer = np.empty(need * 5 // 4 + PADDING, dtype=np.uint8)
        weights = none if part.backoffs is None else part.backoffs
        room = np.empty(longest + PADDING, dtype=np.uint8)
        lines = (part.numbers, weights, part.words, part.parents, part.prefixes)
        size = int(format_lines(buffer, *lines, letters, unsigned, pairs, room))
        return memoryview(buffer.data)[:size], lambda: spare.append(buffer)

    return show


def _room(part: NgramSlice, lengths: Array, longest_word: int) -> tuple[int, int]:
    """Return bytes that the lines of a slice can take, and its longest prefix.

    Mostly a bound from the longest word: memory that is not written to costs nothing. A very long word would
    make that too much; then the lengths are summed.
    """
    depth = part.prefixes.shape[1]
    if (depth + 1) * (longest_word + 1) <= _GENEROUS:
        return len(part.words) * (_EXTRA + (depth + 1) * (longest_word + 1)), depth * (longest_word + 1)
    prefix = (lengths[part.prefixes] + 1).sum(axis=1)
    words = lengths[part.words].sum() + (prefix * np.diff(part.parents)).sum()
    return int(_EXTRA * len(part.words) + words), int(prefix.max(initial=0))


def _squeezed(shown: bytes | tuple[memoryview, Done]) -> tuple[memoryview, bytes, Done]:
    piece, done = (memoryview(shown), None) if isinstance(shown, bytes) else shown
    return piece, GzipJoiner.squeeze(piece), done


def _write_gzip(descriptor: int, pieces: Iterator[tuple[memoryview, bytes, Done]]) -> None:
    joiner = GzipJoiner()
    write_all(descriptor, memoryview(joiner.header))
    for piece, squeezed, done in pieces:
        joiner.count(piece)
        if done is not None:
            done()
        write_all(descriptor, memoryview(squeezed))
    write_all(descriptor, memoryview(joiner.trailer()))


@contextmanager
def _replaced(path: Path) -> Iterator[int]:
    """Open a new file that takes its place when it is complete; errors of the system become sentences.

    There is no fsync: an export can be made again from its run.
    """
    try:
        with writing(path, sync=False) as file:
            yield file.fileno()
    except OSError as error:
        raise translate(error, Path(os.path.realpath(path))) from error


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
