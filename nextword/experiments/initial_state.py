"""Another h_0: does a small change of the initial state die out, or grow?

[XMU "The gradient may be a trouble maker": it is "not robust to changes in initial conditions";
"What are the eigenvalues of W_h?" (what matters is |λ|, and a W that is not normal can grow first)]
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import cast

import numpy as np
import torch
from torch import Tensor

from nextword.blocks.states import leaves, map_state
from nextword.core.events import Event, Progress, Stage
from nextword.data.batches.windows import Windows
from nextword.drawing.page import Table
from nextword.drawing.svg import Axis, Series, lines, number
from nextword.experiments import fitting, texts
from nextword.experiments.finding import Judge, by_all
from nextword.experiments.result import Chart, ExperimentResult, cells, finish
from nextword.experiments.small import Count, Floats, Ints, build, learn, read_letters, rows_of, settings_of
from nextword.models.network import Head, Network

SLIDE = 'XMU "The gradient may be a trouble maker"'
CLAIM = "The full gradient is not robust to changes in initial conditions; |λ| of W_h decides what grows."
GROWTH = "|λ| of W_h decides: a change of h_0 dies out below 1 and grows above"
FRAGILE = "the full gradient is not robust to changes in initial conditions"
CLAIMS = (GROWTH, FRAGILE)
LENGTH = 60
PUSH = 1e-3  # length of the change of h_0
CHANGED = 0.1  # a change of the gradient by more than this share is called not robust
GAINS = (0.5, 0.9, 1.5, 3.0)  # the orthogonal W_h is multiplied by these
TRAINED = ("rnn", "lstm", "gru")
SETS = {"model.layers": 1, "model.hidden": 64}


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Perturb new networks with ever larger W_h, and trained ones; or the network of a run."""
    if run is not None:
        yield from _of_run(run, out)
        return
    steps, rows = (8, 4) if quick else (250, 32)
    text = yield from read_letters(40_000 if quick else 300_000, 20_000)
    held_BT = rows_of(text.held, LENGTH + 1, rows)
    yield Stage("push the first state", len(GAINS), "networks")
    grown: dict[str, Floats] = {}
    turned: dict[str, float] = {}
    for done, gain in enumerate(GAINS, start=1):
        network = _scaled(gain, text.vocab_size)
        grown[f"W_h × {gain:g}"] = distances(network, held_BT)
        turned[f"W_h × {gain:g}"] = gradient_change(network, held_BT)
        yield Progress(done)
    yield Stage("learn letters", steps * len(TRAINED), "steps")
    count = Count()
    trained: dict[str, Floats] = {}
    for name in TRAINED:
        settings = settings_of(name, 0, {**SETS, "train.steps": steps})
        network = build(settings, text.vocab_size, text.counts)
        yield from learn(settings, network, Windows(text.ids, batch=16, length=LENGTH, seed=0), count)
        trained[f"{name}, trained"] = distances(network, held_BT)
        turned[f"{name}, trained"] = gradient_change(network, held_BT)
    small, large = (grown[f"W_h × {gain:g}"][-1] for gain in (GAINS[0], GAINS[-1]))
    as_said = [(curve[-1] > 1) == (gain > 1) for gain, curve in zip(GAINS, grown.values(), strict=True)]
    most = max(turned[name] for name in trained)
    sizes = ", ".join(
        f"{number(float(curve[-1]))} (|λ| = {gain:g})"
        for gain, curve in zip(GAINS, grown.values(), strict=True)
    )
    judge = Judge(quick)
    judge.measure(
        GROWTH,
        by_all(as_said),
        f"{LENGTH} letters later it is {sizes} times as large",
    )
    summary = ", ".join(f"{name.partition(',')[0]} {curve[-1]:.0e}" for name, curve in trained.items())
    largest = f"W_h × {GAINS[-1]:g}"
    judge.measure(
        FRAGILE,
        by_all([turned[largest] > CHANGED, most > CHANGED]),
        f"h_0 moved by {PUSH:g} changes the gradient of W_h by {turned[largest]:.0%} where |λ| = "
        f"{GAINS[-1]:g}, but by at most {most:.0e} of its length in trained networks, which forget h_0 "
        f"({summary} is left)",
    )
    yield from finish(
        ExperimentResult(
            "initial-state", "Another first state", SLIDE, CLAIM,
            f"a change of h_0 becomes {small:.0e} at |λ|={GAINS[0]:g}, {large:,.0f} times at "
            f"|λ|={GAINS[-1]:g}",
            judge.findings,
            f"Measured on {text.about}. New networks have an orthogonal W_h times a factor, so that every "
            f"|λ| is that factor; trained ones have learned for {steps} steps.",
            (
                _picture(grown, "in new networks"), _picture(trained, "in trained networks"), _table(turned),
            ),
        ),
        out,
    )  # fmt: skip


