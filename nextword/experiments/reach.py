"""How far back a network remembers: the "tickets" sentence with more and more words between.

[IITD-2 "Effect of Vanishing Gradient on RNN-LM": "When she tried to print her tickets … she finally printed
her ___"; "How Does LSTM Solve Vanishing Gradients?": about 100 steps rather than about 7]
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from nextword.core.contracts import LanguageModel
from nextword.core.events import Event, Progress, Stage
from nextword.data.batches.batch import NOT_COUNTED, Batch
from nextword.drawing.page import Table
from nextword.drawing.svg import Axis, Guide, Series, lines
from nextword.experiments import texts
from nextword.experiments.finding import Judge, Verdict, by_all
from nextword.experiments.result import Chart, ExperimentResult, finish
from nextword.experiments.small import (
    Count,
    Floats,
    Ints,
    Made,
    build,
    drain,
    learn,
    mean_and_spread,
    nats,
    next_words,
    settings_of,
)
from nextword.models.network import NeuralLanguageModel
from nextword.runs import saved

SLIDE = 'IITD-2 "How Does LSTM Solve Vanishing Gradients?"'
CLAIM = "In practice an LSTM reaches about 100 steps back rather than the RNN's about 7."
SEVEN = "an RNN reaches about 7 steps back"
HUNDRED = "an LSTM reaches about 100 steps back"
FURTHER = "an LSTM reaches further than an RNN"
CLAIMS = (SEVEN, HUNDRED, FURTHER)
ABOUT = 2.0  # "about" allows this factor
NOUNS = ("tickets", "letters", "photos", "maps", "bills", "notes", "songs", "poems")
OPENING = "when she tried to print her"
CLOSING = "she finally printed her"
BETWEEN = (
    "found that the printer was out of toner went to the stationery store to buy more toner it was very "
    "overpriced after installing the toner into the printer"
)
WORDS = tuple(dict.fromkeys(f"{OPENING} {CLOSING} {BETWEEN}".split()))
FIRST_NOUN = 3
FIRST_WORD = FIRST_NOUN + len(NOUNS)
VOCABULARY = FIRST_WORD + len(WORDS)
NEAREST = len(CLOSING.split()) + 1  # the noun, then the closing, then the noun again
DISTANCES = (5, 7, 10, 14, 20, 28, 40, 56, 80, 112, 160, 224, 320)
MIXED = 160  # the longest where distances are random
HALF = 0.5  # recalled more often than this is called reached
SEEDS = 4
STEPS, TRIES = 60, 5  # at one distance: this many steps, at most this many times
KNOWN = 0.9  # if recalled this often, the next distance is tried
CELLS: dict[str, dict[str, Any]] = {
    "rnn": {"model.layers": 1, "model.hidden": 48},
    "lstm": {"model.layers": 1, "model.hidden": 48},
    "gru": {"model.layers": 1, "model.hidden": 48},
    "transformer": {"model.layers": 2, "model.hidden": 32, "model.heads": 2, "model.context": 384},
}
FLAT = "The gain from the last words of context: where the line is flat, the model looks no further back."
COMPARED = ("rnn", "lstm")  # those on the slide; the others have half as many seeds
CONTEXTS = (0, 1, 2, 3, 5, 8, 12, 20, 32, 50, 80, 128)  # words of context given to a run


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Learn to recall the noun at any distance, several seeds; or how far back a run looks."""
    if run is not None:
        yield from _of_run(run, out)
        return
    seeds, tries, rows = (2, 1, 16) if quick else (SEEDS, TRIES, 64)
    distances = DISTANCES[:3] if quick else DISTANCES
    trainings = [(name, seed) for name in CELLS for seed in range(seeds if name in COMPARED else seeds // 2)]
    yield Stage("learn to recall over longer and longer distances", len(trainings), "training runs")
    found: dict[str, list[Floats]] = {name: [] for name in CELLS}
    for done, (name, seed) in enumerate(trainings, start=1):
        found[name].append(recall(name, seed, distances, tries, rows))
        yield Progress(done)
    right = {name: np.array(shares) for name, shares in found.items()}
    reached = {name: [reach(row, distances) for row in shares] for name, shares in right.items()}
    (rnn, rnn_by), (lstm, lstm_by) = (mean_and_spread(reached[name]) for name in COMPARED)
    far = " or more" if lstm >= distances[-1] else ""
    judge = Judge(quick)
    judge.measure(
        SEVEN, about(reached["rnn"], 7), f"{rnn:.0f} ± {rnn_by:.0f} words ({_each(reached['rnn'])})"
    )
    judge.measure(
        HUNDRED,
        about(reached["lstm"], 100),
        f"{lstm:.0f} ± {lstm_by:.0f} words ({_each(reached['lstm'])}); none longer than "
        f"{distances[-1]} was tried",
    )
    judge.measure(
        FURTHER, further(reached["lstm"], reached["rnn"]), f"{lstm / max(rnn, 1.0):.0f} times as far{far}"
    )
    yield from finish(
        ExperimentResult(
            "reach", "How far back: the tickets", SLIDE, CLAIM,
            f"RNN {rnn:.0f} words, LSTM {lstm:.0f}{far}; the slide says about 7 and 100", judge.findings,
            f"{_summary(tries)} {seeds} seeds for RNN and LSTM, half as many for the others; ± is one "
            "standard deviation over seeds.",
            (_picture(right, distances), _table(reached)),
        ),
        out,
    )  # fmt: skip


def make_rows(rng: np.random.Generator, rows: int, distance: int) -> tuple[Ints, Ints]:
    """Make sentences whose noun stands ``distance`` words before the place where it must be recalled."""
    noun_B = FIRST_NOUN + rng.integers(0, len(NOUNS), rows)
    opening, closing, between = (
        np.array([FIRST_WORD + WORDS.index(word) for word in part.split()])
        for part in (OPENING, CLOSING, BETWEEN)
    )
    filling_BT = between[rng.integers(0, len(between), (rows, distance - NEAREST))]
    fixed = [np.repeat(part[None], rows, axis=0) for part in (opening, closing)]
    return np.concatenate([fixed[0], noun_B[:, None], filling_BT, fixed[1]], axis=1), noun_B


def make_batch(rng: np.random.Generator, distance: int | None = None) -> Batch:
    """Make a batch of this distance, or of random ones, small and large alike; train on nouns only."""
    low, high = np.log(NEAREST), np.log(MIXED)
    drawn = round(float(np.exp(rng.uniform(low, high))))
    ids_BT, noun_B = make_rows(rng, 24, distance or drawn)
    targets_BT = np.full(ids_BT.shape, NOT_COUNTED)
    targets_BT[:, -1] = noun_B
    return Batch(ids_BT, targets_BT)


def recalled(model: LanguageModel, distance: int, rows: int, seed: int) -> float:
    """Return how often the right noun is the most likely."""
    ids_BT, noun_B = make_rows(np.random.default_rng((9, seed, distance)), rows, distance)
    logp_BN = next_words(model, ids_BT)[:, FIRST_NOUN:FIRST_WORD]
    return float(np.mean(FIRST_NOUN + logp_BN.argmax(axis=1) == noun_B))


def reach(right: Floats, distances: tuple[int, ...]) -> float:
    """Return the longest distance up to which more than half of the nouns are recalled; 0: none."""
    reached = 0
    for share, distance in zip(right, distances, strict=True):
        if share <= HALF:
            break
        reached = distance
    return float(reached)


def recall(name: str, seed: int, distances: tuple[int, ...], tries: int, rows: int) -> Floats:
    """Return the share recalled at each distance: from the nearest on, each is trained until it is known.

    A distance that is not learned ends the training; longer ones are then only measured.
    """
    sets = {**CELLS[name], "train.steps": STEPS, "train.schedule": "constant"}
    settings = settings_of(name, seed, sets)
    network = build(settings, VOCABULARY)
    found = np.zeros(len(distances))
    resumes = True
    for place, distance in enumerate(distances):
        for attempt in range(tries + 1):
            found[place] = recalled(NeuralLanguageModel(network), distance, rows, seed)
            if found[place] >= KNOWN or not resumes or attempt == tries:
                break
            source = Made(partial(make_batch, distance=distance), seed + 100 * place + attempt)
            drain(learn(settings, network, source, Count()))
        resumes = resumes and found[place] > HALF
    return found


def about(reached: list[float], said: float) -> Verdict:
    """Judge whether the seeds reach about as far as the slide says: all of them, some, or none."""
    near = [said / ABOUT <= value <= said * ABOUT for value in reached]
    return by_all(near)


def further(first: list[float], second: list[float]) -> Verdict:
    """Judge whether every seed of the first reaches further than every seed of the second."""
    if min(first) > max(second):
        return Verdict.HELD
    return Verdict.FAILED if max(first) <= min(second) else Verdict.OPEN


def _each(reached: list[float]) -> str:
    return ", ".join(f"{value:.0f}" for value in reached)


def _picture(right: dict[str, Floats], distances: tuple[int, ...]) -> Chart:
    across = np.array(distances, np.float64)
    series = [
        Series(name, tuple(zip(across.tolist(), (100 * row).tolist(), strict=True)), look, seed == 0)
        for look, (name, found) in enumerate(right.items())
        for seed, row in enumerate(found)
    ]
    guides = [Guide(100 / len(NOUNS), "a guess"), Guide(100 * HALF, "half"), Guide(7.0, "slide: RNN 7", True)]
    guides += [Guide(100.0, "slide: LSTM 100", True)] if distances[-1] >= 100 else []
    ticks = tuple((float(d), str(d)) for d in (5, 7, 10, 20, 40, 80, 160, 320))
    axis = Axis("words from the noun to its place", log=True, names=ticks)
    drawn = lines(series, "Nouns recalled by distance", axis, Axis("recalled, %", zero=True), guides)
    rows = tuple(
        (name, *(f"{100 * found[:, i].mean():.0f} ± {100 * mean_and_spread(list(found[:, i]))[1]:.0f}"
                 for i in range(len(distances))))
        for name, found in right.items()
    )  # fmt: skip
    caption = (
        f'"{OPENING} tickets … {CLOSING} ___": how often the right of {len(NOUNS)} nouns is the most likely, '
        "by the words between, one line per seed; ± in the numbers is one standard deviation over seeds."
    )
    return Chart(drawn, caption, Table(("% recalled at", *(str(d) for d in distances)), rows))


def _table(reached: dict[str, list[float]]) -> Table:
    rows = []
    for name, found in reached.items():
        mean, spread = mean_and_spread(found)
        rows.append((name, mean, spread, _each(found)))
    heads = ("family", "reach, words", "standard deviation", "each seed")
    return Table(heads, tuple(rows), "Reach: the longest distance at which more than half are recalled")


def _summary(tries: int) -> str:
    return (
        f"Every network begins with {DISTANCES[0]} words and moves to longer distances once it recalls "
        f"{KNOWN:.0%}; it has {tries} times {STEPS} steps of 24 sentences for each, and only the last noun "
        "is trained on. More steps, other widths and other rates give other numbers."
    )


def _of_run(run: str, out: str | None) -> Iterator[Event]:
    """Measure how much a run gains from one more token of context, on the end of its own text."""
    trained = saved.load(run)
    held = yield from texts.end_of_text(run, trained, 4 * CONTEXTS[-1])
    yield Stage("give it more and more words", len(CONTEXTS), "contexts")
    places = np.linspace(CONTEXTS[-1], len(held) - 1, 256).astype(np.int64)
    found = []
    for done, context in enumerate(CONTEXTS):
        rows_BT = held[places[:, None] + np.arange(-context, 1)]
        found.append(float(nats(trained.model, rows_BT)[:, -1].mean()))
        yield Progress(done + 1)
    whole = found[0] - min(found)
    enough = next(c for c, v in zip(CONTEXTS, found, strict=True) if v - min(found) <= 0.05 * whole)
    judge = Judge()
    judge.measure(
        "it looks further back than 7 steps",
        enough > 7,
        f"{enough} tokens of context give 95% of the gain: {found[0]:.2f} nats per token without, "
        f"{min(found):.2f} at best",
    )
    points = tuple((float(context), value) for context, value in zip(CONTEXTS, found, strict=True))
    drawn = lines([Series(trained.settings.family, points)], "Nats per token by the tokens given",
                  Axis("tokens of context given"), Axis("nats per token"))  # fmt: skip
    rows = tuple(zip(CONTEXTS, found, strict=True))
    yield from finish(
        ExperimentResult(
            "reach", f"How far back {run} looks", SLIDE, CLAIM,
            f"{enough} tokens give 95% of what context gives this {trained.settings.family}", judge.findings,
            f"Measured at {len(places)} places of the end of the run's own text, read from nothing.",
            (Chart(drawn, FLAT, Table(("tokens of context", "nats per token"), rows)),),
        ),
        out,
    )  # fmt: skip
