"""The fixed window: parameters by window, no symmetry between its places, and the proctor's clock.

[IITD-1 "A Fixed-window Neural Language Model": "enlarging window enlarges W", "no symmetry in how the inputs
are processed"; "as the proctor started the clock the students opened their ___"]
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import numpy as np

from nextword.core.contracts import END, START, LanguageModel
from nextword.core.events import Event, Stage
from nextword.data.batches.batch import NOT_COUNTED, Batch
from nextword.drawing.page import Table
from nextword.drawing.svg import Axis, Guide, Series, bars, lines
from nextword.evaluation import significance
from nextword.experiments import fitting
from nextword.experiments.finding import Judge, by_test
from nextword.experiments.result import Chart, ExperimentResult, finish
from nextword.experiments.small import (
    Count,
    Floats,
    Ints,
    Made,
    build,
    learn,
    mean_and_spread,
    next_words,
    settings_of,
)
from nextword.ngram import estimation
from nextword.ngram.settings import NgramSettings

CLAIM = (
    "A fixed window is too small, enlarging it enlarges W, and there is no symmetry: x(1) and x(2) are "
    "multiplied by completely different weights."
)
TOO_SMALL = "a fixed window is too small"
GROWS = "enlarging the window enlarges W"
WEIGHTS = "each place of the window is multiplied by weights of its own"
ELSEWHERE = "so what is learned at one place is not known at another (no symmetry)"
CLAIMS = (TOO_SMALL, GROWS, WEIGHTS, ELSEWHERE)
WINDOWS = (1, 2, 4, 8, 16, 32)
WORDS, WIDE = 1000, 64

# Symmetry: rows of PLACES words and a question; the answer depends on one word among fillers. Words of two
# kinds: in training NEW ones stand only at place 1, an old one of each kind at every place.
PLACES, OLD, NEW, FILLERS = 5, 1, 8, 20
FIRST = 3
ASK = FIRST + 2 * (OLD + NEW) + FILLERS
ANSWERS = (ASK + 1, ASK + 2)
SMALL: dict[str, dict[str, Any]] = {
    "window": {"model.context": PLACES + 1, "model.embedding": 16, "model.hidden": 48, "model.tied": False},
    "rnn": {"model.layers": 1, "model.hidden": 48, "model.embedding": 16, "model.tied": False},
    "transformer": {"model.layers": 2, "model.hidden": 32, "model.heads": 2, "model.context": 16},
}

# The proctor: who begins what decides what the students open.
SCENES = (
    ("as the proctor started the clock", "exams"),
    ("as the librarian started the tour", "books"),
    ("as the proctor rang the bell", "exams"),
    ("as the librarian closed the door", "books"),
)
THEN = "the students opened their"
SURE = 0.9  # how often the scene decides
VOCABULARY = tuple(dict.fromkeys(" ".join([*(scene for scene, _ in SCENES), THEN, "exams books"]).split()))
ASKED = f"{SCENES[0][0]} {THEN}"


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Count parameters, move a word to another place, and ask what the students open."""
    fitting.refuse("window", run)
    seeds, steps = (1, 40) if quick else (4, 250)
    models = 5
    yield Stage("learn", steps * (seeds * len(SMALL) + models), "steps")
    count = Count()
    right = yield from _symmetry(seeds, steps, count)
    sure = yield from _proctor(steps, count)
    sizes = {window: _parameters("window", {"model.context": window}) for window in WINDOWS}
    small, whole = sure["window of 4"], sure["rnn"]
    judge = Judge(quick)
    judge.measure(
        TOO_SMALL,
        whole > small + 0.1,
        f"after the proctor's clock a window of 4 gives exams {small:.0%}, the RNN {whole:.0%} (true: "
        f"{SURE:.0%})",
    )
    more = np.diff([sizes[window] for window in WINDOWS]) / np.diff(WINDOWS)
    judge.exact(
        GROWS,
        bool((more > 0).all()),
        f"from {sizes[1]:,} weights for 1 word to {sizes[WINDOWS[-1]]:,} for {WINDOWS[-1]}",
    )
    judge.exact(
        WEIGHTS,
        bool((more == WIDE * WIDE).all()),
        f"every place adds a matrix of {WIDE} x {WIDE}; the embeddings are shared",
    )
    by_seed = {name: right[name][:, 1:].mean(axis=1).tolist() for name in ("window", "rnn")}
    (away, by), (rnn, rnn_by) = (mean_and_spread(values) for values in by_seed.values())
    p = significance.welch(by_seed["window"], by_seed["rnn"])
    judge.measure(
        ELSEWHERE,
        by_test(rnn - away, p),
        f"a word learned at place 1 is understood elsewhere by the window in {away:.0%} ± {by:.0%} of "
        f"the cases, by the RNN in {rnn:.0%} ± {rnn_by:.0%} (standard deviation over {seeds} seeds"
        f"{'' if p is None else f', p = {p:.2g}'}; a guess: 50%)",
    )
    yield from finish(
        ExperimentResult(
            "window", "The fixed window", 'IITD-1 "A Fixed-window Neural Language Model"', CLAIM,
            f"too small (exams {small:.0%}, RNN {whole:.0%}); 32 words: {sizes[WINDOWS[-1]] / sizes[1]:.0f} "
            "times the weights",
            judge.findings,
            f"Weights are counted at E = H = {WIDE}; small networks learn from made sentences, {steps} "
            f"steps, {seeds} seeds for the places, one for the proctor.",
            (_of_sizes(sizes), _of_symmetry(right), _of_proctor(sure)),
        ),
        out,
    )  # fmt: skip


