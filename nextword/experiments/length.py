"""Past the trained length: what a longer row costs, by kind of position and mixer.

[MAUSAM "What is missing in Transformers?": long sequences]. All models learn from short rows and then read
rows of eight times that length in one window, without the sliding that a run uses past its context. ALiBi:
Press et al. 2022; rotary positions: Su et al. 2021; buckets of distances: Raffel et al. 2020 (T5).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from nextword.core.contracts import SPECIALS, LanguageModel
from nextword.core.events import Event, Stage
from nextword.data.batches.batch import NOT_COUNTED, Batch
from nextword.drawing.page import Cell, Table
from nextword.drawing.slopes import Interval, intervals
from nextword.drawing.svg import Axis, Guide, Series, lines
from nextword.evaluation.significance import LEVEL, Test, against, holm
from nextword.experiments import fitting
from nextword.experiments.finding import Finding, Judge, Verdict, by_all
from nextword.experiments.result import Chart, ExperimentResult, finish
from nextword.experiments.small import (
    Count,
    Floats,
    Ints,
    Letters,
    Made,
    build,
    learn,
    mean_and_spread,
    nats,
    next_words,
    read_letters,
    rows_of,
    settings_of,
)

CLAIM = (
    "Transformers lack long sequences: past the trained length, positions that were never seen make the text "
    "harder to predict, while distances that only weaken attention, a window or a state do not."
)
TRAINED, LONGEST = 32, 256  # tokens of a row: in training, and afterwards
HALF = TRAINED // 2
FAR = LONGEST // 2  # letters from this place on are judged: 4 to 8 times the trained length
LEARNED, WINDOW, REACH = "learned", "window", 2 * 7  # two layers, and 7 tokens before each in both
KINDS: dict[str, dict[str, Any]] = {
    LEARNED: {"model.position": "learned", "model.context": TRAINED},
    "sinusoidal": {"model.position": "sinusoidal"},
    "rope": {"model.position": "rope"},
    "none": {"model.position": "none"},
    "alibi": {"model.position": "alibi"},
    "t5": {"model.position": "t5", "model.buckets.count": 16, "model.buckets.farthest": TRAINED},
    WINDOW: {"model.position": "rope", "model.mixer": "window", "model.windowed.width": 8},
    "retnet": {"model.position": "none", "model.mixer": "retnet"},
    "lstm": {"model.position": "none", "model.mixer": "lstm"},
}
NO_VECTOR = "learned positions have no vector past the trained length"
WORSE = {
    "sinusoidal": "with sinusoidal positions text costs more past the trained length",
    "rope": "with rotary positions, unscaled, it does",
    "none": "without positions it does",
}
SAME = {
    "alibi": "with ALiBi it does not",
    "t5": "with T5's buckets of distances it does not",
    WINDOW: "with attention in a sliding window it does not",
    "retnet": "with RetNet in the place of attention it does not",
    "lstm": "with an LSTM in the place of attention it does not",
}
FORGET = "sinusoidal and rotary positions do not recall a value from 4 times the trained distance"
RECALL = "ALiBi and T5's buckets recall it"
KEEP = "the states of RetNet and LSTM keep it"
BEYOND = "a sliding window recalls nothing from further back than its layers reach"
CLAIMS = (NO_VECTOR, *WORSE.values(), *SAME.values(), FORGET, RECALL, KEEP, BEYOND)
MARGIN = 0.05  # nats per letter: less is called no difference
KNOWN, RECALLED = 0.9, 0.5  # a share that counts as learned, and one that counts as recalled
VALUES, FILLERS = 8, 16
ASK = len(SPECIALS)  # "which value was it?"
FIRST_VALUE = ASK + 1
FIRST_FILLER = FIRST_VALUE + VALUES
VOCABULARY = FIRST_FILLER + FILLERS
BEFORE = 2  # fillers before the value
NEAR, FOUR_TIMES = TRAINED // 4, 4 * TRAINED  # distances that are judged
DISTANCES = (2, 4, NEAR, 12, 16, 20, 24, 28, 40, 48, 64, 96, FOUR_TIMES, 192, LONGEST - BEFORE - 1)
EDGES = (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 160, 192, 224, 256)  # places whose letters are averaged
SMALL: dict[str, Any] = {
    "model.layers": 2, "model.hidden": 48, "model.heads": 4, "model.context": LONGEST,
    "model.embedding_kind": "scaled",  # else the waves of sinusoidal positions hide the tokens
}  # fmt: skip


class Trials(NamedTuple):
    """The results of one kind over the seeds."""

    weights: int
    by_place: list[Floats]  # nats of the letters of each place
    on: list[Floats]  # nats per letter of each piece from place `FAR` on, read in one window
    short: list[Floats]  # ... of the same letters, read in windows of the trained length
    recalled: list[Floats]  # the share at each distance


class Sizes(NamedTuple):
    """How much is trained and measured."""

    seeds: int
    steps: int  # on text
    recall_steps: int
    pieces: int  # of text
    rows: int  # of values, at each distance


FULL, QUICK = Sizes(3, 200, 90, 64, 100), Sizes(1, 3, 3, 4, 4)


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Train every kind on short rows of text and of values, and read long rows."""
    fitting.refuse("length", run)
    sizes = QUICK if quick else FULL
    letters = yield from read_letters(200_000, 40_000)
    yield Stage("train on short rows", _steps(sizes), "steps")
    count, found = Count(), {}
    for name in KINDS:
        found[name] = yield from _trials(name, letters, sizes, count)
    tests = {name: costs_more(each.on, each.short) for name, each in found.items() if each.on}
    corrected = dict(zip(tests, holm([test.p for test in tests.values()]), strict=True))
    worst = max(tests, key=lambda name: tests[name].behind)
    alike = sum(change(tests[name], corrected[name]) == "no more" for name in tests)
    yield from finish(
        ExperimentResult(
            "length", "Past the trained length", 'MAUSAM "What is missing in Transformers?"', CLAIM,
            f"{alike} of {len(tests)} kinds cost under {MARGIN:g} nats more; {worst} costs most "
            f"({tests[worst].behind:+.2f} nats)",
            _judged(found, tests, corrected, quick),
            _method(letters, sizes),
            (_by_place(found), _differences(tests, corrected), _by_distance(found),
             _table(found, tests, corrected)),
        ),
        out,
    )  # fmt: skip


