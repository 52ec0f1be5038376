"""How far back a network remembers: the "tickets" sentence with more and more words between.

[IITD-2 "Effect of Vanishing Gradient on RNN-LM": "When she tried to print her tickets … she finally printed
her ___"; "How Does LSTM Solve Vanishing Gradients?": about 100 steps rather than about 7]
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import numpy as np

from nextword.core.contracts import LanguageModel
from nextword.core.events import Event, Progress, Stage
from nextword.data.batches import NOT_COUNTED, Batch
from nextword.evaluate.page import Table
from nextword.evaluate.svg import Axis, Guide, Series, lines
from nextword.lab import texts
from nextword.lab.finding import Finding, Picture, finish
from nextword.lab.small import (
    Count,
    Floats,
    Ints,
    Made,
    build,
    learn,
    mean_and_spread,
    nats,
    next_words,
    settings_of,
)
from nextword.train import saved

SLIDE = 'IITD-2 "How Does LSTM Solve Vanishing Gradients?"'
CLAIM = "In practice an LSTM reaches about 100 steps back rather than the RNN's about 7."
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
DISTANCES = (5, 7, 10, 14, 20, 28, 40, 56, 80, 112, 160)
HALF = 0.5  # recalled more often than this is called reached
SEEDS = 4
CELLS: dict[str, dict[str, Any]] = {
    "rnn": {"model.layers": 1, "model.hidden": 48},
    "lstm": {"model.layers": 1, "model.hidden": 48},
    "gru": {"model.layers": 1, "model.hidden": 48},
    "transformer": {"model.layers": 2, "model.hidden": 32, "model.heads": 2, "model.context": 192},
}
FLAT = "What the last words of context bring: where the line is flat, the model looks no further back."
CONTEXTS = (0, 1, 2, 3, 5, 8, 12, 20, 32, 50, 80, 128)  # words of context given to a run


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Learn to recall the noun at any distance, several seeds; or how far back a run looks."""
    if run is not None:
        yield from _of_run(run, out)
        return
    seeds, steps, rows = (2, 12, 16) if quick else (SEEDS, 700, 96)
    distances = DISTANCES[:5] if quick else DISTANCES
    yield Stage("learn to recall", seeds * steps * len(CELLS), "steps")
    count = Count()
    right: dict[str, Floats] = {}
    for name, sets in CELLS.items():
        right[name] = yield from _recall(name, sets, (seeds, steps, rows), distances, count)
    reached = {name: [reach(row, distances) for row in found] for name, found in right.items()}
    (rnn, rnn_by), (lstm, lstm_by) = (mean_and_spread(reached[name]) for name in ("rnn", "lstm"))
    far = f" (the longest tried is {distances[-1]})" if lstm >= distances[-1] else ""
    yield from finish(
        Finding(
            "reach", "How far back: the tickets", SLIDE, CLAIM, lstm > 3 * max(rnn, 1.0),
            f"after {steps} steps the RNN recalls the noun over {rnn:.0f} ± {rnn_by:.0f} words and the LSTM "
            f"over {lstm:.0f} ± {lstm_by:.0f}{far}, {seeds} seeds each; the slide says 7 and 100: "
            f"{_compared(rnn, lstm)}.",
            (_picture(right, distances), _table(reached), _told(steps)),
        ),
        out,
    )  # fmt: skip


def make_rows(rng: np.random.Generator, rows: int, distance: int) -> tuple[Ints, Ints]:
    """Sentences whose noun stands ``distance`` words before the place where it must come again."""
    noun_B = FIRST_NOUN + rng.integers(0, len(NOUNS), rows)
    opening, closing, between = (
        np.array([FIRST_WORD + WORDS.index(word) for word in part.split()])
        for part in (OPENING, CLOSING, BETWEEN)
    )
    filling_BT = between[rng.integers(0, len(between), (rows, distance - NEAREST))]
    fixed = [np.repeat(part[None], rows, axis=0) for part in (opening, closing)]
    return np.concatenate([fixed[0], noun_B[:, None], filling_BT, fixed[1]], axis=1), noun_B


def make_batch(rng: np.random.Generator) -> Batch:
    """One distance a batch, small and large ones equally often; only the noun is learned from."""
    low, high = np.log(NEAREST), np.log(DISTANCES[-1])
    ids_BT, noun_B = make_rows(rng, 24, round(float(np.exp(rng.uniform(low, high)))))
    targets_BT = np.full(ids_BT.shape, NOT_COUNTED)
    targets_BT[:, -1] = noun_B
    return Batch(ids_BT, targets_BT)


