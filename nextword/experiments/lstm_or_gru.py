"""LSTM or GRU: the same text and steps, several seeds, and a significance test.

[IITD-2 "LSTM vs GRU": GRU is quicker to compute and has fewer parameters; there is no conclusive evidence
that one consistently performs better]
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import cast

import numpy as np
from torch import nn

from nextword.core.contracts import NATS_PER_BIT
from nextword.core.events import Event, Stage
from nextword.data.batches.windows import Windows
from nextword.drawing.page import Table
from nextword.drawing.svg import Axis, Series, bars, lines
from nextword.evaluation import significance
from nextword.evaluation.significance import LEVEL, Test
from nextword.experiments import fitting, reach
from nextword.experiments.finding import Finding, Judge, Verdict
from nextword.experiments.result import Chart, ExperimentResult, finish
from nextword.experiments.small import (
    Count,
    Floats,
    Letters,
    Made,
    build,
    learn,
    mean_and_spread,
    nats,
    read_letters,
    rows_of,
    settings_of,
)

CLAIM = (
    "GRU is quicker to compute and has fewer parameters; there is no conclusive evidence that one "
    "consistently performs better than the other."
)
FEWER = "GRU has fewer parameters"
QUICKER = "GRU is quicker to compute"
NEITHER = "there is no conclusive evidence that one consistently performs better"
CLAIMS = (FEWER, QUICKER, NEITHER)
NOISE = 0.05  # a smaller difference in time, as a share, does not count
CELLS = ("lstm", "gru")
HIDDEN, LENGTH = 64, 48
DISTANCES = (7, 14, 28, 56)  # of the tickets


@dataclass
class Trials:
    """The results of one cell over the seeds."""

    weights: int = 0
    seconds: list[float] = field(default_factory=list)  # of processor time, for the letters
    curves: list[list[float]] = field(default_factory=list)
    costs: list[Floats] = field(default_factory=list)  # bits of each block of held-out letters
    recalled: list[Floats] = field(default_factory=list)  # share of the nouns, by distance


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Train both cells on letters and on the tickets sentence, for the same steps."""
    fitting.refuse("lstm-or-gru", run)
    seeds, steps = (2, 10) if quick else (3, 250)
    text = yield from read_letters(40_000 if quick else 400_000, 30_000)
    yield Stage("learn", 2 * len(CELLS) * seeds * steps, "steps")
    count = Count()
    trials = {name: Trials() for name in CELLS}
    for seed in range(seeds):
        for name in CELLS:
            yield from _letters(name, seed, steps, text, trials[name], count)
            yield from _tickets(name, seed, steps, trials[name], count)
    lstm, gru = trials.values()
    size = np.full(len(lstm.costs[0]), float(LENGTH))
    bits = {
        name: mean_and_spread([float(costs.sum() / size.sum()) for costs in each.costs])
        for name, each in trials.items()
    }
    worse, best = (lstm, gru) if bits["lstm"][0] > bits["gru"][0] else (gru, lstm)
    test = significance.against(worse.costs, best.costs, size)
    recalls = {name: [float(np.mean(each)) for each in t.recalled] for name, t in trials.items()}
    p_recall = significance.welch(recalls["lstm"], recalls["gru"])
    times = np.array(gru.seconds) / np.array(lstm.seconds)
    yield from finish(
        ExperimentResult(
            "lstm-or-gru", "LSTM or GRU?", 'IITD-2 "LSTM vs GRU"', CLAIM,
            f"GRU: {gru.weights / lstm.weights:.0%} of the weights, {times.mean():.0%} of the time, "
            f"{bits['gru'][0]:.2f} bits per letter (LSTM {bits['lstm'][0]:.2f})",
            _judged(trials, test, recalls, p_recall, quick),
            f"Letters: {text.about}. Tickets: the sentence of the experiment reach. One layer of {HIDDEN} "
            f"units, {steps} steps, {seeds} seeds; ± is one standard deviation over seeds.",
            (_learning(trials), _bars(bits), _table(trials, bits, recalls, test, p_recall)),
        ),
        out,
    )  # fmt: skip


def _letters(
    name: str, seed: int, steps: int, text: Letters, trials: Trials, count: Count
) -> Generator[Event, None, None]:
    settings = settings_of(name, seed, {"model.layers": 1, "model.hidden": HIDDEN, "train.steps": steps})
    network = build(settings, text.vocab_size, text.counts)
    inner = sum(weight.numel() for weight in cast(nn.ModuleList, network.layers).parameters())
    learned = yield from learn(
        settings, network, Windows(text.ids, batch=32, length=LENGTH, seed=seed), count
    )
    held_BT = rows_of(text.held, LENGTH + 16, 400)
    trials.weights = inner
    trials.seconds.append(learned.seconds)
    trials.curves.append(learned.losses)
    trials.costs.append(nats(learned.model, held_BT, skip=16).sum(axis=1) / NATS_PER_BIT)