def _method(letters: Letters, sizes: Sizes) -> str:
    return (
        f"Two layers of width {SMALL['model.hidden']}, trained on rows of {TRAINED} tokens, {sizes.seeds} "
        f"seeds. Text: {letters.about}; {sizes.steps} steps of 16 rows. What a letter costs in one window "
        f"of {LONGEST} is compared with what it costs after {HALF} to {TRAINED - 1} letters; seeds and "
        f"{sizes.pieces} pieces of text are resampled, and p is Holm's for all kinds. Text costs more if the "
        f"difference is at least {MARGIN:g} nats and p is below {LEVEL:g}, and no more if the whole 95 % "
        f"interval is below {MARGIN:g}. Values: one of {VALUES} stands among {FILLERS} kinds of fillers and "
        f"is asked for later; {sizes.recall_steps} steps of 32 rows. Recalled means more than "
        f"{RECALLED:.0%}, and only seeds that know {KNOWN:.0%} from {NEAR} tokens back are judged. Longer "
        "training and other sizes give other numbers."
    )


def _steps(sizes: Sizes) -> int:
    kinds = len(KINDS)
    return sizes.seeds * (kinds * sizes.steps + (kinds - 1) * sizes.recall_steps)


def _trials(name: str, letters: Letters, sizes: Sizes, count: Count) -> Generator[Event, None, Trials]:
    """Train a kind with every seed, on text and on values; measure what lies past the trained length."""
    trials = Trials(0, [], [], [], [])
    longest = TRAINED if name == LEARNED else LONGEST  # learned positions end here
    rows_BT = rows_of(letters.held, LONGEST, sizes.pieces)
    for seed in range(sizes.seeds):
        settings = settings_of("transformer", seed, _sets(name, sizes.steps, 16))
        network = build(settings, letters.vocab_size, letters.counts)
        trials = trials._replace(weights=sum(weight.numel() for weight in network.parameters()))
        source = Made(partial(text_batch, letters.ids), seed)
        model = (yield from learn(settings, network, source, count)).model
        nats_BT = _finite(nats(model, rows_BT[:, :longest]), letters.vocab_size)
        trials.by_place.append(nats_BT.mean(axis=0))
        if name == LEARNED:
            continue
        trials.on.append(nats_BT[:, FAR:].mean(axis=1))
        trials.short.append(_finite(in_short_windows(model, rows_BT), letters.vocab_size).mean(axis=1))
        settings = settings_of("transformer", seed, _sets(name, sizes.recall_steps, 32))
        source = Made(partial(value_batch, rows=32), seed)
        model = (yield from learn(settings, build(settings, VOCABULARY), source, count)).model
        trials.recalled.append(np.array([recalled(model, d, sizes.rows) for d in DISTANCES]))
    return trials