def recalled(model: LanguageModel, distance: int, rows: int, seed: int) -> float:
    """How often the right noun is the likeliest."""
    ids_BT, noun_B = make_rows(np.random.default_rng((9, seed, distance)), rows, distance)
    logp_BN = next_words(model, ids_BT)[:, FIRST_NOUN:FIRST_WORD]
    return float(np.mean(FIRST_NOUN + logp_BN.argmax(axis=1) == noun_B))


def reach(right: Floats, distances: tuple[int, ...]) -> float:
    """The longest distance up to which more than half of the nouns are recalled; 0: none."""
    reached = 0
    for share, distance in zip(right, distances, strict=True):
        if share <= HALF:
            break
        reached = distance
    return float(reached)


def _recall(
    name: str, sets: dict[str, Any], sizes: tuple[int, int, int], distances: tuple[int, ...], count: Count
) -> Generator[Event, None, Floats]:
    """``(seeds, distances)``: the share recalled."""
    seeds, steps, rows = sizes
    found = []
    for seed in range(seeds):
        settings = settings_of(name, seed, {**sets, "train.steps": steps})
        learnt = yield from learn(settings, build(settings, VOCABULARY), Made(make_batch, seed), count)
        found.append([recalled(learnt.model, distance, rows, seed) for distance in distances])
    return np.array(found)


def _compared(rnn: float, lstm: float) -> str:
    """How that stands to 7 and 100, in words."""
    first = "of the slide's order" if 3.5 <= rnn <= 14 else "further" if rnn > 14 else "shorter"
    second = "of the slide's order" if 50 <= lstm <= 200 else "further" if lstm > 200 else "shorter"
    return f"the RNN's reach is {first} here, the LSTM's {second}, and both depend on task and training"


def _picture(right: dict[str, Floats], distances: tuple[int, ...]) -> Picture:
    series = []
    for name, found in right.items():
        both = [mean_and_spread(list(found[:, i])) for i in range(len(distances))]
        points = tuple((float(d), 100 * mean) for d, (mean, _) in zip(distances, both, strict=True))
        series.append(Series(name, points, spreads=tuple(100 * spread for _, spread in both)))
    guides = [Guide(100 / len(NOUNS), "a guess"), Guide(100 * HALF, "half"), Guide(7.0, "slide: RNN 7", True)]
    guides += [Guide(100.0, "slide: LSTM 100", True)] if distances[-1] >= 100 else []
    ticks = tuple((float(d), str(d)) for d in (5, 7, 10, 20, 40, 80, 160))
    across = Axis("words from the noun to its place", log=True, names=ticks)
    drawn = lines(series, "Nouns recalled by distance", across, Axis("recalled, %", zero=True), guides)
    rows = tuple(
        (name, *(f"{100 * found[:, i].mean():.0f} ± {100 * mean_and_spread(list(found[:, i]))[1]:.0f}"
                 for i in range(len(distances))))
        for name, found in right.items()
    )  # fmt: skip
    caption = (
        f'"{OPENING} tickets … {CLOSING} ___": how often the right of {len(NOUNS)} nouns is the likeliest, '
        "by the words between; whiskers are one standard deviation over seeds."
    )
    return Picture(drawn, caption, Table(("% recalled at", *(str(d) for d in distances)), rows))


def _table(reached: dict[str, list[float]]) -> Table:
    rows = []
    for name, found in reached.items():
        mean, spread = mean_and_spread(found)
        rows.append((name, mean, spread, ", ".join(f"{value:.0f}" for value in found)))
    heads = ("family", "reach, words", "spread", "each seed")
    return Table(heads, tuple(rows), "Reach: the longest distance at which more than half are recalled")


def _told(steps: int) -> str:
    return (
        f"Every network has about the same width and {steps} steps of 24 sentences, with distances from "
        f"{NEAREST} to {DISTANCES[-1]} words, short and long ones equally often; only the last noun is "
        "learned from. More steps, other widths and other rates move the numbers: what lasts is the order."
    )


def _of_run(run: str, out: str | None) -> Iterator[Event]:
    """How much a run gains from one more word of context, on the end of its own text."""
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
    points = tuple((float(context), value) for context, value in zip(CONTEXTS, found, strict=True))
    drawn = lines([Series(trained.settings.family, points)], "Nats a word by the words given",
                  Axis("words of context given"), Axis("nats a word"))  # fmt: skip
    rows = tuple(zip(CONTEXTS, found, strict=True))
    yield from finish(
        Finding(
            "reach", f"How far back {run} looks", SLIDE, CLAIM, enough > 7,
            f"{enough} words of context bring 95% of all that context brings this "
            f"{trained.settings.family} ({found[0]:.2f} nats a word without any, {min(found):.2f} at best).",
            (Picture(drawn, FLAT, Table(("words of context", "nats a word"), rows)),),
        ),
        out,
    )  # fmt: skip
