"""What one vector can carry: sequences copied and reversed through the last state of an encoder.

[PENN "The Bottleneck Problem": "forces all the information from the entire source sentence to pass through
this representational bottleneck"; idea 1 of MAUSAM]. Symbols are drawn by chance, so nothing can be guessed.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

import numpy as np

from nextword.core.events import Event, Stage
from nextword.drawing.page import Table
from nextword.drawing.svg import Axis, Series, lines
from nextword.evaluation import significance
from nextword.evaluation.pairs.counted import Floats
from nextword.experiments import fitting, languages
from nextword.experiments.finding import Finding, Judge, by_test
from nextword.experiments.languages import Words
from nextword.experiments.learners import train_translator, translated
from nextword.experiments.result import Chart, ExperimentResult, finish
from nextword.experiments.small import Count

CLAIM = (
    "If the encoder's last state is all that a decoder knows of the source, the whole source must pass "
    "through this bottleneck; attention removes it."
)
FALLS = "through one vector, long sequences arrive with more errors than short ones"
LARGER = "a larger vector carries more"
AROUND = "with attention more arrives, through a state of the same size"
CLAIMS = (FALLS, LARGER, AROUND)
LONGEST, SYMBOLS = 16, 20
SHORT = 5  # symbols
COPY, REVERSE = "copy", "reverse"


class Kind(NamedTuple):
    """One model: its job, the size of its state, and what its decoder knows."""

    job: str
    hidden: int
    context: str


MODELS = {
    "copy, 32": Kind(COPY, 32, "init"),
    "copy, 128": Kind(COPY, 128, "init"),
    "reverse, 32": Kind(REVERSE, 32, "init"),
    "copy, 32, attention": Kind(COPY, 32, "init+attention"),
}
SMALL: dict[str, Any] = {"model.bidirectional": "none", "train.batch": 60}


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Train GRUs to copy and to reverse symbols; count what arrives, by length."""
    fitting.refuse("bottleneck", run)
    steps, count, tested = (10, 64, 32) if quick else (600, 8000, 640)
    yield Stage("train to copy and to reverse", len(MODELS) * steps, "steps")
    found = yield from _measure(steps, count, tested)
    ends = {name: float(each[LONGEST].mean()) for name, each in found.items()}
    small, _, _, around = MODELS
    yield from finish(
        ExperimentResult(
            "bottleneck", "What one vector can carry", 'PENN "The Bottleneck Problem"', CLAIM,
            f"of {LONGEST} symbols {ends[small]:.0%} arrive through 32 numbers, {ends[around]:.0%} with "
            "attention",
            _judged(found, quick),
            f"Sequences of 1 to {LONGEST} symbols out of {SYMBOLS}, drawn by chance: "
            f"{math.log2(SYMBOLS):.1f} bits each. GRUs that read from the left, {steps} steps, one seed, "
            f"{tested} other sequences, p over sequences; greedy decoding. A symbol is right if it stands at "
            "its place.",
            (_picture(found), _bits(found)),
        ),
        out,
    )  # fmt: skip


def _measure(steps: int, count: int, tested: int) -> Generator[Event, None, dict[str, dict[int, Floats]]]:
    """Return by model and length the share of right symbols in each sequence."""
    done = Count()
    found = {}
    for name, kind in MODELS.items():
        is_reversed = kind.job == REVERSE
        sets = {**SMALL, "model.hidden": kind.hidden, "model.context": kind.context, "train.steps": steps}
        pairs = languages.symbols(count, LONGEST, 0, is_reversed)
        model = yield from train_translator("gru-torch", pairs, 0, sets, done)
        held = languages.symbols(tested, LONGEST, 1, is_reversed)
        found[name] = arrived(translated(model, [each.source for each in held]), held)
    return found


def arrived(texts: list[str], held: list[Words]) -> dict[int, Floats]:
    """Return by length the share of the symbols of each sequence that are right and in place."""
    by_length: dict[int, list[float]] = {}
    for text, each in zip(texts, held, strict=True):
        right, written = each.target.split(), text.split()
        same = sum(one == two for one, two in zip(right, written, strict=False))
        by_length.setdefault(len(right), []).append(same / len(right))
    return {length: np.array(shares) for length, shares in sorted(by_length.items())}


def _judged(found: dict[str, dict[int, Floats]], quick: bool) -> tuple[Finding, ...]:
    judge = Judge(quick)
    small, large, _, around = (found[name] for name in MODELS)
    short = np.concatenate([each for length, each in small.items() if length <= SHORT])
    p = significance.welch(short.tolist(), small[LONGEST].tolist())
    judge.measure(
        FALLS,
        by_test(float(short.mean() - small[LONGEST].mean()), p),
        f"{short.mean():.1%} of the symbols are right up to {SHORT} symbols, {small[LONGEST].mean():.1%} of "
        f"{LONGEST} (32 numbers, p = {p:.2g})",
    )
    for claim, other, said in ((LARGER, large, "128 numbers"), (AROUND, around, "32 numbers and attention")):
        more = np.concatenate([other[length] - small[length] for length in small if length > SHORT])
        p = significance.sign_flips(more)
        judge.measure(
            claim,
            by_test(float(more.mean()), p),
            f"{said}: {float(more.mean()):+.1%} of the symbols of sequences longer than {SHORT} (p = "
            f"{p:.2g})",
        )
    return judge.findings


def _picture(found: dict[str, dict[int, Floats]]) -> Chart:
    series = [
        Series(name, tuple((float(length), 100 * float(each.mean())) for length, each in by.items()))
        for name, by in found.items()
    ]
    drawn = lines(
        series, "Symbols that arrive, by the length of the sequence", Axis("symbols"),
        Axis("% right", zero=True),
    )  # fmt: skip
    caption = "A name has the size of the state; chance is 5 %. Reversed, the last symbol is written first."
    lengths = next(iter(found.values()))
    rows = tuple((at, *(round(100 * float(by[at].mean()), 1) for by in found.values())) for at in lengths)
    return Chart(drawn, caption, Table(("symbols", *found), rows))


def _bits(found: dict[str, dict[int, Floats]]) -> Table:
    rows = tuple(
        (name, round(max(float(each.mean()) * at for at, each in by.items()), 1),
         round(max(float(each.mean()) * at for at, each in by.items()) * math.log2(SYMBOLS), 1))
        for name, by in found.items()
    )  # fmt: skip
    return Table(("model", "most symbols that arrive", "in bits"), rows, "What gets through")
