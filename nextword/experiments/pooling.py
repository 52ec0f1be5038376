"""One vector for a sentence: the last state, or the element-wise max or mean of all states.

[IITD-2 "How to compute sentence encoding?": "Usually better: take element-wise max or mean of all hidden
states"]. Who said it: sentences of presidents; and the sentiment of films, where SST-2 is among the corpora.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nextword.core.events import Event, Stage
from nextword.data.corpora import DEFAULT, corpus_files
from nextword.data.labelled import LabelledDataSettings, LabelledText
from nextword.drawing.page import Table
from nextword.drawing.svg import bars
from nextword.evaluation import significance
from nextword.experiments import fitting
from nextword.experiments.finding import Judge, Verdict, by_test
from nextword.experiments.learners import train_classifier, wrong_labels
from nextword.experiments.result import Chart, ExperimentResult, finish
from nextword.experiments.small import Count, Floats, mean_and_spread

CLAIM = (
    "To encode a sentence, the element-wise max or mean of all hidden states is usually better than the last."
)
MAX = "the max of all states is better than the last state"
MEAN = "the mean of all states is better than the last state"
CLAIMS = (MAX, MEAN)
LAST = "last"
POOLINGS = {LAST: "last state", "max": "max", "mean": "mean"}
PRESIDENTS = ("Cleveland", "Taft", "Truman", "Nixon", "Carter", "Clinton")
FILMS = "sst2"
LEAST, MOST = 12, 40  # words of a sentence
SMALL: dict[str, Any] = {
    "model.hidden": 48, "model.embedding": 32, "model.bidirectional": "none", "model.dropout_input": 0.3,
    "model.dropout": 0.3, "train.batch": 32, "train.rate": 5e-3,
}  # fmt: skip

Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class Task:
    """Texts with labels, in two parts."""

    name: str
    learned: Pairs
    held: Pairs


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Train classifiers that differ in the pooling only; compare their errors on new texts."""
    fitting.refuse("pooling", run)
    seeds, steps = (1, 10) if quick else (3, 250)
    yield Stage("read the texts")
    tasks = [_shortened(each, quick) for each in (_speeches(), _films()) if each is not None]
    yield Stage("train classifiers", len(tasks) * len(POOLINGS) * seeds * steps, "steps")
    count = Count()
    errors = {}
    for task in tasks:
        errors[task.name] = yield from _errors(task, seeds, steps, count)
    judge = Judge(quick)
    for claim, pooling in ((MAX, "max"), (MEAN, "mean")):
        tests = {name: _test(found, pooling) for name, found in errors.items()}
        judge.measure(
            claim,
            together([by_test(test.behind, test.p) for test in tests.values()]),
            "; ".join(_measured(name, errors[name], pooling, test) for name, test in tests.items()),
        )
    first = errors[tasks[0].name]
    shown = ", ".join(f"{POOLINGS[each]} {1 - first[each].mean():.0%}" for each in POOLINGS)
    yield from finish(
        ExperimentResult(
            "pooling", "One vector for a sentence", 'IITD-2 "How to compute sentence encoding?"', CLAIM,
            f"right on {tasks[0].name}: {shown}",
            judge.findings,
            " ".join(f"{each.name}: {len(each.learned):,} texts with {len(_labels(each))} labels, "
                     f"{len(each.held):,} others measured." for each in tasks)
            + f" An LSTM from the left of {SMALL['model.hidden']} units, {steps} steps, {seeds} seeds each. "
            "The test resamples seeds and texts.",
            tuple(_picture(name, found) for name, found in errors.items()),
        ),
        out,
    )  # fmt: skip


def together(verdicts: Sequence[Verdict]) -> Verdict:
    """Judge by several texts: what all of them say, and partly where it held on some of them only."""
    kinds = set(verdicts)
    if len(kinds) == 1:
        return kinds.pop()
    return Verdict.PARTLY if Verdict.HELD in kinds else Verdict.FAILED


def _errors(task: Task, seeds: int, steps: int, count: Count) -> Generator[Event, None, dict[str, Floats]]:
    """Return by pooling ``(seeds, texts)``: 1 where the label is wrong."""
    found: dict[str, Floats] = {}
    for pooling in POOLINGS:
        rows = []
        for seed in range(seeds):
            sets = {**SMALL, "model.pooling": pooling, "train.steps": steps}
            classifier = yield from train_classifier("lstm", task.learned, seed, sets, count)
            rows.append(wrong_labels(classifier, task.held))
        found[pooling] = np.stack(rows)
    return found


def _test(errors: dict[str, Floats], pooling: str) -> significance.Test:
    """Compare the last state with another pooling; positive: the last state is worse."""
    worse, better = errors[LAST], errors[pooling]
    return significance.against(list(worse), list(better), np.ones(worse.shape[1]))


def _measured(name: str, errors: dict[str, Floats], pooling: str, test: significance.Test) -> str:
    one, two = (1 - errors[each].mean() for each in (pooling, LAST))
    return f"{name}: {one:.1%} right, last state {two:.1%} (p = {test.p:.2g})"


def _speeches() -> Task:
    """Return sentences of some presidents; the last speech of each is held out, so that no topic helps."""
    files = corpus_files(DEFAULT) or []
    learned: Pairs = []
    held: Pairs = []
    for name in PRESIDENTS:
        own = [path for path in files if path.stem.split("-")[1] == name]
        for path in own:
            text = " ".join(path.read_text(encoding="utf-8").split())
            for sentence in text.split(". "):
                if LEAST <= len(sentence.split()) <= MOST:
                    (held if path == own[-1] else learned).append((sentence, name))
    seen = {text for text, _ in learned}  # a written message repeats sentences of the spoken one
    held = [(text, name) for text, name in held if text not in seen]
    return Task("who said it", _spread(learned, 4000), _spread(held, 1200))


def _films() -> Task | None:
    """Return sentences about films and whether they are good, where SST-2 is there."""
    parts = []
    for split in ("train", "test"):
        files = corpus_files(f"{FILMS}/{split}")
        if not files:
            return None
        rows = LabelledText([str(path) for path in files], LabelledDataSettings()).read()
        parts.append([(" ".join(each.text.split()[:MOST]), each.label) for each in rows])
    return Task("films (SST-2)", _spread(parts[0], 4000), _spread(parts[1], 1200))


def _spread(pairs: Pairs, most: int) -> Pairs:
    """Return at most this many texts, taken evenly from all of them."""
    return pairs if len(pairs) <= most else [pairs[at * len(pairs) // most] for at in range(most)]


def _shortened(task: Task, quick: bool) -> Task:
    return Task(task.name, _spread(task.learned, 200), _spread(task.held, 60)) if quick else task


def _labels(task: Task) -> set[str]:
    return {label for _, label in task.learned}


def _picture(name: str, errors: dict[str, Floats]) -> Chart:
    both = {each: mean_and_spread((1 - found.mean(axis=1)).tolist()) for each, found in errors.items()}
    values = [(POOLINGS[each], 100 * mean) for each, (mean, _) in both.items()]
    notes = [f"{mean:.1%}" for mean, _ in both.values()]
    spreads = [100 * spread for _, spread in both.values()]
    drawn = bars(values, f"Labels that are right: {name}", "% right", notes, spreads)
    rows = tuple((POOLINGS[each], mean, spread) for each, (mean, spread) in both.items())
    table = Table(("sentence encoding", "right", "standard deviation over seeds"), rows)
    return Chart(drawn, "New texts; whiskers are one standard deviation over seeds.", table)
