"""What each change of the Transformer of 2017 is worth: taken away one at a time, several seeds.

[MAUSAM "Transformers (2017) Made Many Changes at Once!": position encodings in the place of RNN components,
residual connections, interspersing of attention and MLP layers, LayerNorms, multiple heads, carefully tuned
hyperparameters; "most original choices have stuck", "sinusoidal embeddings!"]
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from nextword.core.events import Event, Stage
from nextword.drawing.page import Table
from nextword.drawing.slopes import Interval, intervals
from nextword.drawing.svg import Axis, Series, lines
from nextword.evaluation.significance import LEVEL, Test, against, holm
from nextword.experiments import fitting
from nextword.experiments.finding import Finding, Judge, by_test
from nextword.experiments.phrases import LENGTH, VOCABULARY, make_batch, target_nats
from nextword.experiments.result import Chart, ExperimentResult, finish
from nextword.experiments.small import (
    Count,
    Floats,
    Learned,
    Made,
    build,
    learn,
    mean_and_spread,
    settings_of,
)

CLAIM = (
    "The Transformer of 2017 made many changes at once: position encodings instead of an RNN, residual "
    "connections, attention and feed-forward layers by turns, layer norms, several heads, tuned "
    "hyper-parameters. Most of them have stuck, so each should be worth something."
)
ORIGINAL = "original"
CHANGES = {  # the preset without a change, and the part of the claim
    "position-none": "without position encodings it is worse",
    "lstm-for-attention": "with an LSTM in the place of attention and positions it is worse",
    "residual-none": "without residual connections it is worse",
    "attention-first": "with all attention first and all feed-forward layers after it is worse",
    "norm-none": "without layer norms it is worse",
    "heads-1": "with one head of the same total size it is worse",
    "recipe-naive": "with hyper-parameters that nobody tuned it is worse",
    "position-rope": "with rotary positions, which came later, it is worse",
}
CLAIMS = tuple(CHANGES.values())
ROWS, TESTED = 16, 200
RATES = (0.002, 0.005)  # the better one counts; chosen by the first seed, on sentences of their own
SMALL: dict[str, Any] = {
    "model.layers": 4, "model.hidden": 32, "model.heads": 4, "model.head_size": 8, "model.inner": 128,
    "model.context": LENGTH, "train.batch": ROWS,
}  # fmt: skip
OWN: dict[str, dict[str, Any]] = {  # what the presets name for six layers and another width
    "heads-1": {"model.heads": 1, "model.head_size": 32},
    "attention-first": {"model.exceptions": ("1-2: order=AA", "3-4: order=FF")},
}


class Trials(NamedTuple):
    """The results of one model over the seeds."""

    weights: int
    rate: float
    curves: list[list[float]]
    costs: list[Floats]  # nats of the translation of each sentence

    @property
    def nats(self) -> tuple[float, float]:
        """Nats per word: the mean over seeds, and its spread."""
        return mean_and_spread([float(each.mean()) for each in self.costs])


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Train the original and every model that lacks one change, for the same steps."""
    fitting.refuse("many-changes", run)
    seeds, steps = (2, 6) if quick else (3, 400)
    names = (ORIGINAL, *CHANGES)
    trainings = len(names) * (seeds + len(RATES) - 1)
    yield Stage("train, one change taken away at a time", trainings * steps, "steps")
    count, found = Count(), {}
    for name in names:
        found[name] = yield from _trials(name, seeds, steps, count)
    tests = {name: against(found[name].costs, found[ORIGINAL].costs, np.ones(TESTED)) for name in CHANGES}
    corrected = dict(zip(tests, holm([test.p for test in tests.values()]), strict=True))
    worst = max(tests, key=lambda name: tests[name].behind)
    worse = sum(test.behind > 0 and corrected[name] < LEVEL for name, test in tests.items())
    yield from finish(
        ExperimentResult(
            "many-changes", "Many changes at once, one by one", 'MAUSAM "Transformers (2017) Made Many '
            'Changes at Once!"', CLAIM,
            f"{worse} of {len(CHANGES)} are worse; {worst} most ({tests[worst].behind:+.2f} nats)",
            _judged(found, tests, corrected, quick),
            "Presets `ablations/NAME` with 4 layers of width 32 continue a sentence by its translation to "
            f"the made language of `nextword lab attention`: {steps} steps of {ROWS} sentences, {seeds} "
            f"seeds, the better of the rates {' and '.join(f'{rate:g}' for rate in RATES)} for each; p is "
            "Holm's for all parts. The language is small, and no sentence is read twice, so dropout and "
            "smoothing have nothing to prevent, and smoothing costs 0.1 nats by itself; longer training and "
            "larger models give other numbers.",
            (_differences(tests, corrected), _learning(found), _table(found, tests, corrected)),
        ),
        out,
    )  # fmt: skip


