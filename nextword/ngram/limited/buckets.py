"""Estimate a model within a memory limit: the text is cut into ranges of n-grams that each fit.

Every position of the text goes, with its n-gram and the token before it, to the bucket of its n-gram
(ranges in sorted order, chosen from a sample). A bucket is sorted and counted independently, by a
worker process or here, and writes its slice of the trie to disk; slices are joined in order
(`joining`). Probabilities are then computed on memory-mapped files, whose pages are released when
they have grown too much. Buckets are independent, so they are also the unit of work on a cluster.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nextword.core.display import show_size
from nextword.core.errors import ConfigError
from nextword.core.events import Done, Event, Note, Progress, Stage
from nextword.core.family import Budget
from nextword.ngram import estimation
from nextword.ngram.limited import joining, mapped, workers
from nextword.ngram.limited.counting import count_bucket
from nextword.ngram.model import NgramModel
from nextword.ngram.settings import NgramSettings
from nextword.ngram.smoothing.estimate import predictable
from nextword.ngram.smoothing.plan import Planned
from nextword.system.allocator import return_free_memory

Array = np.ndarray[Any, np.dtype[Any]]
_CHUNK = 1 << 18  # ids read at a time
_WORKER = 190_000_000  # bytes a worker process needs before it has any work
_PER_WORD = 56  # bytes of the arrays with an entry for every word, while buckets are counted and joined
_USED = 0.92  # share of the limit that is planned for
_SAMPLES = 64  # samples per bucket, to choose the ranges
PER_TASK = 1_000_000_000  # bytes a cluster task may use if no limit is set


@dataclass(frozen=True)
class Cut:
    """The division of the text into buckets."""

    order: int
    vocab_size: int
    splitters: Array  # int32 [buckets - 1, order]: the first n-gram of every bucket except the first
    folder: Path

    @property
    def buckets(self) -> int:
        """Number of buckets."""
        return len(self.splitters) + 1

    def records(self, bucket: int) -> Path:
        """Return the file of a bucket's records: the token before, and the n-gram."""
        return self.folder / f"bucket-{bucket}.records"

    def slice(self, bucket: int) -> Path:
        """Return the folder of a bucket's counts."""
        return self.folder / f"bucket-{bucket}"


def fit(
    ids: Array, vocab_size: int, settings: NgramSettings, closed: bool, budget: Budget
) -> Iterator[Event]:
    """Build the model within ``budget.memory``; the last event is ``Done(model)``."""
    from nextword.core.catalog import find

    smoothing = find("smoothing", settings.smoothing)()
    _check(settings, smoothing, "'train.memory'" if budget.engine == "local" else "'train.engine' spark")
    assert budget.scratch is not None
    memory = budget.memory or PER_TASK
    cut = yield from _counted(ids, vocab_size, settings.order, smoothing.adjusted, budget)
    yield Stage("joining the buckets")
    out = budget.scratch if budget.folder is None else budget.folder
    counts = joining.join(cut.folder, out, cut.buckets, cut.order, vocab_size, smoothing.adjusted)
    frequency = _frequency(ids, vocab_size)
    mask_V = predictable(vocab_size, closed)
    adjusted = smoothing.adjusted and settings.order > 1
    counts_V = np.where(mask_V, counts.adjusted_1 if adjusted else frequency, 0)
    counts_of = [_n_r(counts_V), *(counts.n_r[n] for n in range(2, settings.order + 1))]
    plan = smoothing.plan(counts_V.astype(np.float64), lambda n: counts_of[n - 1], settings, mask_V)
    del frequency, counts_V
    return_free_memory()
    yield from mapped.interpolated(counts, plan, out, budget.scratch, memory)
    for note in plan.notes:
        yield Note(note)
    trie = mapped.load(out, settings.order, plan.fallback, in_memory=budget.folder is None)
    yield Done(NgramModel(trie, settings.smoothing, plan.is_probability, closed))


def _counted(
    ids: Array, vocab_size: int, order: int, adjusted: bool, budget: Budget
) -> Generator[Event, None, Cut]:
    """Divide the text and count its buckets, here or as tasks on a cluster."""
    assert budget.scratch is not None
    memory = budget.memory or PER_TASK
    room = _room(memory, vocab_size)
    if budget.engine == "spark":
        from nextword.ngram.limited import spark

        with spark.cluster(budget.master) as context:
            cut = yield from _divide(ids, vocab_size, order, room, budget.scratch, spark.parts(context))
            yield from spark.count(context, _jobs(cut, adjusted))
        return cut
    processes, each = _workers(memory, room)
    cut = yield from _divide(ids, vocab_size, order, each, budget.scratch)
    yield from workers.count(count_bucket, _jobs(cut, adjusted), processes)
    return cut