def _parameters(family: str, sets: dict[str, Any]) -> int:
    """Count the weights without the word embeddings."""
    if family == "window":
        sets = {"model.embedding": WIDE, "model.hidden": WIDE, "model.tied": True} | sets
    else:
        sets = {"model.layers": 1, "model.hidden": WIDE, "model.tied": True} | sets
    network = build(settings_of(family, 0, sets), WORDS)
    words: Any = network.embedding
    return sum(weight.numel() for weight in network.parameters()) - int(words.weight_VE.numel())


def _of_sizes(sizes: dict[int, int]) -> Chart:
    others = {name: _parameters(name, {}) for name in ("rnn", "lstm", "transformer")}
    series = [Series("window", tuple((float(w), float(n)) for w, n in sizes.items()))]
    series += [
        Series(name, tuple((float(w), float(count)) for w in (WINDOWS[0], WINDOWS[-1])))
        for name, count in others.items()
    ]
    drawn = lines(series, "Weights by window", Axis("words that are seen", log=True),
                  Axis("weights without the embeddings", log=True))  # fmt: skip
    rows = (*((f"window of {w}", n) for w, n in sizes.items()), *others.items())
    caption = (
        f"Enlarging the window enlarges W; what reads word by word, or attends, has the same weights for any "
        f"length (E = H = {WIDE}, one layer)."
    )
    return Chart(drawn, caption, Table(("model", "weights"), rows))


def make_rows(rng: np.random.Generator, rows: int, place: int | None = None) -> tuple[Ints, Ints]:
    """Return rows of words and the answers; ``place``: a new word stands there, else as in training."""
    kind_B = rng.integers(0, 2, rows)
    ids_BT = FIRST + 2 * (OLD + NEW) + rng.integers(0, FILLERS, (rows, PLACES))
    is_new_B = rng.random(rows) < 0.4 if place is None else np.ones(rows, bool)
    place_B = np.where(is_new_B, 0, rng.integers(0, PLACES, rows)) if place is None else np.full(rows, place)
    number_B = np.where(is_new_B, OLD + rng.integers(0, NEW, rows), rng.integers(0, OLD, rows))
    ids_BT[np.arange(rows), place_B] = FIRST + kind_B * (OLD + NEW) + number_B
    ids_BT = np.concatenate([ids_BT, np.full((rows, 1), ASK)], axis=1)
    return ids_BT, np.asarray(ANSWERS)[kind_B]


def _batch(rng: np.random.Generator) -> Batch:
    ids_BT, answers_B = make_rows(rng, 64)
    targets_BT = np.full(ids_BT.shape, NOT_COUNTED)
    targets_BT[:, -1] = answers_B
    return Batch(ids_BT, targets_BT)


def _symmetry(seeds: int, steps: int, count: Count) -> Generator[Event, None, dict[str, Floats]]:
    """Return by family ``(seeds, places)``: how often a new word is understood at each place."""
    found: dict[str, Floats] = {}
    for family, sets in SMALL.items():
        rows = []
        for seed in range(seeds):
            settings = settings_of(family, seed, {**sets, "train.steps": steps})
            network = build(settings, ANSWERS[-1] + 1)
            learned = yield from learn(settings, network, Made(_batch, seed), count)
            rows.append([_accuracy(learned.model, place, seed) for place in range(PLACES)])
        found[family] = np.array(rows)
    return found


