"""Gradients that explode: the cliff that throws a weight far away, and what clipping by norm does.

[XMU "Exploding gradient": g = C ∇ℓ / ‖∇ℓ‖ where ‖∇ℓ‖ > C; Pascanu et al. 2013, whose cliff is drawn here]
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from nextword.core.events import Event, Stage
from nextword.data.batches.windows import Windows
from nextword.drawing.page import Table
from nextword.drawing.svg import Axis, Guide, Series, lines, number
from nextword.experiments import fitting
from nextword.experiments.finding import Finding, Judge, by_all
from nextword.experiments.result import Chart, ExperimentResult, finish
from nextword.experiments.small import (
    Count,
    Learned,
    Letters,
    build,
    learn,
    read_letters,
    settings_of,
)

CLAIM = (
    "The gradient might be too large (its length might be infinite); cut to the length C it keeps its "
    "direction, and descent stays on course."
)
LARGE = "the gradient might be too large"
DIRECTION = "cut to the length C it keeps its direction"
CLIFF = "at a cliff a full step throws the weight far away, and a clipped one does not"
COURSE = "clipped descent learns where plain descent breaks down"
CLAIMS = (LARGE, DIRECTION, CLIFF, COURSE)
LONGEST = 1.0  # C
LENGTH = 64
RATES = (0.02, 0.05, 0.15, 0.4)
SHOWN = 0.05  # the rate whose training runs are drawn step by step
LAST = 10  # steps at the end whose median loss counts
SETS = {
    "model.layers": 1, "model.hidden": 64, "model.embedding": 32, "model.activation": "relu",
    "model.scaling": "none", "model.tied": False, "train.optimizer": "sgd",
    "train.schedule": "constant", "train.warmup": 0.0, "train.decay": 0.0, "train.weight_decay": 0.0,
}  # fmt: skip

# The cliff: one unit h_t = σ(w h_{t-1} + b), whose last state should be AIM.
STEPS, BIAS, BEGIN, AIM = 15, -2.5, 0.5, 0.2
WEIGHT, RATE, CUT, DESCENT = 4.5, 2.0, 0.02, 120  # the first w, the rate, C there, steps of descent

Trainings = dict[tuple[bool, float], list[Learned]]  # (clipped, rate) -> one per seed


@dataclass(frozen=True)
class Descent:
    """The weight and the loss of one unit, step by step."""

    weights: list[float]
    losses: list[float]


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Show the cliff of one unit, then a vanilla network trained at several rates, with and without "
    "clipping."""
    fitting.refuse("clipping", run)
    seeds, steps = (1, 15) if quick else (5, 100)
    text = yield from read_letters(30_000 if quick else 200_000, 5_000)
    yield Stage("learn with and without clipping", 2 * len(RATES) * seeds * steps, "steps")
    count = Count()
    found: Trainings = {}
    for clipped in (False, True):
        for rate in RATES:
            found[clipped, rate] = yield from _trainings(text, rate, clipped, seeds, steps, count)
    broke = {kind: sum(_broke(found, kind, rate) for rate in RATES) for kind in (False, True)}
    free, cut = descend(0.0), descend(CUT)
    yield from finish(
        ExperimentResult(
            "clipping", "Clipping gradients that explode", 'XMU "Exploding gradient"', CLAIM,
            f"{broke[False]} of {seeds * len(RATES)} training runs diverged without clipping, "
            f"{broke[True]} with it",
            _judged(found, free, cut, quick),
            f"Measured on {text.about}: a vanilla network with ReLU, plain SGD at rates from {RATES[0]:g} "
            f"to {RATES[-1]:g}, {steps} steps, {seeds} seeds for each, C = {LONGEST:g}. A run has diverged "
            "if it ends in NaN or above its first loss. The cliff is the loss of a single unit.",
            (_landscape(free, cut), _descents(free, cut), _rates(found), _norms(found), _losses(found)),
        ),
        out,
    )  # fmt: skip