def _sets(name: str, steps: int, rows: int) -> dict[str, Any]:
    return SMALL | KINDS[name] | {"train.steps": steps, "train.batch": rows, "train.rate": 5e-3}


def _finite(nats_BT: Floats, vocab_size: int) -> Floats:
    """Let a model whose training broke down guess."""
    return np.where(np.isfinite(nats_BT), nats_BT, np.log(vocab_size))


def text_batch(ids: Ints, rng: np.random.Generator) -> Batch:
    """Take rows of text that begin anywhere."""
    first_B = rng.integers(0, len(ids) - TRAINED, 16)
    rows_BT = ids[first_B[:, None] + np.arange(TRAINED + 1)]
    return Batch(rows_BT[:, :-1], rows_BT[:, 1:])


def in_short_windows(model: LanguageModel, rows_BT: Ints) -> Floats:
    """Return nats of the letters from place `FAR` on, each after `HALF` to `TRAINED` - 1 others only."""
    starts = np.arange(FAR - HALF, LONGEST - HALF, HALF)
    windows_BXW = rows_BT[:, starts[:, None] + np.arange(TRAINED)]
    found_BW = nats(model, windows_BXW.reshape(-1, TRAINED))[:, HALF:]
    return found_BW.reshape(len(rows_BT), LONGEST - FAR)


def value_batch(rng: np.random.Generator, rows: int) -> Batch:
    """Make rows of fillers with a value at one place and a question at a later one; learn its answer only."""
    ids_BT = FIRST_FILLER + rng.integers(0, FILLERS, (rows, TRAINED))
    places_B2 = np.sort(rng.permuted(np.tile(np.arange(TRAINED), (rows, 1)), axis=1)[:, :2], axis=1)
    value_B, row_B = FIRST_VALUE + rng.integers(0, VALUES, rows), np.arange(rows)
    ids_BT[row_B, places_B2[:, 0]] = value_B
    ids_BT[row_B, places_B2[:, 1]] = ASK
    targets_BT = np.full(ids_BT.shape, NOT_COUNTED)
    targets_BT[row_B, places_B2[:, 1]] = value_B
    return Batch(ids_BT, targets_BT)


def value_rows(rng: np.random.Generator, rows: int, distance: int) -> tuple[Ints, Ints]:
    """Make rows that end with the question, the value ``distance`` tokens before it."""
    ids_BT = FIRST_FILLER + rng.integers(0, FILLERS, (rows, BEFORE + distance + 1))
    value_B = FIRST_VALUE + rng.integers(0, VALUES, rows)
    ids_BT[:, BEFORE], ids_BT[:, -1] = value_B, ASK
    return ids_BT, value_B


def recalled(model: LanguageModel, distance: int, rows: int) -> float:
    """Return how often the right value is the most likely."""
    ids_BT, value_B = value_rows(np.random.default_rng((9, distance)), rows, distance)
    logp_BX = next_words(model, ids_BT)[:, FIRST_VALUE:FIRST_FILLER]
    return float(np.mean(FIRST_VALUE + logp_BX.argmax(axis=1) == value_B))


