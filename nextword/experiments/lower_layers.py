"""What each layer of a stacked RNN holds: a linear probe for the word before, parts of speech, and opinion.

[IITD-2 "Multi-layer RNNs": "The lower RNNs should compute lower-level features and the higher RNNs should
compute higher-level features"; PENN "Stacking"]. The network learns the opinion of each clause of made
reviews and nothing else; probes look for the words, their parts of speech and the opinion in every layer.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from nextword.core.events import Event, Stage
from nextword.data.batches.words import Sentences
from nextword.drawing.page import Table
from nextword.drawing.svg import Axis, Series, lines
from nextword.evaluation import significance
from nextword.experiments import fitting, grammar
from nextword.experiments.finding import Judge, by_test
from nextword.experiments.learners import Sentence, train_tagger
from nextword.experiments.result import Chart, ExperimentResult, finish
from nextword.experiments.small import Count, Floats, mean_and_spread
from nextword.models.tagger import Tagger
from nextword.models.words import to_tensors
from nextword.probe import linear

CLAIM = (
    "The lower RNNs should compute lower-level features and the higher RNNs should compute higher-level "
    "features."
)
LOWER = "the word itself, a lower-level feature, is read better off the first layer than off the last"
MIDDLE = "parts of speech of ambiguous words need a layer: the embeddings do not have them"
HIGHER = "the opinion, a higher-level feature, is read better off the last layer than off the first"
CLAIMS = (LOWER, MIDDLE, HIGHER)
WORD, SPEECH, OPINION = "the word", "part of speech", "opinion"
LAYERS = 3
NOTHING, OPINIONS = "-", (grammar.LIKED, grammar.DISLIKED)
NAMES = ("embeddings", *(f"layer {at}" for at in range(1, LAYERS + 1)))
PROBED = 3000  # words of a probe, at most
SMALL: dict[str, Any] = {
    "model.layers": LAYERS, "model.hidden": 32, "model.embedding": 32, "model.bidirectional": "none",
    "train.batch": 16,
}  # fmt: skip


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Train stacked networks on opinions alone, and probe every layer."""
    fitting.refuse("layers", run)
    seeds, steps, sentences = (1, 10, 200) if quick else (4, 300, 3000)
    yield Stage("train stacked networks", seeds * steps, "steps")
    found = yield from _measure(seeds, steps, sentences)
    judge = Judge(quick)
    first, last = found[WORD][:, 1], found[WORD][:, -1]
    judge.measure(LOWER, by_test(first.mean() - last.mean(), _p(first, last)), _measured(found[WORD], 1, -1))
    bare, best = found[SPEECH][:, 0], found[SPEECH][:, 1:].max(axis=1)
    judge.measure(
        MIDDLE,
        by_test(best.mean() - bare.mean(), _p(best, bare)),
        f"{best.mean():.1%} right off the best layer, {bare.mean():.1%} off the embeddings ({seeds} seeds)",
    )
    first, last = found[OPINION][:, 1], found[OPINION][:, -1]
    judge.measure(
        HIGHER, by_test(last.mean() - first.mean(), _p(first, last)), _measured(found[OPINION], 1, -1)
    )
    tops = {name: NAMES[int(values.mean(axis=0).argmax())] for name, values in found.items()}
    yield from finish(
        ExperimentResult(
            "layers", "What each layer holds", 'IITD-2 "Multi-layer RNNs"', CLAIM,
            f"read best: word off {tops[WORD]}, speech off {tops[SPEECH]}, opinion off {tops[OPINION]}",
            judge.findings,
            f"{LAYERS} stacked LSTMs from the left of {SMALL['model.hidden']} units learn the opinions "
            f"of {sentences:,} made reviews and nothing else, {steps} steps, {seeds} seeds; ridge regression "
            "reads a feature off each layer, measured on reviews that neither has seen.",
            (_picture(found), _examples()),
        ),
        out,
    )  # fmt: skip