def _judged(found: Trainings, free: Descent, cut: Descent, quick: bool) -> tuple[Finding, ...]:
    """Judge the parts of the claim; for the last one every rate counts, not one that suits."""
    judge = Judge(quick)
    longest = max(
        max(each.norms, default=0.0) for (kind, _), runs in found.items() if not kind for each in runs
    )
    first = float(np.mean([each.norms[0] for runs in found.values() for each in runs]))
    judge.measure(
        LARGE,
        longest > 1000 * LONGEST,
        f"up to {number(longest)} without clipping, where training begins with {first:.2g}",
    )
    judge.exact(DIRECTION, abs(_cosine() - 1) < 1e-6, f"cosine of the two: {_cosine():.7f}")
    judge.exact(
        CLIFF,
        min(free.weights) < WEIGHT - 1 and cut.losses[-1] < 0.5 * free.losses[-1],
        f"the full step goes from w = {_thrown(free)[0]:.2f} to {_thrown(free)[1]:.2f}, and after "
        f"{DESCENT} steps the loss is {free.losses[-1]:.4f}; clipped it is {cut.losses[-1]:.4f}",
    )
    broke = {kind: sum(_broke(found, kind, rate) for rate in RATES) for kind in (False, True)}
    best = {kind: _best(found, kind) for kind in (False, True)}
    fewer, lower = broke[True] < broke[False], best[True][1] < best[False][1]
    judge.measure(
        COURSE,
        by_all([fewer, lower]),
        f"{broke[False]} training runs diverged without clipping, {broke[True]} with it; at its best rate "
        f"the median run ends at {best[False][1]:.2f} nats per letter without (rate {best[False][0]:g}) "
        f"and at {best[True][1]:.2f} with it (rate {best[True][0]:g})",
    )
    return judge.findings


def _trainings(
    text: Letters, rate: float, clipped: bool, seeds: int, steps: int, count: Count
) -> Generator[Event, None, list[Learned]]:
    found = []
    longest = LONGEST if clipped else 0.0
    for seed in range(seeds):
        sets = {**SETS, "train.rate": rate, "train.clip": longest, "train.steps": steps}
        settings = settings_of("rnn", seed, sets)
        source = Windows(text.ids, batch=16, length=LENGTH, seed=seed)
        found.append((yield from learn(settings, build(settings, text.vocab_size), source, count)))
    return found


def diverged(learned: Learned) -> bool:
    """Tell whether a training run ended in NaN, or above its first loss."""
    return bool(learned.broke) or not learned.losses or learned.losses[-1] > learned.losses[0]


def _broke(found: Trainings, clipped: bool, rate: float) -> int:
    return sum(diverged(each) for each in found[clipped, rate])


def _end(learned: Learned) -> float:
    """Return the loss at the end of a training run; infinite if it diverged."""
    return math.inf if diverged(learned) else float(np.median(learned.losses[-LAST:]))


def _middle(found: Trainings, clipped: bool, rate: float) -> float:
    """Return the median over all seeds, those that diverged included."""
    return float(np.median([_end(each) for each in found[clipped, rate]]))


def _best(found: Trainings, clipped: bool) -> tuple[float, float]:
    """Return the rate with the lowest median loss, and that loss."""
    loss, rate = min((_middle(found, clipped, rate), rate) for rate in RATES)
    return rate, loss