def _tickets(name: str, seed: int, steps: int, trials: Trials, count: Count) -> Generator[Event, None, None]:
    settings = settings_of(name, seed, {"model.layers": 1, "model.hidden": HIDDEN, "train.steps": steps})
    network = build(settings, reach.VOCABULARY)
    learned = yield from learn(settings, network, Made(reach.make_batch, seed), count)
    shares = [reach.recalled(learned.model, distance, 64, seed) for distance in DISTANCES]
    trials.recalled.append(np.array(shares))


def _judged(
    trials: dict[str, Trials],
    test: Test,
    recalls: dict[str, list[float]],
    p_recall: float | None,
    quick: bool,
) -> tuple[Finding, ...]:
    """Judge size, time and quality; the better one must be better on letters and on the tickets."""
    lstm, gru = (trials[name] for name in CELLS)
    judge = Judge(quick)
    judge.exact(
        FEWER,
        gru.weights < lstm.weights,
        f"{gru.weights:,} weights in the layer against {lstm.weights:,}, {gru.weights / lstm.weights:.0%}",
    )
    times = np.array(gru.seconds) / np.array(lstm.seconds)
    kernel = ", where the LSTM has a fused kernel and the slide's GRU has none" if times.mean() > 1 else ""
    judge.measure(QUICKER, in_time(times), f"{times.mean():.0%} of the LSTM's processor time here{kernel}")
    ahead = {name: float(np.mean([costs.sum() for costs in each.costs])) for name, each in trials.items()}
    by_text = min(ahead, key=lambda name: ahead[name])
    by_recall = max(recalls, key=lambda name: float(np.mean(recalls[name])))
    sure = [test.p < LEVEL, p_recall is not None and p_recall < LEVEL]
    points = 100 * abs(np.mean(recalls["lstm"]) - np.mean(recalls["gru"]))
    judge.measure(
        NEITHER,
        not (all(sure) and by_text == by_recall),
        f"on letters the {by_text.upper()} is ahead by {test.behind:.3f} bits (p = {test.p:.2g}), on "
        f"the tickets the {by_recall.upper()} by {points:.0f} points (p = {_p(p_recall)})",
    )
    return judge.findings


def in_time(times: Floats) -> Verdict:
    """Judge the GRU's share of the LSTM's time, seed by seed: all must agree, beyond what is noise."""
    if (times < 1 - NOISE).all():
        return Verdict.HELD
    return Verdict.FAILED if (times > 1 + NOISE).all() else Verdict.OPEN


def _p(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2g}"


def _learning(trials: dict[str, Trials]) -> Chart:
    series = []
    for look, (name, each) in enumerate(trials.items()):
        for seed, losses in enumerate(each.curves):
            smooth = [
                float(np.mean(losses[max(0, i - 9) : i + 1])) / NATS_PER_BIT for i in range(len(losses))
            ]
            points = tuple((float(i + 1), value) for i, value in enumerate(smooth) if i >= 9)
            series.append(Series(name, points or ((1.0, smooth[-1]),), look, seed == 0))
    drawn = lines(series, "Learning letters", Axis("step"), Axis("bits per letter, mean of ten steps"))
    return Chart(drawn, "How both learn letters, one line per seed.")


def _bars(bits: dict[str, tuple[float, float]]) -> Chart:
    values = [(name, mean) for name, (mean, _) in bits.items()]
    notes = [f"{mean:.3f} ± {spread:.3f}" for mean, spread in bits.values()]
    drawn = bars(values, "Bits per letter of new text", "bits per letter of held-out text; less is better",
                 notes, [spread for _, spread in bits.values()])  # fmt: skip
    return Chart(drawn, "Held-out text; whiskers are one standard deviation over seeds.")


def _table(
    trials: dict[str, Trials],
    bits: dict[str, tuple[float, float]],
    recalls: dict[str, list[float]],
    test: Test,
    p_recall: float | None,
) -> Table:
    rows = tuple(
        (name, each.weights, float(np.mean(each.seconds)), f"{bits[name][0]:.3f} ± {bits[name][1]:.3f}",
         "{:.0%} ± {:.0%}".format(*mean_and_spread(recalls[name])))
        for name, each in trials.items()
    )  # fmt: skip
    p_tickets = 1.0 if p_recall is None else p_recall
    last = ("p of the difference", None, None, f"{test.p:.3g}", f"{p_tickets:.3g}")
    heads = ("cell", "weights of the layer", "seconds to train", "bits per letter", "tickets recalled")
    return Table(heads, (*rows, last), "Both cells, the larger p of text and seeds")
