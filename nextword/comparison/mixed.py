"""The entry `mixture`: the best count model and the best network of the comparison, joined.

p(w | h) = Σ λ_k p_k(w | h) [XMU "Smoothing"; Jelinek & Mercer 1980]. Which two models, and their weights λ,
is decided on the text for choices; the held-out text is only measured. Its seconds are those of both.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from nextword.comparison.entries import Entry
from nextword.comparison.measure import measured
from nextword.comparison.rows import Row
from nextword.comparison.setup import Setup
from nextword.core.contracts import START
from nextword.core.events import Event, Stage
from nextword.evaluation.lm.streams import ScoreStream
from nextword.mixtures.mixture import tune_weights
from nextword.runs import saved
from nextword.runs.facts import collect
from nextword.runs.mixture import Component, mixed, settings_like
from nextword.runs.saved import Trained
from nextword.store.writing import new_run

Made = tuple[Entry, Row]


def parts_of(entry: Entry, made: Sequence[Made]) -> list[Row]:
    """Return the runs that a mixture joins: of its tokenizer and its seed, the best count model and network.

    Where there is only one kind, the best two of it.
    """
    able = [
        (other, row) for other, row in made
        if row.ranks and row.run and other.tokenizer == entry.tokenizer
        and (other.number == entry.number or not other.is_neural)
    ]  # fmt: skip
    able.sort(key=lambda pair: math.inf if pair[1].tune_bits is None else pair[1].tune_bits)
    counted = [row for other, row in able if not other.is_neural]
    networks = [row for other, row in able if other.is_neural]
    if counted and networks:
        return [counted[0], networks[0]]
    return [row for _, row in able[:2]]


def mix_one(setup: Setup, entry: Entry, rows: Sequence[Row], key: str) -> Generator[Event, None, Row]:
    """Find the weights, save the mixture and measure it."""
    if len(rows) < 2:
        return Row(entry.name, key, note="fewer than two models could be mixed")
    began, folder = time.perf_counter(), setup.out / entry.label
    yield Stage(f"{entry.name}: weights for {' and '.join(row.model for row in rows)}")
    parts = [saved.load(setup.out / row.run) for row in rows]
    tuned = tune_weights(_logps(setup, parts))
    with new_run(folder, overwrite=True) as new:
        saved.write(_joined(entry, parts, rows, tuned.weights), new)
    seconds = time.perf_counter() - began + sum(row.train_seconds for row in rows)
    shares = zip(tuned.weights, rows, strict=True)
    row = Row(
        entry.name, key, seed=next((row.seed for row in rows if row.seed is not None), None),
        train_seconds=round(seconds, 3), run=entry.label, parts=[part.model for part in rows],
        note=" + ".join(f"{weight:.2f} {part.model.partition(' ')[0]}" for weight, part in shares),
    )  # fmt: skip
    yield Stage(f"{entry.name}: measure")
    return measured(setup, saved.load(folder), row)


def _logps(setup: Setup, parts: Sequence[Trained]) -> list[np.ndarray[Any, np.dtype[Any]]]:
    """Return log p of every token of the text for choices, one array per model."""
    assert setup.tune is not None
    found: list[list[Any]] = [[] for _ in parts]
    streams = [ScoreStream(part.model, carry=True) for part in parts]
    for piece in parts[0].tokenizer.encode_blocks(setup.tune.blocks()):
        real = np.asarray(piece.ids) != START
        for stream, logps in zip(streams, found, strict=True):
            logps.append(np.asarray(stream.push(piece.ids, piece.documents))[real])
    return [np.concatenate(logps) for logps in found]


def _joined(
    entry: Entry, parts: Sequence[Trained], rows: Sequence[Row], weights: tuple[float, ...]
) -> Trained:
    """Make the mixture a run of its own, with copies of its parts."""
    first = parts[0]
    components = [
        Component(row.run, part.model, part.folder)
        for row, part in zip(rows, parts, strict=True)
        if part.folder is not None
    ]
    facts = collect(entry.settings.train.seed, first.facts.data, 0.0)
    settings = settings_like(first.settings, entry.model)
    return mixed(settings, components, weights, first.tokenizer, facts, [{"weights": list(weights)}])
