"""Random truncation: right on average, and its cost in variance.

[XMU "Truncating time steps", "Random truncation"]. The slide keeps the rest of the gradient with probability
π and multiplies it by π ξ, whose mean is π²; unbiased is ξ / π, which is what `train.bptt=random(p)` does.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import numpy as np

from nextword.core.events import Event, Progress, Stage
from nextword.drawing.page import Table
from nextword.drawing.svg import Axis, Series, lines
from nextword.experiments import derivations as by
from nextword.experiments import fitting
from nextword.experiments.derivations import Example, Floats
from nextword.experiments.finding import Judge, Verdict
from nextword.experiments.result import Chart, ExperimentResult, finish

CLAIM = "Cutting the gradient at random, with P(ξ = 1) = π, keeps it right on average: E[g_t] = ∂h_t/∂w."
MEAN = "E[g_t] = ∂h_t/∂w, with the factor π ξ as printed"
DRAWS = "so the mean of many gradients that were cut at random is the full gradient"
CLAIMS = (MEAN, DRAWS)
KEEP = 0.8
LENGTH = 24
CUT = 5  # steps of the plain truncation beside it
KEEPS = (0.5, 0.7, 0.8, 0.9, 0.95)


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Average many random gradients, as printed and corrected; then their spread by length."""
    fitting.refuse("random-truncation", run)
    draws, repeats = (2_000, 4) if quick else (40_000, 12)
    example = by.random_example(hidden=6, words=8, length=LENGTH, seed=3, gain=1.0)
    full = by.by_backpropagation(example)
    errors = yield from _averages(example, full, draws, repeats)
    spreads = yield from _spreads(2_000 if quick else 20_000)
    trainer = _trainer(example, full, draws)
    right, printed = errors["ξ / π (unbiased)"][-1], errors["π ξ (as printed)"][-1]
    cut = _relative(by.truncated(example, CUT), full)
    longest = spreads[KEEP][-1]
    printed_mean, right_mean = (
        _relative(expected(example, KEEP * factor), full) for factor in (KEEP, 1 / KEEP)
    )
    judge = Judge(quick)
    judge.exact(
        MEAN,
        Verdict.CORRECTED if right_mean < 1e-9 < printed_mean else Verdict.FAILED,
        f"as printed the mean factor is π² per step, and E[g] is {printed_mean:.0%} from the gradient; "
        f"with ξ / π it is {right_mean:.0e} from it",
    )
    judge.measure(
        DRAWS,
        Verdict.CORRECTED if right < 0.1 and printed > 3 * right else Verdict.FAILED,
        f"after {draws:,} draws {right:.1%} away with ξ / π and {printed:.0%} with π ξ; plain "
        f"truncation after {CUT} steps is {cut:.0%} away; the price is spread: one draw over "
        f"{longest[0]} steps is off by {longest[1]:.1f} times the gradient's length",
    )
    yield from finish(
        ExperimentResult(
            "random-truncation", "Random truncation: unbiased, at a price", 'XMU "Random truncation"', CLAIM,
            f"with ξ/π right on average; as printed (π·ξ) {printed_mean:.0%} off", judge.findings,
            f"A vanilla network of 6 units reads {LENGTH} words; its gradient is cut at random with π = "
            f"{KEEP}, {draws:,} times, and averaged ({repeats} repeats). The expected value is computed "
            "exactly.",
            (
                _of_averages(errors, cut, draws), _of_spreads(spreads),
                Table(("gradient", "relative error of the mean"), (
                    ("NumPy, ξ / π", right), ("the trainer's random(0.8)", trainer),
                    ("NumPy, π ξ as printed", printed), (f"truncated({CUT})", cut),
                ), f"After {draws:,} draws, over {LENGTH} steps"),
            ),
        ),
        out,
    )  # fmt: skip


def _relative(found: Floats, full: Floats) -> float:
    return float(np.linalg.norm(found - full) / np.linalg.norm(full))


def expected(example: Example, factor: float) -> Floats:
    """Return the expected gradient: an appearance k steps back keeps ``factor`` to the power of k of its own.

    ``factor`` is the mean of what a step is multiplied by: π² for π ξ, and 1 for ξ / π.
    """
    appearances = by.by_appearance(example)
    back = np.arange(len(appearances))[::-1]
    return np.asarray((factor ** back[:, None, None] * appearances).sum(axis=0))


def places(draws: int) -> list[int]:
    """Tell where the running mean is looked at: 1, 2, 5, 10, …"""
    found = [m * 10**n for n in range(7) for m in (1, 2, 5) if m * 10**n <= draws]
    return found if found[-1] == draws else [*found, draws]


