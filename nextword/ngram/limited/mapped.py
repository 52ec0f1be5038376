"""Process arrays on disk through a memory map, within a limit of resident memory.

Mapped pages count as memory of the process until released; what was written stays in the file. After
each chunk of contexts the resident memory is checked, and pages are released if necessary.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nextword.core.events import Event, Progress, Stage
from nextword.ngram.arrays import Fallback, Level, Trie

if TYPE_CHECKING:
    from nextword.ngram.limited.joining import Joined
    from nextword.ngram.smoothing.plan import Plan

Array = np.ndarray[Any, np.dtype[Any]]
_FEWEST, _MOST = 64, 1 << 16  # contexts computed between two memory checks


class ArrayWriter:
    """A one-dimensional .npy file written piece by piece."""

    def __init__(self, path: Path, kind: Any, size: int) -> None:
        self._file = open(path, "wb")  # noqa: SIM115 - closed by __exit__
        self._kind, self._left = np.dtype(kind), size
        np.lib.format.write_array_header_1_0(
            self._file, {"descr": self._kind.str, "fortran_order": False, "shape": (size,)}
        )

    def write(self, piece: Array) -> None:
        """Append."""
        self._file.write(np.ascontiguousarray(piece, dtype=self._kind).data)
        self._left -= len(piece)

    def __enter__(self) -> ArrayWriter:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._file.close()
        assert kind is not None or self._left == 0, f"{self._left} entries are missing"


class Maps:
    """Memory-mapped arrays whose pages can be released.

    Arrays that are read or written once, from front to back, are released first: what is behind is not
    needed again. The others are looked into everywhere, and each released page has to be mapped again.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._passed: list[Any] = []
        self._searched: list[Any] = []

    def open(self, path: Path, searched: bool = False) -> Array:
        """Map an existing .npy file; ``searched``: not from front to back."""
        return self._keep(np.load(path, mmap_mode="r+"), searched)

    def create(self, path: Path, kind: Any, size: int) -> Array:
        """Create and map a new .npy file."""
        if size == 0:
            with ArrayWriter(path, kind, 0):
                return np.empty(0, dtype=kind)
        return self._keep(np.lib.format.open_memmap(path, mode="w+", dtype=np.dtype(kind), shape=(size,)))

    def _keep(self, array: Any, searched: bool = False) -> Array:
        if isinstance(array, np.memmap):
            (self._searched if searched else self._passed).append(array)
        return array  # type: ignore[no-any-return]

    def tidy(self) -> None:
        """Release as many pages as necessary if the process is near its limit."""
        for arrays in (self._passed, self._searched):
            if resident() <= self.limit:
                return
            _release(arrays)

    def close(self) -> None:
        """Drop the arrays; the files stay."""
        _release([*self._passed, *self._searched])
        self._passed.clear()
        self._searched.clear()


def _release(arrays: list[Any]) -> None:
    for array in arrays:
        array._mmap.madvise(mmap.MADV_DONTNEED)


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * mmap.PAGESIZE
    except OSError:  # not Linux: use the peak
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
            1 if os.uname().sysname == "Darwin" else 1024
        )


def interpolated(counts: Joined, plan: Plan, out: Path, scratch: Path, memory: int) -> Iterator[Event]:
    """Compute probabilities and weights by a plan, level by level, into the files of the run."""
    np.save(out / "ngram-1.probs.npy", plan.unigrams.astype(np.float32))
    yield Stage(f"computing probabilities of {sum(counts.sizes):,} n-grams", sum(counts.sizes[1:]), "n-grams")
    done = 0
    for n in range(2, counts.order + 1):
        for part in _level(n, counts, plan, (out, scratch), memory):
            yield Progress(done + part)
        done += counts.sizes[n - 1]


def _level(n: int, counts: Joined, plan: Plan, folders: tuple[Path, Path], memory: int) -> Iterator[int]:
    from nextword.ngram.fast import interpolation_kernels
    from nextword.ngram.fast.estimate import cores

    out, scratch = folders
    threads = cores()
    # A chunk may grow by a quarter of what is free below the limit (see `many`), and that must fit, too.
    maps = Maps(int((0.95 * memory + resident() / 4) / 1.25))
    nothing: Array = np.empty(0, dtype=np.uint32)
    children, words = maps.open(out / f"ngram-{n - 1}.children.npy"), maps.open(out / f"ngram-{n}.words.npy")
    values = maps.open(counts.values[n - 2])
    shorter_context = n > 2 and plan.below is None
    links = maps.open(scratch / f"links-{n - 1}.npy") if shorter_context else nothing
    shorter = maps.open(out / f"ngram-{n - 2}.children.npy", searched=True) if shorter_context else nothing
    below_words = (
        maps.open(out / f"ngram-{n - 1}.words.npy", searched=True)
        if n > 2
        else np.arange(counts.sizes[0], dtype=np.int32)
    )
    below = (
        maps.open(out / f"ngram-{n - 1}.probs.npy", searched=True)
        if plan.below is None
        else plan.below.astype(np.float32)
    )
    probs = maps.create(out / f"ngram-{n}.probs.npy", np.float32, counts.sizes[n - 1])
    gamma = maps.create(out / f"ngram-{n - 1}.backoffs.npy", np.float32, counts.sizes[n - 2])
    keep = n < counts.order and plan.below is None
    new_links = maps.create(scratch / f"links-{n}.npy", np.uint32, counts.sizes[n - 1]) if keep else nothing
    work = partial(
        interpolation_kernels.interpolate, children, words, values, plan.discounts[n - 1], plan.kinds,
        plan.extra[n - 1], nothing, 0.0, links, shorter, below_words, below,
    )  # fmt: skip
    many, spare = _FEWEST, max(1, maps.limit - resident())
    with ThreadPoolExecutor(threads) as pool:
        first = 0
        while first < counts.sizes[n - 2]:
            edges = [min(first + k * many, counts.sizes[n - 2]) for k in range(threads + 1)]
            before = resident()
            list(pool.map(lambda a, b: work(a, b, probs, gamma, new_links), edges[:-1], edges[1:]))
            first, grown = edges[-1], resident() - before
            # As many at a time as touch few pages compared with the available memory.
            if grown > spare // 4:
                many = max(_FEWEST, many // 2)
            elif grown < spare // 16:
                many = min(_MOST, many * 2)
            maps.tidy()
            yield int(children[first])
    if plan.weight is not None:
        gamma[:] = plan.weight
    maps.close()


def load(folder: Path, order: int, fallback: Fallback, in_memory: bool) -> Trie:
    """Load the trie that was written; ``in_memory`` copies it, for a folder that will be removed."""
    trie = Trie.load(folder, order, fallback)
    if not in_memory:
        return trie
    return Trie(
        tuple(
            Level(*(None if a is None else np.array(a) for a in (v.words, v.probs, v.backoffs, v.children)))  # type: ignore[arg-type]
            for v in trie.levels
        ),
        fallback,
    )