def _measure(seeds: int, steps: int, sentences: int) -> Generator[Event, None, dict[str, Floats]]:
    """Return by feature ``(seeds, layers)``: the share that a linear probe gets right."""
    learned = [opinions(each) for each in grammar.reviews(sentences, 0)]
    count = Count()
    rows: dict[str, list[Floats]] = {WORD: [], SPEECH: [], OPINION: []}
    for seed in range(seeds):
        held = grammar.reviews(max(200, sentences // 3), 1 + seed)
        sets = {**SMALL, "train.steps": steps}
        tagger = yield from train_tagger("lstm", learned, seed, sets, count)
        for name, values in probe(tagger, held).items():
            rows[name].append(values)
    return {name: np.stack(values) for name, values in rows.items()}


def opinions(review: Sentence) -> Sentence:
    """Return what the network reads and learns: from the adjective on, a clause has its opinion as tag."""
    words: list[str] = []
    tags: list[str] = []
    depends: list[str] = []
    first = 0
    for word, cause in zip(review.words, review.depends, strict=True):
        if word in OPINIONS:
            tags[first:] = [word] * (len(tags) - first)
            continue
        if word in grammar.GOOD + grammar.BAD:
            first = len(words)
        words.append(word)
        tags.append(NOTHING)
        depends.append(cause)
    return Sentence(tuple(words), tuple(tags), tuple(depends))


def probe(tagger: Tagger, reviews: Sequence[Sentence]) -> dict[str, Floats]:
    """Return for each feature the accuracy of a linear probe on each layer, embeddings first."""
    layers = states(tagger, [opinions(each).words for each in reviews])
    rows = [row for each in reviews for row in zip(*each, strict=True) if row[0] not in OPINIONS]
    words, tags, causes = (list(column) for column in zip(*rows, strict=True))
    ambiguous = np.flatnonzero(np.array(causes) == grammar.BEFORE)
    adjectives = np.flatnonzero(np.array(tags) == "ADJ")
    said = [word for each in reviews for word in each.words if word in OPINIONS]
    places_N = {WORD: np.arange(len(words)), SPEECH: ambiguous, OPINION: adjectives}
    classes_N = {WORD: _numbers(words), SPEECH: _numbers(tags)[ambiguous], OPINION: _numbers(said)}
    found = {}
    for name, places in places_N.items():
        chosen = slice(None, PROBED)
        (fitted,) = linear.fit([x_ND[places][chosen] for x_ND in layers], {name: classes_N[name][chosen]})
        found[name] = fitted.accuracy_L
    return found


@torch.inference_mode()
def states(tagger: Tagger, sentences: Sequence[Sequence[str]]) -> list[Floats]:
    """Return ``x_ND`` of all words for each layer, embeddings first."""
    found: list[list[Floats]] = [[] for _ in NAMES]
    for each in sentences:
        rows = Sentences([each], tagger.vocabulary.lexicon).take(np.array([0]))
        words = to_tensors(rows, torch.device("cpu"))
        x_1TE = tagger.network.words(words)
        outputs = tagger.network.encoder.layer_outputs(x_1TE, words.lengths_B)
        for layer, h_1TD in zip(found, [x_1TE, *outputs], strict=True):
            layer.append(h_1TD[0].double().numpy())
    return [np.concatenate(layer) for layer in found]


def _numbers(names: Sequence[str]) -> np.ndarray[Any, Any]:
    return np.unique(names, return_inverse=True)[1]


def _p(a: Floats, b: Floats) -> float | None:
    return significance.welch(a.tolist(), b.tolist())


def _measured(values: Floats, first: int, last: int) -> str:
    (one, one_by), (two, two_by) = (mean_and_spread(values[:, at].tolist()) for at in (first, last))
    p = _p(values[:, first], values[:, last])
    return (
        f"{one:.1%} ± {one_by:.1%} right off the first layer, {two:.1%} ± {two_by:.1%} off the last "
        f"({len(values)} seeds{'' if p is None else f', p = {p:.2g}'})"
    )


def _picture(found: dict[str, Floats]) -> Chart:
    series, rows = [], []
    for name, values in found.items():
        both = [mean_and_spread(values[:, at].tolist()) for at in range(len(NAMES))]
        points = tuple((float(at), 100 * mean) for at, (mean, _) in enumerate(both))
        series.append(Series(name, points, spreads=tuple(100 * spread for _, spread in both)))
        rows.append((name, *(f"{mean:.1%}" for mean, _ in both)))
    ticks = tuple((float(at), name) for at, name in enumerate(NAMES))
    drawn = lines(
        series, "What a linear probe reads off each layer", Axis("layer", names=ticks), Axis("right, %")
    )
    caption = (
        "Which word was just read, whether an ambiguous word is a noun or a verb, and, at the adjective, "
        "whether the clause is good. Whiskers are one standard deviation over seeds."
    )
    return Chart(drawn, caption, Table(("feature", *NAMES), tuple(rows)))


def _examples() -> Table:
    rows = tuple((" ".join(each.words),) for each in grammar.reviews(5, 0))
    return Table(("review, with its opinions after the commas",), rows, "Made reviews")