def costs_more(on: Sequence[Floats], short: Sequence[Floats]) -> Test:
    """Test what reading on costs, against nothing; a seed and a piece of text is a row and a column."""
    more = [on_B - short_B for on_B, short_B in zip(on, short, strict=True)]
    nothing_B = np.zeros_like(more[0])
    return against(more, [nothing_B], nothing_B + 1)


def change(test: Test, p: float) -> str:
    """Say "more" or "no more" by `MARGIN`, or "unclear"."""
    if test.behind >= MARGIN and p < LEVEL:
        return "more"
    return "no more" if test.high < MARGIN else "unclear"


def by_change(test: Test, p: float, says: str) -> Verdict:
    """Judge what a claim says of the cost."""
    found = change(test, p)
    return Verdict.OPEN if found == "unclear" else Verdict.HELD if found == says else Verdict.FAILED


def by_recall(shares: dict[str, Floats], says: bool) -> Verdict:
    """Judge whether the value is recalled at `FOUR_TIMES`, seed by seed; what was not learned is left out.

    ``shares``: of each kind, a row for each seed and a column for each of `DISTANCES`.
    """
    near, far = DISTANCES.index(NEAR), DISTANCES.index(FOUR_TIMES)
    known = [row for rows in shares.values() for row in rows if row[near] >= KNOWN]
    return by_all([bool(row[far] > RECALLED) == says for row in known]) if known else Verdict.OPEN


def by_reach(shares: Floats) -> Verdict:
    """Judge whether a window guesses beyond its reach: in the mean of all distances, within 5 points."""
    near = DISTANCES.index(4)
    if shares[:, near].min() < KNOWN:
        return Verdict.OPEN
    beyond = shares[:, [distance > REACH for distance in DISTANCES]].mean()
    return Verdict.HELD if beyond < 1 / VALUES + 0.05 else Verdict.FAILED


def _judged(
    found: dict[str, Trials], tests: dict[str, Test], corrected: dict[str, float], quick: bool
) -> tuple[Finding, ...]:
    judge = Judge(quick)
    network: Any = build(settings_of("transformer", 0, _sets(LEARNED, 1, 1)), VOCABULARY)
    table = network.position.table_WD
    judge.exact(
        NO_VECTOR,
        len(table) == TRAINED,
        f"the table has {len(table)} vectors; a run reads the last tokens again as a new window instead",
    )
    for says, claims in (("more", WORSE), ("no more", SAME)):
        for name, claim in claims.items():
            test, p = tests[name], corrected[name]
            judge.measure(
                claim,
                by_change(test, p, says),
                f"{test.behind:+.3f} nats per letter, 95 % from {test.low:+.3f} to {test.high:+.3f} "
                f"(p = {p:.2g})",
            )
    shares = {name: np.array(each.recalled) for name, each in found.items() if each.recalled}
    for claim, names, recalls in (
        (FORGET, ("sinusoidal", "rope"), False),
        (RECALL, ("alibi", "t5"), True),
        (KEEP, ("retnet", "lstm"), True),
    ):
        own = {name: shares[name] for name in names}
        judge.measure(claim, by_recall(own, recalls), "; ".join(_shares(n, s) for n, s in own.items()))
    beyond = shares[WINDOW][:, [distance > REACH for distance in DISTANCES]].mean()
    judge.measure(
        BEYOND,
        by_reach(shares[WINDOW]),
        f"{100 * beyond:.0f} % from more than {REACH} tokens back, a guess is {100 / VALUES:.0f} %; "
        f"{100 * shares[WINDOW][:, DISTANCES.index(4)].mean():.0f} % from 4",
    )
    return judge.findings


def _shares(name: str, shares: Floats) -> str:
    """Say what the seeds recall near and far."""
    near, far = (shares[:, DISTANCES.index(distance)] for distance in (NEAR, FOUR_TIMES))
    each = ", ".join(f"{100 * share:.0f}" for share in far)
    return f"{name} {100 * near.mean():.0f} % from {NEAR} tokens back, {each} % (each seed) from {FOUR_TIMES}"


