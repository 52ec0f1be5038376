"""The window tagger: is Paris a place in "museums in Paris are amazing"? Its score, step by step.

[IITD-1 "How to Build a Neural Language Model?", "Example: NER Task"]; Collobert et al. 2011: the vectors of a
word and its neighbours side by side, a hidden layer, a score for each tag.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import nn

from nextword.core.events import Event, Stage
from nextword.data.batches.words import Sentences
from nextword.drawing.page import Table
from nextword.drawing.svg import Axis, Guide, Series, lines
from nextword.experiments import fitting, grammar
from nextword.experiments.finding import Judge, by_all
from nextword.experiments.grammar import FARTHEST, MUSEUMS, PLACE
from nextword.experiments.learners import accuracies, train_tagger
from nextword.experiments.result import Chart, ExperimentResult, cells, finish
from nextword.experiments.small import Count, Floats, mean_and_spread
from nextword.models.encoders.window import WindowEncoder
from nextword.models.tagger import Tagger
from nextword.tasks.taggers import chain_of

CLAIM = (
    "A window-based neural model tells whether a word is a name by the words around it: museums in Paris are "
    "amazing."
)
BY_HAND = "s = U f(W [x(t-2); …; x(t+2)] + b) + c, computed by hand, is the tagger's score"
PARIS = "Paris is a place in 'museums in Paris are amazing', and a person after 'of'"
INSIDE = "a word in the window that decides is used, however far from the middle"
OUTSIDE = "a word outside the window that decides is lost"
CLAIMS = (BY_HAND, PARIS, INSIDE, OUTSIDE)
REACHES = (0, 1, 2, 3, 4)
SHOWN = 2  # words to each side, as on the slide
SURE, GUESS = 0.95, 0.75  # shares of right tags: it knows, it does not
SMALL: dict[str, Any] = {"model.hidden": 32, "model.embedding": 16}
WIDE = 1e-4


@dataclass(frozen=True)
class Steps:
    """The score of one window, step by step."""

    words: tuple[str, ...]
    x_WE: Floats  # the vectors of the words
    parts_WH: Floats  # W_k x_k: what each word adds before f
    h_H: Floats
    scores_K: Floats
    p_K: Floats
    tags: tuple[str, ...]


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Train taggers with windows of several sizes; take the score of "Paris" apart."""
    fitting.refuse("window-tagger", run)
    seeds, steps, sentences = (1, 10, 100) if quick else (3, 100, 1000)
    yield Stage("train window taggers", len(REACHES) * seeds * steps, "steps")
    by_reach, shown = yield from _measure(seeds, steps, sentences)
    apart = take_apart(shown, MUSEUMS, 2)
    other = take_apart(shown, ("museums", "of", *MUSEUMS[2:]), 2)
    difference = max(_difference(shown, each) for each in (apart, other))
    judge = Judge(quick)
    judge.exact(BY_HAND, difference < WIDE, f"the largest difference is {difference:.1g}")
    place, person = (float(each.p_K[each.tags.index(PLACE)]) for each in (apart, other))
    judge.measure(
        PARIS,
        place > 0.5 > person,
        f"p({PLACE}) of Paris is {place:.3f}; with 'of' for 'in' it is {person:.3f}",
    )
    inside = [by_reach[reach][away - 1] for reach in REACHES for away in range(1, reach + 1)]
    outside = [by_reach[reach][away - 1] for reach in REACHES for away in range(reach + 1, FARTHEST + 1)]
    judge.measure(
        INSIDE,
        by_all([mean > SURE for mean, _ in inside]),
        f"at least {min(mean for mean, _ in inside):.1%} of the names are right where 'in' or 'of' is inside",
    )
    judge.measure(
        OUTSIDE,
        by_all([mean < GUESS for mean, _ in outside]),
        f"at most {max(mean for mean, _ in outside):.1%} are right where it is outside (a guess: 50%)",
    )
    yield from finish(
        ExperimentResult(
            "window-tagger", "The window tagger", 'IITD-1 "Example: NER Task"', CLAIM,
            f"Paris is a place with p = {place:.2f}; outside the window nothing is known",
            judge.findings,
            f"{sentences:,} made sentences in which 'in' or 'of', 1 to {FARTHEST} words before a name, tells "
            f"whether it is a place; {sentences // 2:,} others measured; E = {SMALL['model.embedding']}, H = "
            f"{SMALL['model.hidden']}, {steps} steps, {seeds} seeds.",
            (_of_reaches(by_reach), _of_words(apart, other), _of_tags(apart, other)),
        ),
        out,
    )  # fmt: skip