def _accuracy(model: LanguageModel, place: int, seed: int) -> float:
    ids_BT, answers_B = make_rows(np.random.default_rng((7, seed, place)), 400, place)
    logp_B2 = next_words(model, ids_BT)[:, list(ANSWERS)]
    return float(np.mean(np.asarray(ANSWERS)[logp_B2.argmax(axis=1)] == answers_B))


def _of_symmetry(right: dict[str, Floats]) -> Chart:
    series, rows = [], []
    for name, found in right.items():
        both = [mean_and_spread(list(found[:, place])) for place in range(PLACES)]
        points = tuple((float(place + 1), 100 * mean) for place, (mean, _) in enumerate(both))
        series.append(Series(name, points, spreads=tuple(100 * spread for _, spread in both)))
        rows.append((name, *(f"{mean:.0%}" for mean, _ in both)))
    ticks = tuple((float(place), str(place)) for place in range(1, PLACES + 1))
    places = Axis("place of the word in the window", names=ticks)
    drawn = lines(series, "A word learned at place 1, asked for at other places", places,
                  Axis("understood, %"), [Guide(50.0, "a guess")])  # fmt: skip
    table = Table(("family", *(f"place {place}" for place in range(1, PLACES + 1))), tuple(rows))
    caption = (
        "New words that stood only at place 1 in training, beside one known word of each kind at every "
        "place: how often a new word is understood. The window has other weights for each place; that all "
        "places share the embeddings helps it, more in some seeds than in others. Whiskers are one standard "
        "deviation over seeds."
    )
    return Chart(drawn, caption, table)


def sentences(rng: np.random.Generator, rows: int) -> Ints:
    """Return ``START`` and a sentence per row; the scene decides the last word with probability `SURE`."""
    found = []
    for _ in range(rows):
        scene, opened = SCENES[int(rng.integers(len(SCENES)))]
        other = "books" if opened == "exams" else "exams"
        found.append(encode(f"{scene} {THEN} {opened if rng.random() < SURE else other}"))
    return np.array(found)


def encode(text: str) -> list[int]:
    """Return START and the ids of the words."""
    return [START, *(FIRST + VOCABULARY.index(word) for word in text.split())]


def _proctor(steps: int, count: Count) -> Generator[Event, None, dict[str, float]]:
    """Measure p(exams) / (p(exams) + p(books)) after the proctor's clock, by family."""
    tried: dict[str, tuple[str, dict[str, Any]]] = {
        "window of 4": ("window", {"model.context": 4}),
        "window of 11": ("window", {"model.context": 11}),
        "rnn": ("rnn", {"model.layers": 1}),
        "lstm": ("lstm", {"model.layers": 1}),
        "transformer": ("transformer", {"model.layers": 1, "model.context": 16, "model.heads": 2}),
    }
    text = sentences(np.random.default_rng(0), 500)
    packed = np.concatenate([np.append(row, END) for row in text])
    size = FIRST + len(VOCABULARY)
    found: dict[str, float] = {}
    for order in (5, 11):
        found[f"{order}-gram"] = _exams(estimation.build(packed, size, NgramSettings(order=order)))
    for name, (family, sets) in tried.items():
        settings = settings_of(family, 0, {"model.hidden": 32, **sets, "train.steps": steps})
        made = Made(lambda rng: _sentence_batch(text[rng.integers(0, len(text), 32)]), 0)
        learned = yield from learn(settings, build(settings, size), made, count)
        found[name] = _exams(learned.model)
    return found


def _sentence_batch(rows_BT: Ints) -> Batch:
    return Batch(rows_BT[:, :-1], rows_BT[:, 1:])


def _exams(model: LanguageModel) -> float:
    ids_1T = np.array([encode(ASKED)[1:]])
    p_V = np.exp(next_words(model, ids_1T, begin=True)[0])
    exams, books = (float(p_V[encode(word)[1]]) for word in ("exams", "books"))
    return exams / (exams + books)


def _of_proctor(sure: dict[str, float]) -> Chart:
    values = [(name, 100 * share) for name, share in sure.items()]
    unit = "% for exams against books (50 is a guess, 90 is true)"
    notes = [f"{value:.0f} %" for _, value in values]
    drawn = bars(values, "Exams or books after the proctor's clock", unit, notes)
    caption = (
        f'"{ASKED} ___": how much of exams-or-books goes to exams. What has lost the proctor and the clock '
        "can only guess."
    )
    return Chart(drawn, caption)