def _averages(
    example: Example, full: Floats, draws: int, repeats: int
) -> Generator[Event, None, dict[str, list[float]]]:
    """Measure the error of the mean of n draws, for both factors: the root mean square over repeats."""
    factors = {"ξ / π (unbiased)": 1 / KEEP, "π ξ (as printed)": KEEP}
    yield Stage("average random gradients", repeats * len(factors), "repeats")
    found: dict[str, list[float]] = {}
    done = 0
    for name, factor in factors.items():
        squares = np.zeros(len(places(draws)))
        for seed in range(repeats):
            drawn = by.at_random(example, KEEP, factor, draws, np.random.default_rng(seed))
            means = np.cumsum(drawn, axis=0)
            squares += [_relative(means[n - 1] / n, full) ** 2 for n in places(draws)]
            done += 1
            yield Progress(done)
        found[name] = [float(value) for value in np.sqrt(squares / repeats)]
    return found


def _spreads(draws: int) -> Generator[Event, None, dict[float, list[tuple[int, float]]]]:
    """Measure how far a single draw is from the mean, by the length of the row."""
    lengths = (4, 8, 12, 16, 20, 24, 32)
    yield Stage("measure the variance", len(KEEPS) * len(lengths), "lengths")
    found: dict[float, list[tuple[int, float]]] = {keep: [] for keep in KEEPS}
    for done, (keep, length) in enumerate((keep, length) for keep in KEEPS for length in lengths):
        example = by.random_example(hidden=6, words=8, length=length, seed=3, gain=1.0)
        drawn = by.at_random(example, keep, 1 / keep, draws, np.random.default_rng(0))
        spread = np.sqrt(drawn.var(axis=0).sum()) / np.linalg.norm(by.by_backpropagation(example))
        found[keep].append((length, float(spread)))
        yield Progress(done + 1)
    return found


def _trainer(example: Example, full: Floats, draws: int) -> float:
    """Compute the same mean by the trainer's own cut: every row of one batch draws for itself."""
    import torch

    from nextword.models.randomness import TRAINING, seeded
    from nextword.tasks.objectives.bptt import RandomCut

    W_h, W_e, b, W_y, e_TE = (
        torch.tensor(part, dtype=torch.float64)
        for part in (example.W_h, example.W_e, example.b, example.W_y, example.e_TE)
    )
    W_h.requires_grad_()
    cut = RandomCut(KEEP)
    with seeded(torch.device("cpu"), 0, TRAINING):
        h = torch.zeros(draws, len(b), dtype=torch.float64)
        for e in e_TE:
            h = torch.tanh(cut((h,))[0] @ W_h.T + W_e @ e + b)
        torch.autograd.backward(-torch.log_softmax(h @ W_y.T, dim=1)[:, example.target].mean())
    assert W_h.grad is not None
    return _relative(W_h.grad.numpy(), full)


def _of_averages(errors: dict[str, list[float]], cut: float, draws: int) -> Chart:
    at = places(draws)
    series = [Series(name, tuple((float(n), e) for n, e in zip(at, values, strict=True)))
              for name, values in errors.items()]  # fmt: skip
    series.append(Series(f"truncated({CUT})", ((1.0, cut), (float(draws), cut))))
    drawn = lines(series, "Error of the mean of n random gradients", Axis("draws averaged, n", log=True),
                  Axis("error, relative to the full gradient", log=True))  # fmt: skip
    rows = tuple((n, *(errors[name][i] for name in errors)) for i, n in enumerate(at))
    caption = (
        f"The mean of n gradients cut at random (π = {KEEP}, {LENGTH} steps): unbiased falls as 1/√n and "
        "continues to fall; a biased one stops."
    )
    return Chart(drawn, caption, Table(("draws", *errors), rows))


def _of_spreads(spreads: dict[float, list[tuple[int, float]]]) -> Chart:
    series = [
        Series(f"π = {keep}", tuple((float(t), v) for t, v in points)) for keep, points in spreads.items()
    ]
    drawn = lines(series, "Spread of one random gradient by length", Axis("steps in the row, T"),
                  Axis("standard deviation / length of the gradient", log=True))  # fmt: skip
    lengths = [t for t, _ in spreads[KEEP]]
    rows = tuple((t, *(spreads[keep][i][1] for keep in spreads)) for i, t in enumerate(lengths))
    caption = (
        "The cost: the spread of a single draw grows with the length of the row, and the faster the more "
        "often it is cut."
    )
    return Chart(drawn, caption, Table(("T", *(f"π = {keep}" for keep in spreads)), rows))
