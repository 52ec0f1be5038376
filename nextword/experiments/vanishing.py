"""Vanishing gradients: how much of the gradient is left k words back, by family.

[IITD-2 "Vanishing Gradient Intuition", "How to Fix the Vanishing Gradient Problem?": memory that is added to
(LSTM), direct connections (attention); XMU "Vanishing gradient"]
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, cast

import numpy as np
import torch
from torch import nn

from nextword.blocks.cells import GRUCell
from nextword.core.events import Event, Stage
from nextword.core.task import Batches
from nextword.data.batches.windows import Windows
from nextword.drawing.page import Table
from nextword.drawing.svg import Axis, Guide, Series, lines
from nextword.experiments import fitting, reach, texts
from nextword.experiments.finding import Finding, Judge, by_all
from nextword.experiments.result import Chart, ExperimentResult, finish
from nextword.experiments.small import (
    Count,
    Floats,
    Ints,
    Letters,
    Made,
    build,
    learn,
    read_letters,
    rows_of,
    settings_of,
)
from nextword.models.network import Network
from nextword.probe import distances

SLIDE = 'IITD-2 "Vanishing Gradient Intuition"'
CLAIM = (
    "The gradient gets smaller and smaller the further it goes back through a vanilla RNN; LSTM, GRU and "
    "attention are the cures."
)
RNN = "in a vanilla RNN the gradient gets smaller and smaller the further it goes back"
LSTM = "an LSTM makes it easier to preserve it over many steps"
GRU = "so does a GRU"
GATE = "a GRU retains it by setting the update gate to 0"
ATTENTION = "direct connections (attention) carry it"
CLAIMS = (RNN, LSTM, GRU, GATE, ATTENTION)
CURE = 5.0  # a cure leaves at least this many times as much as the RNN
KEEPING = "gru, gate near 0"
BIAS = -4.0  # of its update gate: u = 0.02, so that 98 % of the state stays at every step
FAR = 96  # words back
NOUN = 80  # words from the noun of the tickets to its place
AT = (1, 5, 10, 20, 40, 79)  # rows of the table
MIDDLE = slice(40, 61)  # "about 50 words back"
FAMILIES: dict[str, dict[str, Any]] = {
    "rnn": {"model.layers": 1, "model.hidden": 48},
    "gru": {"model.layers": 1, "model.hidden": 48},
    KEEPING: {"model.layers": 1, "model.hidden": 48},
    "lstm": {"model.layers": 1, "model.hidden": 48},
    "transformer": {"model.layers": 2, "model.hidden": 48, "model.heads": 2, "model.context": 192,
                    "model.init": "gpt2"},
}  # fmt: skip
SHARE = 0.01  # of the gradient at the last word: less is called gone
Curves = dict[str, Floats]


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Measure the families, new and after learning letters or the tickets; or the network of a run."""
    if run is not None:
        yield from _of_run(run, out)
        return
    steps, rows = (8, 8) if quick else (280, 48)
    text = yield from read_letters(40_000 if quick else 300_000, 20_000)
    yield Stage("train on letters, and on the tickets", (steps + steps // 4) * len(FAMILIES), "steps")
    new, letters, tickets = yield from _all(text, steps, rows)
    mean, on_letters = ({name: middle(curve) for name, curve in curves.items()} for curves in (new, letters))
    gone = {name: _after(gone_after(curve)) for name, curve in letters.items()}
    heard = {name: float(curve[NOUN - 1]) for name, curve in tickets.items()}
    yield from finish(
        ExperimentResult(
            "vanishing", "Vanishing gradients", SLIDE, CLAIM,
            f"50 words back: RNN {_shown(mean['rnn'])}, LSTM {_shown(mean['lstm'])}, GRU "
            f"{_shown(mean['gru'])} (gate near 0: {_shown(mean[KEEPING])})",
            _judged(mean, heard, on_letters, quick),
            "The gradient of the next word's loss with respect to the word k places back, relative to the "
            f"word read last. Letters: {text.about}; {steps // 4} steps; there little is needed from far, "
            f"and less than {SHARE:.0%} is left after {_word_summary(gone)} letters. Tickets: the sentence "
            f"of the experiment reach, its noun {NOUN} words back; {steps} steps.",
            (
                _picture(new, "in new networks"), _picture(tickets, "after training on tickets", NOUN - 1),
                _picture(letters, "after training on letters"),
            ),
        ),
        out,
    )  # fmt: skip


def _judged(
    new: dict[str, float], tickets: dict[str, float], letters: dict[str, float], quick: bool
) -> tuple[Finding, ...]:
    """Judge each cure twice: in a new network, and in one that learned what it needs from far back."""
    judge = Judge(quick)
    for claim, name in (
        (RNN, "rnn"),
        (LSTM, "lstm"),
        (GRU, "gru"),
        (GATE, KEEPING),
        (ATTENTION, "transformer"),
    ):
        more = [values[name] > CURE * values["rnn"] for values in (new, tickets)]
        judge.measure(
            claim,
            new["rnn"] < SHARE if name == "rnn" else by_all(more),
            f"50 words back {_shown(new[name])} in a new network{_than_rnn(new, name)}, "
            f"{_shown(letters[name])} after training on letters; {_shown(tickets[name])} at the noun "
            f"{NOUN} words back after training on the tickets",
        )
    return judge.findings


def _than_rnn(values: dict[str, float], name: str) -> str:
    if name == "rnn":
        return ""
    ratio = values[name] / max(values["rnn"], 1e-300)
    return f" ({f'{ratio:,.0f}' if ratio >= 1 else _shown(ratio)} times the RNN's)"


def _shown(value: float) -> str:
    return f"{value:.1g}" if value < 1 else f"{value:.0f}"


def middle(curve_T: Floats) -> float:
    """Return what is left about 50 words back: the geometric mean."""
    return float(np.exp(np.mean(np.log(curve_T[MIDDLE] + 1e-300))))


def make(name: str, vocab_size: int, counts_V: Ints | None = None) -> Network:
    """Build a new network; `KEEPING` is a GRU whose update gate is near 0, as the slide suggests."""
    network = build(settings_of(_family(name), 0, FAMILIES[name]), vocab_size, counts_V)
    if name == KEEPING:
        for layer in cast(nn.ModuleList, network.layers):
            assert isinstance(layer, GRUCell)
            with torch.no_grad():
                layer.x_to_all.bias.view(3, layer.hidden)[1].fill_(BIAS)  # b_u of (r, u, h̃)
    return network


def _family(name: str) -> str:
    return name.partition(",")[0]


def _all(text: Letters, steps: int, rows: int) -> Generator[Event, None, tuple[Curves, Curves, Curves]]:
    """Measure the curves of the families: new, after letters, after the tickets."""
    count = Count()
    new: Curves = {}
    letters: Curves = {}
    tickets: Curves = {}
    held_BT = rows_of(text.held, FAR + 2, rows)
    ids_BT, noun_B = reach.make_rows(np.random.default_rng(5), rows, NOUN)
    asked_BT = np.concatenate([ids_BT, noun_B[:, None]], axis=1)
    for name in FAMILIES:
        network = make(name, text.vocab_size, text.counts)
        new[name] = relative(gradient_norms(network, held_BT))
        source = Windows(text.ids, batch=16, length=FAR, seed=0)
        letters[name] = yield from _learned(name, network, source, (steps // 4, held_BT), count)
        network = make(name, reach.VOCABULARY)
        made = Made(reach.make_batch, 0)
        tickets[name] = yield from _learned(name, network, made, (steps, asked_BT), count)
    return new, letters, tickets


def gradient_norms(network: Network, rows_BT: Ints) -> Floats:
    """Return ``(B, T - 1)``: ‖∂J/∂e‖ of the last word's loss by distance back, the nearest word first.

    ∂J(t)/∂h(t-k) [IITD-2 "Vanishing Gradient Intuition"] is measured where every family has it: at the vector
    of the word k places back, e(t-k). For a recurrent model that is ∂J(t)/∂h(t-k) and one fixed matrix more.
    """
    ids_BT = torch.from_numpy(np.ascontiguousarray(rows_BT))
    _, norm_SBT = distances.of_rows(network, ids_BT[:, :-1], ids_BT[:, -1])
    norms_BT: Floats = norm_SBT[0]
    return norms_BT


def relative(norms_BT: Floats) -> Floats:
    """Average over rows, relative to the word read last."""
    mean_T = norms_BT.mean(axis=0)
    return np.asarray(mean_T / mean_T[0]) if mean_T[0] > 0 else mean_T


def _learned(
    name: str, network: Network, source: Batches, asked: tuple[int, Ints], count: Count
) -> Generator[Event, None, Floats]:
    """Train for this many steps and measure the curve."""
    steps, rows_BT = asked
    settings = settings_of(_family(name), 0, {**FAMILIES[name], "train.steps": steps})
    yield from learn(settings, network, source, count)
    return relative(gradient_norms(network, rows_BT))


def _word_summary(values: dict[str, str]) -> str:
    return ", ".join(f"{value} ({name})" for name, value in values.items())


def _of_run(run: str, out: str | None) -> Iterator[Event]:
    """Do the same for a network of the user's, on the end of its own text."""
    trained, model = fitting.open_network("vanishing", run)
    held = yield from texts.end_of_text(run, trained, FAR + 2)
    yield Stage("go back through the tokens")
    name = trained.settings.family
    curve = relative(gradient_norms(model.network, rows_of(held, FAR + 2, 64)))
    at = min(50, len(curve) - 1)
    is_gone = float(curve[at]) < SHARE
    judge = Judge()
    judge.measure(
        f"the gradient vanishes in this {name}"
        if name == "rnn"
        else f"this {name} keeps the gradient from vanishing",
        is_gone == (name == "rnn"),
        f"{float(curve[at]):.1e} is left {at} words back; less than {SHARE:.0%} after "
        f"{_after(gone_after(curve))} words",
    )
    yield from finish(
        ExperimentResult(
            "vanishing", f"Vanishing gradients of {run}", SLIDE, CLAIM,
            f"in this {name} {float(curve[at]):.1e} of the gradient is left {at} words back", judge.findings,
            "Measured on the end of the run's own text, relative to the word read last.",
            (_picture({name: curve}, f"in {run}"),),
        ),
        out,
    )  # fmt: skip


def gone_after(curve_T: Floats) -> int | None:
    """Return the first distance from which on less than `SHARE` is left; None where that never happens."""
    over = np.flatnonzero(curve_T >= SHARE)
    first = int(over[-1]) + 1 if len(over) else 0
    return None if first >= len(curve_T) else first


def _after(gone: int | None) -> str:
    return f"more than {FAR}" if gone is None else str(gone)


def _picture(curves: Curves, when: str, noun: int | None = None) -> Chart:
    """Return the curves; ``noun``: how far back the word is that must be recalled."""
    series = [
        Series(name, tuple((float(k), float(v)) for k, v in enumerate(curve) if v > 0))
        for name, curve in curves.items()
    ]
    drawn = lines(series, f"Gradient by distance {when}", Axis("words back, k", zero=True),
                  Axis("gradient left, relative to k = 0", log=True),
                  [] if noun is None else [Guide(float(noun), "the noun", True)])  # fmt: skip
    rows = tuple(
        (name, *(float(curve[k]) if k < len(curve) else None for k in AT)) for name, curve in curves.items()
    )
    caption = (
        f"‖∂J(t)/∂e(t-k)‖ {when}: how strongly the loss of the next word depends on the word k places "
        "back, relative to the nearest word."
    )
    return Chart(drawn, caption, Table(("family", *(f"k = {k}" for k in AT)), rows))