def _check(settings: NgramSettings, smoothing: object, within: str) -> None:
    """Raise a ConfigError for what cannot be done bucket by bucket, before anything is read."""
    estimation.check(settings)
    wrong = {
        f"'model.smoothing' {settings.smoothing}": not isinstance(smoothing, Planned),
        "'model.prune'": any(settings.per_order("prune")),
        "'model.prune_entropy'": settings.prune_entropy > 0,
        "'model.kenlm_compat'": settings.kenlm_compat,
        "'model.bits'": settings.bits > 0,
    }
    for name, found in wrong.items():
        if found:
            raise ConfigError(
                f"{name} needs all counts in memory and does not work with {within}; remove one of them"
            )


def _room(memory: int, vocab_size: int) -> int:
    """Return the bytes left for work, besides the program and what grows with the vocabulary."""
    return_free_memory()  # reading the text has freed much
    taken = mapped.resident() + vocab_size * _PER_WORD
    room = int(_USED * memory) - taken
    if room < 24_000_000:
        raise ConfigError(
            f"'train.memory' is {show_size(memory)}, but the program and {vocab_size:,} words take "
            f"{show_size(taken)}; set at least {show_size(int((taken + 26e6) / _USED))}"
        )
    return room


def _workers(memory: int, room: int) -> tuple[int, int]:
    """Return the number of worker processes and the memory of each; just this one if memory is tight."""
    from nextword.ngram.fast.estimate import cores

    workers = min(cores(), room // (_WORKER + 100_000_000))
    return (workers, room // workers - _WORKER) if workers >= 2 else (0, room)


def _divide(
    ids: Array, vocab_size: int, order: int, room: int, scratch: Path, least: int = 1
) -> Generator[Event, None, Cut]:
    """Choose the ranges (at least this many) from a sample, then send every position to its bucket."""
    from nextword.ngram.limited import kernels

    cost = 4 * (order + 1) + 5 + 16 * (order - 1) + 32  # bytes per position while counting
    wanted = max(least, -(-len(ids) * cost // room))
    yield Stage(f"dividing the text into about {wanted} buckets", 2 * len(ids), "tokens")
    step = max(1, len(ids) // max(1, wanted * _SAMPLES))
    sample = [np.empty((0, order), dtype=np.int32)]
    for first, chunk in _chunks(ids, order):
        sample.append(kernels.records(chunk, order, step, first)[:, 1:])
        yield Progress(first)
    rows = np.concatenate(sample)
    rows = rows[np.lexsort(rows.T[::-1])]
    splitters = (
        np.unique(rows[np.arange(1, wanted) * len(rows) // wanted], axis=0) if wanted > 1 else rows[:0]
    )
    cut = Cut(order, vocab_size, splitters, scratch)
    for first, chunk in _chunks(ids, order):
        records = kernels.records(chunk, order, 1, first)
        _append(cut, records, kernels.assign(records, splitters))
        yield Progress(len(ids) + first)
    return cut


def _chunks(ids: Array, order: int) -> Iterator[tuple[int, Array]]:
    """Yield pieces of the text with one token before and order-1 after, read from the file, not mapped."""
    for first in range(0, len(ids), _CHUNK):
        low, high = max(first - 1, 0), min(first + _CHUNK + order - 1, len(ids))
        piece = _read(ids, low, high)
        padded = np.zeros(_CHUNK + order, dtype=np.int32)
        padded[1 - (first - low) : 1 - (first - low) + len(piece)] = piece
        yield first, padded[: min(_CHUNK, len(ids) - first) + order]


def _read(ids: Array, low: int, high: int) -> Array:
    if isinstance(ids, np.memmap) and isinstance(ids.filename, (str, os.PathLike)):
        return np.fromfile(ids.filename, np.int32, high - low, offset=ids.offset + 4 * low)
    return ids[low:high]


def _append(cut: Cut, records: Array, buckets: Array) -> None:
    """Append each record to its bucket's file."""
    order = np.argsort(buckets, kind="stable")
    edges = np.searchsorted(buckets[order], np.arange(cut.buckets + 1))
    sorted_records = records[order]
    for bucket in range(cut.buckets):
        a, b = int(edges[bucket]), int(edges[bucket + 1])
        if a < b:
            with open(cut.records(bucket), "ab") as file:
                file.write(sorted_records[a:b].data)


def _jobs(cut: Cut, adjusted: bool) -> list[tuple[str, str, int, int, bool]]:
    """Return the arguments of `count_bucket` for every nonempty bucket."""
    return [
        (str(cut.records(b)), str(cut.slice(b)), cut.order, cut.vocab_size, adjusted)
        for b in range(cut.buckets) if cut.records(b).exists()
    ]  # fmt: skip


def _frequency(ids: Array, vocab_size: int) -> Array:
    found = np.zeros(vocab_size, dtype=np.int64)
    for first in range(0, len(ids), _CHUNK):
        found += np.bincount(_read(ids, first, min(first + _CHUNK, len(ids))), minlength=vocab_size)
    return found


def _n_r(counts_V: Array) -> Array:
    return np.bincount(counts_V[counts_V < 5].astype(np.int64), minlength=5).astype(np.float64)