def _trials(name: str, seeds: int, steps: int, count: Count) -> Generator[Event, None, Trials]:
    """Train a preset with every seed, at the rate that suits it better."""
    first: dict[float, Learned] = {}
    for rate in RATES:
        first[rate] = yield from _learned(name, 0, steps, rate, count)
    rate = min(RATES, key=lambda each: float(_costs(first[each], seed=7).mean()))
    learned = [first[rate]]
    for seed in range(1, seeds):
        learned.append((yield from _learned(name, seed, steps, rate, count)))
    weights = sum(weight.numel() for weight in learned[0].model.network.parameters())
    return Trials(weights, rate, [each.losses for each in learned], [_costs(each, 8) for each in learned])


def _learned(name: str, seed: int, steps: int, rate: float, count: Count) -> Generator[Event, None, Learned]:
    sets = SMALL | OWN.get(name, {}) | {"train.steps": steps, "train.rate": rate}
    settings = settings_of(f"ablations/{name}", seed, sets)
    source = Made(partial(make_batch, rows=ROWS), seed)
    return (yield from learn(settings, build(settings, VOCABULARY), source, count))


def _costs(learned: Learned, seed: int) -> Floats:
    """Return nats per word of new translations; a model whose training broke down guesses."""
    costs_B = target_nats(learned.model, TESTED, seed)
    return np.where(np.isfinite(costs_B), costs_B, np.log(VOCABULARY))


def _judged(
    found: dict[str, Trials], tests: dict[str, Test], corrected: dict[str, float], quick: bool
) -> tuple[Finding, ...]:
    judge, (nats, spread) = Judge(quick), found[ORIGINAL].nats
    for name, claim in CHANGES.items():
        own, own_spread = found[name].nats
        judge.measure(
            claim,
            by_test(tests[name].behind, corrected[name]),
            f"{own:.2f} ± {own_spread:.2f} nats per word, the original {nats:.2f} ± {spread:.2f} (p = "
            f"{corrected[name]:.2g})",
        )
    return judge.findings


def _differences(tests: dict[str, Test], corrected: dict[str, float]) -> Chart:
    def colour(name: str) -> str:
        if corrected[name] >= LEVEL:
            return "var(--soft)"
        return "var(--c1)" if tests[name].behind > 0 else "var(--c2)"

    order = sorted(tests.items(), key=lambda each: each[1].behind)
    drawn = intervals(
        [Interval(name, t.behind, t.low, t.high, colour(name), f"{t.behind:+.2f}") for name, t in order],
        "What the change was worth",
        "nats per word of new translations, against the original; right: the change helps",
    )
    caption = "Each model lacks one change, or has another part in its place; grey: no verdict."
    return Chart(drawn, caption)


def _learning(found: dict[str, Trials]) -> Chart:
    series = []
    for look, (name, trials) in enumerate(found.items()):
        losses = trials.curves[0]
        smooth = [float(np.mean(losses[max(0, at - 19) : at + 1])) for at in range(len(losses))]
        points = tuple((at + 1.0, value) for at, value in enumerate(smooth) if at % 5 == 4)
        series.append(Series(name, points or ((1.0, smooth[-1]),), look))
    drawn = lines(series, "Learning", Axis("step"), Axis("nats per word, source included", log=True))
    caption = "The first seed of each, mean of 20 steps. Smoothing and dropout add to the loss of training."
    return Chart(drawn, caption)


def _table(found: dict[str, Trials], tests: dict[str, Test], corrected: dict[str, float]) -> Table:
    rows = tuple(
        (
            name, trials.weights, trials.rate, "{:.3f} ± {:.3f}".format(*trials.nats),
            f"{tests[name].behind:+.3f}" if name in tests else "",
            f"{corrected[name]:.2g}" if name in tests else "",
        )
        for name, trials in found.items()
    )  # fmt: skip
    heads = ("model", "weights", "rate", "nats per word", "against the original", "p")
    return Table(heads, rows, "All models; ± is one standard deviation over seeds")
