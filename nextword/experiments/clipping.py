"""Gradients that explode: the cliff they fall from, and what clipping them by norm does.

[XMU "Exploding gradient": g = C ∇ℓ / ‖∇ℓ‖ where ‖∇ℓ‖ > C; Pascanu et al. 2013, whose cliff is drawn here]
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import numpy as np

from nextword.core.events import Event, Stage
from nextword.data.batches.windows import Windows
from nextword.drawing.page import Table
from nextword.drawing.svg import Axis, Guide, Series, lines, number
from nextword.experiments import fitting
from nextword.experiments.result import Chart, ExperimentResult, finish
from nextword.experiments.small import Count, Learned, Letters, build, learn, read_letters, settings_of

CLAIM = (
    "The gradient might be too long; cut to the length C it keeps its direction, and descent stays on course."
)
LONGEST = 1.0  # C
STEPS, LENGTH, RATE = 15, 64, 0.15
BIAS, BEGIN, AIM = -2.5, 0.5, 0.7  # of the cliff
SETS = {
    "model.layers": 1, "model.hidden": 64, "model.embedding": 32, "model.activation": "relu",
    "model.scaling": "none", "model.tied": False, "train.optimizer": "sgd", "train.rate": RATE,
    "train.schedule": "constant", "train.warmup": 0.0, "train.decay": 0.0, "train.weight_decay": 0.0,
}  # fmt: skip


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Show the cliff of one unit, then a vanilla network trained with and without clipping."""
    fitting.refuse("clipping", run)
    seeds, steps = (1, 15) if quick else (3, 100)
    text = yield from read_letters(30_000 if quick else 200_000, 5_000)
    yield Stage("learn with and without clipping", 2 * seeds * steps, "steps")
    count = Count()
    found: dict[str, list[Learned]] = {}
    for name, longest in (("not clipped", 0.0), (f"clipped at {LONGEST:g}", LONGEST)):
        found[name] = yield from _trainings(text, longest, seeds, steps, count)
    free, clipped = found.values()
    lost = sum(bool(each.broke) or each.losses[-1] > each.losses[0] for each in free)
    ends = [float(np.mean(each.losses[-10:])) for each in clipped]
    free_ends = [float(np.mean(each.losses[-10:])) for each in free if not each.broke]
    begins = float(np.mean([each.losses[0] for each in clipped]))
    worst = max(max(each.norms, default=0.0) for each in free)
    summary = f", the others end at {np.mean(free_ends):.2f}" if free_ends else ""
    yield from finish(
        ExperimentResult(
            "clipping", "Clipping gradients that explode", 'XMU "Exploding gradient"', CLAIM,
            all(end < begins for end in ends) and (lost > 0 or np.mean(free_ends) > np.mean(ends)),
            f"without clipping {lost} of {seeds} training runs diverged (gradients up to {worst:,.0f} long)"
            f"{summary}; clipped at {LONGEST:g}, all go from {begins:.2f} to {np.mean(ends):.2f} nats "
            "per letter.",
            (
                _cliff(), _norms(found), _losses(found),
                f"Measured on {text.about}: a vanilla network with ReLU, plain SGD at a rate of {RATE:g}.",
            ),
        ),
        out,
    )  # fmt: skip


def _trainings(
    text: Letters, longest: float, seeds: int, steps: int, count: Count
) -> Generator[Event, None, list[Learned]]:
    found = []
    for seed in range(seeds):
        settings = settings_of("rnn", seed, {**SETS, "train.clip": longest, "train.steps": steps})
        source = Windows(text.ids, batch=16, length=LENGTH, seed=seed)
        found.append((yield from learn(settings, build(settings, text.vocab_size), source, count)))
    return found


def unit_loss(w: float) -> tuple[float, float]:
    """Return (h_15 - 0.7)² of one unit h_t = σ(w h_{t-1} + b), and its slope in w."""
    h, slope = BEGIN, 0.0
    for _ in range(STEPS):
        after = 1 / (1 + np.exp(-(w * h + BIAS)))
        slope = after * (1 - after) * (h + w * slope)
        h = after
    return float((h - AIM) ** 2), float(2 * (h - AIM) * slope)


def _cliff() -> Chart:
    """Return the loss over the one weight, and a step from the edge with and without clipping."""
    rate, first, start = 0.1, 4.2, 4.99
    weights = [first + i * 0.01 for i in range(160)]
    loss, slope = unit_loss(start)
    cut = start - rate * slope / max(1.0, abs(slope) / LONGEST)
    free = start - rate * slope
    series = [
        Series("the loss", tuple((w, unit_loss(w)[0]) for w in weights)),
        Series("on the cliff", ((start, loss),)),
        Series("a step, clipped", ((cut, unit_loss(cut)[0]),)),
        Series("a step, not clipped", ((free, unit_loss(free)[0]),)),
    ]
    drawn = lines(series, "The loss of a single unit over its weight", Axis("weight w from h to h"),
                  Axis(f"loss after {STEPS} steps"))  # fmt: skip
    rows = (("slope on the cliff", slope), ("w after a clipped step", cut), ("w after a full step", free))
    caption = (
        f"One unit, one weight, {STEPS} steps: a plain that ends at a cliff. On its face the slope is "
        f"{slope:.1f}, so a full step of rate {rate:g} is thrown to w = {free:.2f}; the clipped one goes the "
        f"same way, but {abs(cut - start):g} far."
    )
    return Chart(drawn, caption, Table(("what", "value"), rows))


def _norms(found: dict[str, list[Learned]]) -> Chart:
    series = _series(found, [[each.norms for each in learned] for learned in found.values()])
    guide = Guide(LONGEST, f"C = {LONGEST:g}")
    drawn = lines(series, "Length of the gradient by step", Axis("step"),
                  Axis("length of the gradient as it comes", log=True), [guide])  # fmt: skip
    return Chart(drawn, "The gradient before it is cut, one line per seed; one that stops early diverged.")


def _losses(found: dict[str, list[Learned]]) -> Chart:
    series = _series(found, [[each.losses for each in learned] for learned in found.values()])
    drawn = lines(series, "Loss by step", Axis("step"), Axis("loss, nats per letter", log=True))
    rows = tuple(
        (name, seed, each.losses[0], each.losses[-1], number(max(each.norms)), _broke(each))
        for name, learned in found.items() for seed, each in enumerate(learned)
    )  # fmt: skip
    table = Table(("training", "seed", "first loss", "last loss", "longest gradient", "broke down"), rows)
    return Chart(drawn, "The loss; a line that stops early ended in NaN.", table)


def _broke(learned: Learned) -> str:
    return f"after step {len(learned.losses)}" if learned.broke else "no"


def _series(found: dict[str, list[Learned]], values: list[list[list[float]]]) -> list[Series]:
    """Draw one line per seed, named once."""
    return [
        Series(name, tuple((float(step), value) for step, value in enumerate(line, start=1)), look, seed == 0)
        for look, (name, rows) in enumerate(zip(found, values, strict=True))
        for seed, line in enumerate(rows)
    ]