def _by_place(found: dict[str, Trials]) -> Chart:
    series: list[Series] = []
    rows: list[tuple[Cell, ...]] = []
    for look, (name, trials) in enumerate(found.items()):
        nats_T, points = np.mean(trials.by_place, axis=0), []
        for low, high in pairwise(EDGES):
            if high <= len(nats_T):
                points.append((float(np.sqrt(low * high)), float(nats_T[low:high].mean())))
        series.append(Series(name, tuple(points), look))
        missing = ("",) * (len(EDGES) - 1 - len(points))
        rows.append((name, *(round(value, 3) for _, value in points), *missing))
    ticks = tuple((float(2**power), str(2**power)) for power in range(2, 9))
    drawn = lines(
        series, "Cost of a letter by its place", Axis("letters before it", log=True, names=ticks),
        Axis("nats per letter"), [Guide(float(TRAINED), "trained length", upright=True)],
    )  # fmt: skip
    caption = (
        "Mean over seeds and pieces of text, all read from nothing in one window. Learned positions end at "
        "the trained length: they have no vector for later places."
    )
    heads = ("letters before", *(f"{low}–{high - 1}" for low, high in pairwise(EDGES)))
    return Chart(drawn, caption, Table(heads, tuple(rows)))


def _differences(tests: dict[str, Test], corrected: dict[str, float]) -> Chart:
    colours = {"more": "var(--c1)", "no more": "var(--c2)", "unclear": "var(--soft)"}
    order = sorted(tests.items(), key=lambda each: each[1].behind)
    drawn = intervals(
        [
            Interval(name, t.behind, t.low, t.high, colours[change(t, corrected[name])], f"{t.behind:+.2f}")
            for name, t in order
        ],
        "What reading on costs",
        "nats per letter in one long window, against windows of the trained length; right: it costs more",
    )
    return Chart(
        drawn, f"The same letters, {FAR} to {LONGEST - 1} letters after the beginning; grey: unclear."
    )


def _by_distance(found: dict[str, Trials]) -> Chart:
    series, rows = [], []
    for look, (name, trials) in enumerate(found.items()):
        if not trials.recalled:
            continue
        shares = 100 * np.array(trials.recalled)
        points = zip(map(float, DISTANCES), shares.mean(axis=0).tolist(), strict=True)
        series.append(Series(name, tuple(points), look))
        spreads = [mean_and_spread(list(column)) for column in shares.T]
        rows.append((name, *(f"{mean:.0f} ± {spread:.0f}" for mean, spread in spreads)))
    ticks = tuple((float(2**power), str(2**power)) for power in range(1, 9))
    guides = [Guide(float(TRAINED), "trained length", upright=True), Guide(100 / VALUES, "a guess")]
    drawn = lines(
        series, "Values recalled by distance", Axis("tokens from the value to the question", log=True,
        names=ticks), Axis("recalled, %", zero=True), guides,
    )  # fmt: skip
    caption = (
        f"How often the right of {VALUES} values is the most likely; ± is one standard deviation over seeds."
    )
    return Chart(drawn, caption, Table(("% recalled at", *map(str, DISTANCES)), tuple(rows)))


def _table(found: dict[str, Trials], tests: dict[str, Test], corrected: dict[str, float]) -> Table:
    rows = []
    for name, trials in found.items():
        if name not in tests:
            rows.append((name, trials.weights, "", "", "", ""))
            continue
        short, on = (mean_and_spread([float(e.mean()) for e in each]) for each in (trials.short, trials.on))
        rows.append(
            (name, trials.weights, f"{short[0]:.3f} ± {short[1]:.3f}", f"{on[0]:.3f} ± {on[1]:.3f}",
             f"{tests[name].behind:+.3f}", f"{corrected[name]:.2g}")
        )  # fmt: skip
    heads = ("kind", "weights", "nats, short windows", "nats, one window", "difference", "p")
    return Table(heads, tuple(rows), "All kinds; ± is one standard deviation over seeds")
