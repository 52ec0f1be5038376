"""What looking right adds to a tagger: words whose tag depends on what follows.

[IITD-2 "Bidirectional RNNs": h(t) = [h→(t); h←(t)], "generally, these two RNNs have separate weights"; "RNNs
Can Be Used for Sequence Tagging"]. In "we saw her garden" and "we saw her often" nothing before "her" tells
whether it is a determiner or a pronoun.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

from nextword.core.events import Event, Stage
from nextword.drawing.page import Table
from nextword.drawing.svg import bars
from nextword.evaluation import significance
from nextword.experiments import fitting, grammar
from nextword.experiments.finding import Judge, Verdict, by_test
from nextword.experiments.grammar import AFTER, BEFORE, ITSELF, LATER
from nextword.experiments.learners import accuracies, train_tagger
from nextword.experiments.result import Chart, ExperimentResult, finish
from nextword.experiments.small import Count, mean_and_spread

CLAIM = (
    "RNNs can be used for sequence tagging, and a bidirectional RNN also knows what comes after a word; its "
    "two RNNs generally have separate weights."
)
AHEAD = "words whose tag depends on what follows are tagged better from both sides"
ENOUGH = "where the words before decide, reading from the left is enough"
SEPARATE = "the two directions have weights of their own, twice as many as shared ones"
CLAIMS = (AHEAD, ENOUGH, SEPARATE)
LEFT, BOTH, TIED = "from the left", "from both sides", "from both sides, shared weights"
MODELS = {LEFT: "none", BOTH: "separate", TIED: "tied"}
CAUSES = (ITSELF, BEFORE, AFTER, LATER)
RIGHT = 0.99  # of the words: enough
SMALL: dict[str, Any] = {"model.hidden": 24, "model.embedding": 24, "train.batch": 16}


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Tag made sentences from the left and from both sides; compare by what decides a tag."""
    fitting.refuse("bidirectional-tagging", run)
    seeds, steps, sentences = (1, 10, 100) if quick else (3, 200, 1500)
    yield Stage("train taggers from the left and from both sides", seeds * steps * len(MODELS), "steps")
    found, weights = yield from _measure(seeds, steps, sentences)
    left, both = ([(each[AFTER] + each[LATER]) / 2 for each in found[name]] for name in (LEFT, BOTH))
    (one, one_by), (two, two_by) = mean_and_spread(left), mean_and_spread(both)
    p = significance.welch(left, both)
    judge = Judge(quick)
    judge.measure(
        AHEAD,
        Verdict.HELD if p is None and two > one else by_test(two - one, p),
        f"{two:.1%} ± {two_by:.1%} of such words are right from both sides, {one:.1%} ± {one_by:.1%} from "
        f"the left, where two tags are equally likely ({seeds} seeds{'' if p is None else f', p = {p:.2g}'})",
    )
    enough, _ = mean_and_spread([each[BEFORE] for each in found[LEFT]])
    judge.measure(
        ENOUGH,
        enough > RIGHT,
        f"from the left {enough:.1%} of the words that are a noun or a verb by the word before are right",
    )
    judge.exact(
        SEPARATE,
        weights[BOTH] == 2 * weights[TIED] and weights[TIED] == weights[LEFT],
        f"{weights[LEFT]:,} weights of the LSTM from the left, {weights[BOTH]:,} from both sides, "
        f"{weights[TIED]:,} if both sides share them",
    )
    yield from finish(
        ExperimentResult(
            "bidirectional-tagging", "What looking right adds to a tagger", 'IITD-2 "Bidirectional RNNs"',
            CLAIM,
            f"{two:.0%} right from both sides, {one:.0%} from the left, where what follows decides",
            judge.findings,
            f"{sentences:,} made sentences, {sentences // 3:,} others measured: LSTM taggers of "
            f"{SMALL['model.hidden']} units, {steps} steps, {seeds} seeds. Each reading of an ambiguous word "
            "is as frequent, and nothing on the other side tells which it is.",
            (_of_causes(found), _examples(),),
        ),
        out,
    )  # fmt: skip


def _measure(
    seeds: int, steps: int, sentences: int
) -> Generator[Event, None, tuple[dict[str, list[dict[str, float]]], dict[str, int]]]:
    """Return accuracy by cause, of each seed of each model, and the weights of its recurrent layers."""
    learned, held = grammar.tagged(sentences, 0), grammar.tagged(sentences // 3, 1)
    count = Count()
    found: dict[str, list[dict[str, float]]] = {}
    weights: dict[str, int] = {}
    for name, directions in MODELS.items():
        sets = {**SMALL, "model.bidirectional": directions, "train.steps": steps}
        found[name] = []
        for seed in range(seeds):
            tagger = yield from train_tagger("lstm", learned, seed, sets, count)
            found[name].append(accuracies(tagger, held))
            weights[name] = sum(each.numel() for each in tagger.network.encoder.parameters())
    return found, weights


def _of_causes(found: dict[str, list[dict[str, float]]]) -> Chart:
    rows, values, notes, spreads = [], [], [], []
    for cause in CAUSES:
        both = [mean_and_spread([each[cause] for each in seeds]) for seeds in found.values()]
        rows.append((cause, *(f"{mean:.1%} ± {spread:.1%}" for mean, spread in both)))
        for name, (mean, spread) in zip(found, both, strict=True):
            if cause != ITSELF and name != TIED:
                values.append((f"{cause}: {name}", 100 * mean))
                notes.append(f"{mean:.1%}")
                spreads.append(100 * spread)
    drawn = bars(values, "Tags that are right, by what decides them", "% right", notes, spreads)
    caption = (
        "A noun or a verb by the word before; a determiner, a pronoun, a preposition or a conjunction by the "
        "next word or a later one. Whiskers are one standard deviation over seeds."
    )
    return Chart(drawn, caption, Table(("the tag depends on", *found), tuple(rows)))


def _examples() -> Table:
    """Return one sentence for each ambiguous word and tag."""
    rows: dict[tuple[str, str, str], tuple[str, str, str, str]] = {}
    for each in grammar.tagged(300, 2):
        for word, tag, cause in zip(*each, strict=True):
            if cause in (AFTER, LATER) and len(each.words) < 9:
                rows.setdefault((cause, word, tag), (word, tag, cause, " ".join(each.words)))
    return Table(
        ("word", "tag", "depends on", "as in"), tuple(rows[key] for key in sorted(rows)), "Ambiguous words"
    )
