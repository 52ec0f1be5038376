"""Vanishing gradients: how much of the gradient is left k words back, by family.

[IITD-2 "Vanishing Gradient Intuition", "How to Fix the Vanishing Gradient Problem?": memory that is added to
(LSTM), direct connections (attention); XMU "Vanishing gradient"]
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
import torch

from nextword.core.events import Event, Stage
from nextword.core.task import Batches
from nextword.data.batches.windows import Windows
from nextword.drawing.page import Table
from nextword.drawing.svg import Axis, Guide, Series, lines
from nextword.experiments import fitting, reach, texts
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
FAR = 96  # words back
NOUN = 80  # words from the noun of the tickets to its place
AT = (1, 5, 10, 20, 40, 79)  # rows of the table
MIDDLE = slice(40, 61)  # "about 50 words back"
FAMILIES: dict[str, dict[str, Any]] = {
    "rnn": {"model.layers": 1, "model.hidden": 48},
    "gru": {"model.layers": 1, "model.hidden": 48},
    "lstm": {"model.layers": 1, "model.hidden": 48},
    "transformer": {"model.layers": 2, "model.hidden": 48, "model.heads": 2, "model.context": 192,
                    "model.init": "gpt2"},
}  # fmt: skip
SHARE = 0.01  # of the gradient at the last word: less is called gone
Curves = dict[str, Floats]


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Measure four families, new and after learning letters or the tickets; or the network of a run."""
    if run is not None:
        yield from _of_run(run, out)
        return
    steps, rows = (8, 8) if quick else (280, 48)
    text = yield from read_letters(40_000 if quick else 300_000, 20_000)
    yield Stage("train on letters, and on the tickets", (steps + steps // 4) * len(FAMILIES), "steps")
    new, letters, tickets = yield from _all(text, steps, rows)
    mean = {name: float(np.exp(np.mean(np.log(curve[MIDDLE] + 1e-300)))) for name, curve in new.items()}
    gone = {name: _after(gone_after(curve)) for name, curve in letters.items()}
    heard = {name: float(curve[NOUN - 1]) for name, curve in tickets.items()}
    least = min(heard["lstm"], heard["transformer"])
    yield from finish(
        ExperimentResult(
            "vanishing", "Vanishing gradients", SLIDE, CLAIM,
            mean["rnn"] < 0.2 * min(mean["lstm"], mean["transformer"]) and heard["rnn"] < 0.2 * least,
            f"about 50 words back new networks have {_summary(mean)} of the gradient at the last; after "
            f"training on the tickets the noun {NOUN} words back has {_summary(heard)}; after "
            f"training on letters, where little is needed from far, less than {SHARE:.0%} is left after "
            f"{_word_summary(gone)} letters.",
            (
                _picture(new, "in new networks"), _picture(tickets, "after training on tickets", NOUN - 1),
                _picture(letters, "after training on letters"),
                f"Letters: {text.about}; {steps // 4} steps. Tickets: the sentence of `nextword lab reach`, "
                f"its noun {NOUN} words back; {steps} steps.",
            ),
        ),
        out,
    )  # fmt: skip


def _all(text: Letters, steps: int, rows: int) -> Generator[Event, None, tuple[Curves, Curves, Curves]]:
    """Measure the curves of the families: new, after letters, after the tickets."""
    count = Count()
    new: Curves = {}
    letters: Curves = {}
    tickets: Curves = {}
    held_BT = rows_of(text.held, FAR + 2, rows)
    ids_BT, noun_B = reach.make_rows(np.random.default_rng(5), rows, NOUN)
    asked_BT = np.concatenate([ids_BT, noun_B[:, None]], axis=1)
    for name, sets in FAMILIES.items():
        network = build(settings_of(name, 0, sets), text.vocab_size, text.counts)
        new[name] = relative(gradient_norms(network, held_BT))
        source = Windows(text.ids, batch=16, length=FAR, seed=0)
        letters[name] = yield from _learned(name, network, source, (steps // 4, held_BT), count)
        network = build(settings_of(name, 0, sets), reach.VOCABULARY)
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
    settings = settings_of(name, 0, {**FAMILIES[name], "train.steps": steps})
    yield from learn(settings, network, source, count)
    return relative(gradient_norms(network, rows_BT))


def _summary(values: dict[str, float]) -> str:
    return ", ".join(f"{value:.1g} ({name})" for name, value in values.items())


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
    yield from finish(
        ExperimentResult(
            "vanishing", f"Vanishing gradients of {run}", SLIDE, CLAIM, float(curve[at]) < SHARE,
            f"in this {name} {float(curve[at]):.1e} of the gradient at the last word is left {at} back; less "
            f"than {SHARE:.0%} is left after {_after(gone_after(curve))} words.",
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
