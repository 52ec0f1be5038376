"""What attention costs: operations and time of an encoder-decoder as sentences grow.

[MAUSAM "Encoder-Decoder with Attention": "Encoder Decoder: O(n+m); Encoder Decoder w/ Attention: O(nm)"]. The
multiplications of a forward pass are counted as they are made, and the processor's time is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from nextword.core.contracts import Source
from nextword.core.events import Event, Progress, Stage, returned
from nextword.drawing.page import Table
from nextword.drawing.svg import Axis, Series, lines
from nextword.experiments import fitting, languages, timing
from nextword.experiments.finding import Judge
from nextword.experiments.learners import train_translator
from nextword.experiments.result import Chart, ExperimentResult, finish
from nextword.experiments.small import Count
from nextword.models.seq2seq import Translator

CLAIM = "With n words in and m words out an encoder-decoder takes O(n + m), one with attention O(nm)."
SUM = "without attention the operations are a constant for each word read and for each word written"
PRODUCT = "with attention there is a part that grows with n times m, and nothing grows faster"
TIME = "the processor's time follows"
CLAIMS = (SUM, PRODUCT, TIME)
WITHOUT, WITH = "without attention", "with attention"
CONTEXTS = {WITHOUT: "init", WITH: "init+attention"}
COUNTED = (16, 32, 64, 128)  # words, for the operations
TIMED = (200, 400, 800, 1600)
SMALL: dict[str, Any] = {"model.hidden": 64, "train.steps": 1, "train.batch": 4}
TWICE = 2.6  # times the time for twice the length, at the most, where it is linear; 4: quadratic


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Count the multiplications of a forward pass, and take its time, for sentences of growing length."""
    fitting.refuse("complexity", run)
    counted, timed = (COUNTED[:3], TIMED[:2]) if quick else (COUNTED, TIMED)
    yield Stage("count and time", 2, "models")
    counts: dict[str, dict[tuple[int, int], float]] = {}
    seconds: dict[str, dict[int, float]] = {}
    for done, (name, context) in enumerate(CONTEXTS.items(), start=1):
        sets = {**SMALL, "model.context": context}
        training = train_translator("gru-torch", languages.sentences(8, 1, 0), 0, sets, Count())
        model: Translator = returned(training)
        counts[name] = {(n, m): operations(model, n, m) for n in counted for m in counted}
        seconds[name] = {n: _seconds(model, n) for n in timed}
        yield Progress(done)
    judge = Judge(quick)
    plain, looking = (fit(counts[name]) for name in CONTEXTS)
    judge.exact(
        SUM,
        plain.product == 0 and plain.error < 1,
        f"{plain.read:,.0f} multiplications for a word read, {plain.written:,.0f} for a word written, none "
        f"for pairs of words (n and m from {counted[0]} to {counted[-1]})",
    )
    judge.exact(
        PRODUCT,
        looking.product > 0 and looking.error < 1,
        f"{looking.product:,.0f} for each pair of a word read and a word written, {looking.read:,.0f} and "
        f"{looking.written:,.0f} for words alone; nothing else",
    )
    growth = {name: each[timed[-1]] / each[timed[-2]] for name, each in seconds.items()}
    judge.measure(
        TIME,
        growth[WITHOUT] < TWICE < growth[WITH],
        f"from {timed[-2]} to {timed[-1]} words it takes {growth[WITHOUT]:.1f} times as long without "
        f"attention and {growth[WITH]:.1f} times with (2 is linear, 4 quadratic; more than {TWICE} is called "
        "quadratic)",
    )
    yield from finish(
        ExperimentResult(
            "complexity", "What attention costs", 'MAUSAM "Encoder-Decoder with Attention"', CLAIM,
            f"{looking.product:,.0f} multiplications a pair of words with attention, none without",
            judge.findings,
            f"GRUs of {SMALL['model.hidden']} units, a bidirectional encoder, MLP attention; one sentence at "
            "a time, target given. Multiplications of matrices are counted while they are made; times are "
            "medians of 3 of processor time in one thread.",
            (_picture(seconds), _table(counts)),
        ),
        out,
    )  # fmt: skip


class fit:  # noqa: N801 - it reads as what it does
    """Counts as a + b n + c m + d n m, by least squares; ``error``: the largest difference."""

    def __init__(self, counts: dict[tuple[int, int], float]) -> None:
        places = np.array(list(counts), dtype=np.float64)
        found_N = np.array(list(counts.values()))
        terms_N4 = np.stack([np.ones(len(places)), places[:, 0], places[:, 1], places.prod(axis=1)], axis=1)
        weights = np.linalg.lstsq(terms_N4, found_N, rcond=None)[0].round()
        self.constant, self.read, self.written, self.product = weights.tolist()
        self.error = float(np.abs(terms_N4 @ weights - found_N).max())


@torch.no_grad()
def operations(model: Translator, n: int, m: int) -> float:
    """Return the multiplications of a pass over n words in and m words out."""
    network: Any = model.network
    with FlopCounterMode(display=False) as counter:
        _read(network, n, m)
    return float(counter.get_total_flops()) / 2  # a multiplication and an addition


def _read(network: Any, n: int, m: int) -> None:
    source = Source(torch.full((1, n), 3), torch.tensor([n]))
    features, _ = network.read(torch.full((1, m), 3), network.start(1, source))
    network.head.log_probs(features[0])


@torch.no_grad()
def _seconds(model: Translator, n: int) -> float:
    return median(timing.seconds(lambda: _read(model.network, n, n), tries=3))


def _picture(seconds: dict[str, dict[int, float]]) -> Chart:
    series = [
        Series(name, tuple((float(n), value) for n, value in each.items())) for name, each in seconds.items()
    ]
    drawn = lines(
        series, "Processor time of a sentence", Axis("words in, and as many out"), Axis("seconds", zero=True)
    )
    lengths = next(iter(seconds.values()))
    rows = tuple((n, *(round(each[n], 4) for each in seconds.values())) for n in lengths)
    return Chart(drawn, "A straight line is O(n + m), a parabola O(nm).", Table(("words", *seconds), rows))


def _table(counts: dict[str, dict[tuple[int, int], float]]) -> Table:
    places = next(iter(counts.values()))
    rows = tuple((n, m, *(each[n, m] for each in counts.values())) for n, m in places)
    return Table(("n", "m", *counts), rows, "Multiplications of a pass")