def _measure(
    seeds: int, steps: int, sentences: int
) -> Generator[Event, None, tuple[dict[int, list[tuple[float, float]]], Tagger]]:
    """Return, by window, mean and spread of the accuracy at each distance; and a tagger of the slide's."""
    learned, held = grammar.names(sentences, 0), grammar.names(sentences // 2, 1)
    count, shown = Count(), None
    by_reach: dict[int, list[tuple[float, float]]] = {}
    for reach in REACHES:
        found = []
        for seed in range(seeds):
            sets = {**SMALL, "model.reach": reach, "train.steps": steps}
            tagger = yield from train_tagger("window", learned, seed, sets, count)
            found.append(accuracies(tagger, held))
            shown = tagger if reach == SHOWN and seed == 0 else shown
        causes = [str(away) for away in range(1, FARTHEST + 1)]
        by_reach[reach] = [mean_and_spread([each[cause] for each in found]) for cause in causes]
    assert shown is not None
    return by_reach, shown


@torch.inference_mode()
def take_apart(tagger: Tagger, words: tuple[str, ...], middle: int) -> Steps:
    """Compute the scores of one word's tags from the weights, a window at a time."""
    encoder = tagger.network.encoder
    assert isinstance(encoder, WindowEncoder)
    lexicon, reach = tagger.vocabulary.lexicon, encoder.reach
    table_VE = _array(tagger.network.words.table_VE)
    window = words[middle - reach : middle + reach + 1]
    x_WE = np.stack([table_VE[lexicon.word_ids([word])[0]] for word in window])
    hidden = cast(nn.Linear, encoder.to_hidden[0])
    W_HWE = _array(hidden.weight).reshape(encoder.width, len(window), -1)
    parts_WH = np.einsum("hwe,we->wh", W_HWE, x_WE)  # W [x(t-2); …; x(t+2)] = Σ_k W_k x(t+k)
    h_H = np.tanh(parts_WH.sum(axis=0) + _array(hidden.bias))  # h = f(W x + b)
    to_tags = tagger.network.head.to_tags
    scores_K = _array(to_tags.weight) @ h_H + _array(to_tags.bias)  # s = U h + c
    p_K = np.exp(scores_K - scores_K.max())
    return Steps(window, x_WE, parts_WH, h_H, scores_K, p_K / p_K.sum(), tagger.vocabulary.tags)


def _array(weight: torch.Tensor) -> Floats:
    return weight.detach().double().numpy()


def _difference(tagger: Tagger, apart: Steps) -> float:
    """Return how much the tagger's own log p differs from the one by hand."""
    rows = Sentences([apart.words], tagger.vocabulary.lexicon).take(np.array([0]))
    own_K = chain_of(tagger, rows).emissions_BTK[0, len(apart.words) // 2].double().numpy()
    return float(np.abs(own_K - np.log(apart.p_K)).max())


def _of_reaches(by_reach: dict[int, list[tuple[float, float]]]) -> Chart:
    series, rows = [], []
    for reach, found in by_reach.items():
        points = tuple((float(away), 100 * mean) for away, (mean, _) in enumerate(found, start=1))
        name = f"{2 * reach + 1} words" if reach else "1 word"
        series.append(Series(name, points, spreads=tuple(100 * spread for _, spread in found)))
        whole = float(np.mean([mean for mean, _ in found]))
        rows.append((name, *(f"{mean:.1%}" for mean, _ in found), f"{whole:.1%}"))
    ticks = tuple((float(away), str(away)) for away in range(1, FARTHEST + 1))
    away = Axis("words from the name to what decides", names=ticks)
    title = "Names that are right, by window"
    drawn = lines(series, title, away, Axis("right, %"), [Guide(50.0, "a guess")])
    heads = ("window", *(f"{at} away" for at in range(1, FARTHEST + 1)), "all")
    caption = "A window of 2r + 1 words knows what stands up to r words before the name, and guesses beyond."
    return Chart(drawn, caption, Table(heads, tuple(rows)))


def _of_words(apart: Steps, other: Steps) -> Table:
    """Return what each word of the window adds to the score of a place against a person's."""
    rows = []
    for at, word in enumerate(apart.words):
        rows.append((word, _shown(apart.x_WE[at]), float(np.linalg.norm(apart.parts_WH[at]))))
        if word != other.words[at]:
            rows.append(
                (f"({other.words[at]})", _shown(other.x_WE[at]), float(np.linalg.norm(other.parts_WH[at])))
            )
    return Table(
        ("word", "x, first entries", "length of W_k x"), tuple(rows), "From words to h = f(Σ W_k x + b)"
    )


def _of_tags(apart: Steps, other: Steps) -> Table:
    rows = tuple(
        cells(tag, (apart.scores_K[at], apart.p_K[at], other.scores_K[at], other.p_K[at]))
        for at, tag in enumerate(apart.tags)
    )
    one, two = (" ".join(each.words) for each in (apart, other))
    heads = ("tag of Paris", f"s: {one}", "p", f"s: {two}", "p ")
    return Table(heads, rows, "From h to scores and probabilities: s = U h + c, p = softmax(s)")


def _shown(x_E: Floats) -> str:
    return ", ".join(f"{value:.2f}" for value in x_E[:4]) + ", …"