def _cosine() -> float:
    """Clip a long random gradient as the trainer does, and return the cosine of it and the original."""
    weight = nn.Parameter(torch.zeros(1000, dtype=torch.float64))
    long = 50 * torch.randn(1000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    weight.grad = long.clone()
    nn.utils.clip_grad_norm_([weight], LONGEST)
    return float(nn.functional.cosine_similarity(weight.grad, long, dim=0))


def unit_loss(w: float) -> tuple[float, float]:
    """Return (h_15 - 0.2)² of one unit h_t = σ(w h_{t-1} + b), and its slope in w."""
    h, slope = BEGIN, 0.0
    for _ in range(STEPS):
        after = 1 / (1 + np.exp(-(w * h + BIAS)))
        slope = after * (1 - after) * (h + w * slope)
        h = after
    return float((h - AIM) ** 2), float(2 * (h - AIM) * slope)


def descend(longest: float) -> Descent:
    """Descend from the plain towards the cliff; slopes above ``longest`` are cut to it (0: never)."""
    w, weights, losses = WEIGHT, [], []
    for _ in range(DESCENT + 1):
        loss, slope = unit_loss(w)
        weights.append(w)
        losses.append(loss)
        w -= RATE * (math.copysign(longest, slope) if 0 < longest < abs(slope) else slope)
    return Descent(weights, losses)


def _thrown(descent: Descent) -> tuple[float, float]:
    """Return the weight before and after the longest step."""
    at = int(np.argmax(np.abs(np.diff(descent.weights))))
    return descent.weights[at], descent.weights[at + 1]


def _landscape(free: Descent, cut: Descent) -> Chart:
    """Return the loss over the one weight, and where descent ends with and without clipping."""
    edge, lands = _thrown(free)
    weights = np.linspace(min(-1.0, lands - 0.5), 6.0, 200)
    series = [
        Series("the loss", tuple((float(w), unit_loss(float(w))[0]) for w in weights)),
        Series("both start", ((WEIGHT, free.losses[0]),)),
        Series("on the cliff", ((edge, unit_loss(edge)[0]),)),
        Series("thrown here", ((lands, unit_loss(lands)[0]),)),
        Series("clipped: the end", ((cut.weights[-1], cut.losses[-1]),)),
    ]
    drawn = lines(series, "The loss of a single unit over its weight", Axis("weight w from h to h"),
                  Axis(f"loss after {STEPS} steps", log=True))  # fmt: skip
    rows = (
        ("slope where both start", unit_loss(WEIGHT)[1]), ("slope on the cliff", unit_loss(edge)[1]),
        ("w after the full step", lands), ("w at the end, clipped", cut.weights[-1]),
        ("loss at the end, not clipped", free.losses[-1]), ("loss at the end, clipped", cut.losses[-1]),
    )  # fmt: skip
    caption = (
        f"One unit, one weight: the loss falls gently to the right and ends at a cliff, whose face is "
        f"{abs(unit_loss(edge)[1] / unit_loss(WEIGHT)[1]):,.0f} times as steep. A full step from there (rate "
        f"{RATE:g}) is thrown back to w = {lands:.2f}; steps clipped at C = {CUT:g} stay at its foot."
    )
    return Chart(drawn, caption, Table(("what", "value"), rows))


def _descents(free: Descent, cut: Descent) -> Chart:
    series = [
        Series(name, tuple((float(step), loss) for step, loss in enumerate(each.losses)))
        for name, each in (("not clipped", free), (f"clipped at {CUT:g}", cut))
    ]
    drawn = lines(series, "Descent of the single unit", Axis("step", zero=True), Axis("loss", log=True))
    return Chart(drawn, "The same descent step by step: what one full step from the cliff costs.")


def _rates(found: Trainings) -> Chart:
    """Draw the median loss at the end by rate; the table has every seed."""
    names = {False: "not clipped", True: f"clipped at {LONGEST:g}"}
    series = [
        Series(name, tuple((rate, _middle(found, kind, rate)) for rate in RATES))
        for kind, name in names.items()
    ]
    rows = tuple(
        (name, rate, f"{_broke(found, kind, rate)} of {len(found[kind, rate])}",
         ", ".join(f"{_end(each):.2f}" for each in found[kind, rate] if not diverged(each)) or "none",
         number(max(max(each.norms, default=0.0) for each in found[kind, rate])))
        for kind, name in names.items() for rate in RATES
    )  # fmt: skip
    ticks = tuple((rate, f"{rate:g}") for rate in RATES)
    drawn = lines([each for each in series if each.real], "Loss at the end by rate",
                  Axis("learning rate", log=True, names=ticks),
                  Axis("nats per letter, median over seeds"))  # fmt: skip
    heads = ("training", "rate", "diverged", "loss of the others", "longest gradient")
    caption = (
        "The loss at the end by learning rate, the median over all seeds, of which one that diverged is "
        "infinite: a line ends where more than half of the training runs diverged."
    )
    return Chart(drawn, caption, Table(heads, rows))


def _norms(found: Trainings) -> Chart:
    series = _series(found, {kind: [each.norms for each in found[kind, SHOWN]] for kind in (False, True)})
    guide = Guide(LONGEST, f"C = {LONGEST:g}")
    drawn = lines(series, f"Length of the gradient by step, rate {SHOWN:g}", Axis("step"),
                  Axis("length of the gradient as it comes", log=True), [guide])  # fmt: skip
    return Chart(drawn, "The gradient before it is cut, one line per seed; one that stops early diverged.")


def _losses(found: Trainings) -> Chart:
    series = _series(found, {kind: [each.losses for each in found[kind, SHOWN]] for kind in (False, True)})
    drawn = lines(
        series, f"Loss by step, rate {SHOWN:g}", Axis("step"), Axis("loss, nats per letter", log=True)
    )
    rows = tuple(
        ("clipped" if kind else "not clipped", seed, each.losses[0], each.losses[-1], number(max(each.norms)),
         f"after step {len(each.losses)}" if each.broke else "no")
        for kind in (False, True) for seed, each in enumerate(found[kind, SHOWN])
    )  # fmt: skip
    table = Table(("training", "seed", "first loss", "last loss", "longest gradient", "ended in NaN"), rows)
    return Chart(drawn, "The loss; a line that stops early ended in NaN.", table)


def _series(found: Trainings, values: dict[bool, list[list[float]]]) -> list[Series]:
    """Draw one line per seed, named once."""
    names = {False: "not clipped", True: f"clipped at {LONGEST:g}"}
    return [
        Series(names[kind], tuple((float(step), value) for step, value in enumerate(line, start=1)),
               look=int(kind), named=seed == 0)
        for kind, rows in values.items() for seed, line in enumerate(rows)
    ]  # fmt: skip
