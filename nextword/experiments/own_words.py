"""Exposure bias in translation: teacher forcing, scheduled sampling and free running, over several seeds.

[MAUSAM "Solutions to Exposure Bias"; Bengio et al. 2015]. A translator that was trained on true words reads
its own when it is used; how much that costs is measured by BLEU of what it writes.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import numpy as np

from nextword.core.events import Event, Stage
from nextword.drawing.page import Table
from nextword.drawing.svg import bars
from nextword.evaluation import significance
from nextword.evaluation.pairs.bleu import bleu_of, counts_of_words
from nextword.experiments import fitting, languages
from nextword.experiments.finding import Judge, by_test
from nextword.experiments.languages import Words
from nextword.experiments.learners import train_translator, translated
from nextword.experiments.result import Chart, ExperimentResult, cells, finish
from nextword.experiments.small import Count, mean_and_spread
from nextword.models.seq2seq import Translator

CLAIM = (
    "A translator trained by teacher forcing is not exposed to its own mistakes; scheduled sampling, which "
    "feeds it more and more of its own words, is a cure; free-running training is poor."
)
CURE = "scheduled sampling translates better than teacher forcing"
FREE = "free-running training translates worse than teacher forcing"
CLAIMS = (CURE, FREE)
TEACHER, SCHEDULED, ALONE = "teacher forcing", "scheduled sampling", "free-running"
TRAININGS = {TEACHER: "teacher", SCHEDULED: "scheduled(linear, 0.5)", ALONE: "free"}
SMALL: dict[str, Any] = {"model.hidden": 48, "model.context": "init", "train.batch": 60}
CLAUSES = 2


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Train translators without attention in three ways, and compare BLEU over seeds."""
    fitting.refuse("forcing", run)
    seeds, steps, count, tested = (1, 6, 40, 8) if quick else (4, 350, 3000, 120)
    yield Stage("train in three ways", seeds * steps * len(TRAININGS), "steps")
    found = yield from _measure(seeds, steps, count, tested)
    judge = Judge(quick)
    means = {name: mean_and_spread(each) for name, each in found.items()}
    shown = {name: f"{mean:.1f} ± {spread:.1f}" for name, (mean, spread) in means.items()}
    for claim, name, sign in ((CURE, SCHEDULED, 1), (FREE, ALONE, -1)):
        p = significance.welch(found[name], found[TEACHER])
        judge.measure(
            claim,
            by_test(sign * (means[name][0] - means[TEACHER][0]), p),
            f"BLEU {shown[name]} ({name}), {shown[TEACHER]} ({TEACHER}), {seeds} seeds"
            + ("" if p is None else f", p = {p:.2g}"),
        )
    yield from finish(
        ExperimentResult(
            "forcing", "Exposure bias in translation", 'MAUSAM "Solutions to Exposure Bias"', CLAIM,
            "BLEU " + ", ".join(f"{mean:.0f} ({name})" for name, (mean, _) in means.items()),
            judge.findings,
            f"A made language, {count:,} sentences of up to {languages.CLAUSE * CLAUSES - 1} words, {tested} "
            f"others measured: GRUs of {SMALL['model.hidden']} units without attention, {steps} steps, "
            f"{seeds} seeds; greedy decoding. Scheduled sampling feeds the true word with a probability that "
            "falls from 1 to 0.5.",
            (_picture(means, found),),
        ),
        out,
    )  # fmt: skip


def _measure(
    seeds: int, steps: int, count: int, tested: int
) -> Generator[Event, None, dict[str, list[float]]]:
    """Return BLEU of each seed of each training."""
    pairs, held = languages.sentences(count, CLAUSES, 0), languages.sentences(tested, CLAUSES, 1)
    done = Count()
    found: dict[str, list[float]] = {name: [] for name in TRAININGS}
    for name, forcing in TRAININGS.items():
        for seed in range(seeds):
            sets = {**SMALL, "train.forcing": forcing, "train.steps": steps}
            model = yield from train_translator("gru-torch", pairs, seed, sets, done)
            found[name].append(_bleu(model, held))
    return found


def _bleu(model: Translator, held: list[Words]) -> float:
    texts = translated(model, [each.source for each in held])
    counts = [
        counts_of_words(text.split(), each.target.split()) for text, each in zip(texts, held, strict=True)
    ]
    return float(bleu_of(np.array(counts).sum(axis=0, keepdims=True))[0])


def _picture(means: dict[str, tuple[float, float]], found: dict[str, list[float]]) -> Chart:
    drawn = bars(
        [(name, mean) for name, (mean, _) in means.items()], "BLEU of what each writes", "BLEU",
        [f"{mean:.1f}" for mean, _ in means.values()], [spread for _, spread in means.values()],
    )  # fmt: skip
    seeds = len(next(iter(found.values())))
    rows = tuple(cells(name, (round(value, 1) for value in each)) for name, each in found.items())
    caption = "Whiskers are one standard deviation over seeds."
    return Chart(drawn, caption, Table(("training", *(f"seed {n}" for n in range(seeds))), rows))