def _scaled(gain: float, vocab_size: int) -> Network:
    """Build a new vanilla network; its W_h is orthogonal times gain, so that every |λ| = gain."""
    network = build(settings_of("rnn", 0, SETS), vocab_size)
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if "h_to_h" in name:
                weight.mul_(gain)
    return network


def distances(network: Network, rows_BT: Ints) -> Floats:
    """Return ``(T + 1,)``: how far two readings of the same words are apart, relative to the push of h_0."""
    network = copy.deepcopy(network).double().eval()  # a small difference needs many digits
    state, other = _two_starts(network, len(rows_BT))
    found = [_apart(state, other)]
    with torch.no_grad():
        for ids_B1 in torch.from_numpy(np.ascontiguousarray(rows_BT.T)).unsqueeze(-1):
            state, other = (network.read(ids_B1, each)[1] for each in (state, other))
            found.append(_apart(state, other))
    return np.array(found) / found[0]


def gradient_change(network: Network, rows_BT: Ints) -> float:
    """Return how much the gradient of the recurrent weights changes, relative to its length."""
    grads = []
    network = copy.deepcopy(network).double()
    named = network.named_parameters()
    weights = [weight for name, weight in named if ".h_to" in name and "bias" not in name]
    network.train()  # layers then keep what a gradient needs
    for start in _two_starts(network, len(rows_BT)):
        ids_BT = torch.from_numpy(np.ascontiguousarray(rows_BT))
        features_BTD, _ = network.read(ids_BT[:, :-1], start)
        loss = cast(Head, network.head).loss(features_BTD[:, -1], ids_BT[:, -1])
        grads.append(torch.cat([part.flatten() for part in torch.autograd.grad(loss, weights)]))
    return float((grads[0] - grads[1]).norm() / grads[0].norm())


def _two_starts(network: Network, rows: int) -> tuple[object, object]:
    """Return h_0, and h_0 pushed by `PUSH` in a random direction."""
    chance = torch.Generator().manual_seed(0)
    state = network.start(rows)

    def push(part_BH: Tensor) -> Tensor:
        noise_BH = torch.randn(part_BH.shape, generator=chance, dtype=part_BH.dtype)
        pushed_BH: Tensor = part_BH.detach() + PUSH * noise_BH / noise_BH.norm(dim=-1, keepdim=True)
        return pushed_BH

    return state, map_state(push, state)


def _apart(state: object, other: object) -> float:
    """Return the mean distance of two states over the rows: of h alone, which is the output."""
    pairs = zip(leaves(state), leaves(other), strict=True)
    first = next(iter(pairs))
    return float((first[0] - first[1]).norm(dim=-1).mean())


def _picture(curves: dict[str, Floats], where: str) -> Chart:
    series = [
        Series(name, tuple((float(t), float(v)) for t, v in enumerate(curve) if v > 0))
        for name, curve in curves.items()
    ]
    drawn = lines(series, f"What becomes of a push of h_0 {where}", Axis("letters read", zero=True),
                  Axis("difference, relative to the push", log=True))  # fmt: skip
    at = (1, 5, 10, 20, 40, LENGTH)
    rows = tuple(cells(name, (curve[t] for t in at)) for name, curve in curves.items())
    caption = (
        f"The same letters read from h_0 and from h_0 moved by {PUSH:g}: how far apart the states are "
        f"{where}. A falling line forgets h_0, a rising one never converges; below 1e-12 is rounding."
    )
    return Chart(drawn, caption, Table(("network", *(f"t = {t}" for t in at)), rows))


def _table(turned: dict[str, float]) -> Table:
    rows = tuple((name, f"{change:.2%}") for name, change in turned.items())
    title = f"The gradient of W_h when h_0 moves by {PUSH:g}"
    return Table(("network", "change of the gradient"), rows, title)


def _of_run(run: str, out: str | None) -> Iterator[Event]:
    """Do the same for a recurrent network of the user's."""
    trained, model = fitting.open_network("initial-state", run, recurrent=True)
    held = yield from texts.end_of_text(run, trained, 4 * (LENGTH + 1))
    yield Stage("push the first state")
    name = trained.settings.family
    curve = distances(model.network, rows_of(held, LENGTH + 1, 16))
    judge = Judge()
    judge.measure(
        "a change of h_0 grows",
        bool(curve[-1] > 1),
        f"it {'grows to' if curve[-1] > 1 else 'dies out:'} {float(curve[-1]):.1e} of its length",
    )
    yield from finish(
        ExperimentResult(
            "initial-state", f"Another first state for {run}", SLIDE, CLAIM,
            f"{LENGTH} words later {float(curve[-1]):.1e} of a change is left in this {name}", judge.findings,
            f"Measured on the end of the run's own text; h_0 is moved by {PUSH:g}.",
            (_picture({name: curve}, f"in {run}"),),
        ),
        out,
    )  # fmt: skip
