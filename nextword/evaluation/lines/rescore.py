"""Reorder n-best lists with a language model, with weights that can be tuned.

combined = w · (given scores …, log p of the text by the model, number of its words). The weights are tuned
on references for the fewest word errors, one at a time along a line: minimum error rate training (Och 2003).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nextword.core.contracts import Block, LanguageModel, Tokenizer
from nextword.core.errors import ConfigError, DataError
from nextword.evaluation.lines.error_rate import Ints, word_errors
from nextword.evaluation.lines.nbest import Floats, NBest, write_nbest
from nextword.evaluation.lines.scores import line_batches

ROUNDS = 20  # over all weights, unless a round changes nothing before
STEPS = 41  # weights tried on a line
WIDTHS = (8.0, 2.0, 0.5, 0.125)  # each line is searched wide first, then near the best
IMPOSSIBLE = -1e6  # stands for the log of 0, so that sums stay numbers


@dataclass(frozen=True)
class TunedWeights:
    """Weights of (given scores …, model, words), and the word error rates before and after."""

    weights: tuple[float, ...]
    before: float  # of the list as it came: the first hypothesis of each utterance
    after: float
    best: float  # of the best hypothesis of each utterance: no weights can do better
    utterances: int


@dataclass(frozen=True)
class Rescored:
    """A list in its new order."""

    nbest: NBest
    weights: tuple[float, ...]
    order: npt.NDArray[np.int64]  # of the hypotheses, best first within each utterance
    lm: Floats
    combined: Floats
    tuned: TunedWeights | None = None

    def lines(self) -> Iterator[str]:
        """Yield the list as it is written."""
        return write_nbest(self.nbest, self.order.tolist(), self.lm, self.combined)


def rescore(
    model: LanguageModel,
    tokenizer: Tokenizer,
    nbest: NBest,
    weights: Sequence[float] | None = None,
    references: dict[str, str] | None = None,
) -> Rescored:
    """Reorder a list; with references the weights are tuned first, starting from those given."""
    lm = model_scores(model, tokenizer, nbest)
    features = features_of(nbest, lm)
    start = _checked(weights, features.shape[1])
    tuned = tune(nbest, features, references, start) if references is not None else None
    used = np.array(tuned.weights if tuned else start)
    combined = features @ used
    return Rescored(nbest, tuple(used.tolist()), ranked(nbest, combined), lm, combined, tuned)


def model_scores(model: LanguageModel, tokenizer: Tokenizer, nbest: NBest) -> Floats:
    """Return log p of each text in one bulk pass, END included where it ends a line."""
    data = "".join(text.replace("\n", " ") + "\n" for text in nbest.texts).encode()
    found = [batch.logprob for batch in line_batches(model, tokenizer, iter([Block(data, True)]))]
    return np.concatenate([np.empty(0), *found])


def features_of(nbest: NBest, lm: Floats) -> Floats:
    """Make one row per hypothesis: the given scores, the model's, the number of words."""
    words = np.array([len(text.split()) for text in nbest.texts], dtype=np.float64)
    return np.column_stack([nbest.scores, np.maximum(lm, IMPOSSIBLE), words])


def ranked(nbest: NBest, combined: Floats) -> npt.NDArray[np.int64]:
    """Return the hypotheses of each utterance, best first; equals keep their order."""
    group = np.repeat(np.arange(len(nbest.starts)), np.diff(np.append(nbest.starts, len(nbest))))
    order: npt.NDArray[np.int64] = np.lexsort((np.arange(len(nbest)), -combined, group))
    return order


def tune(nbest: NBest, features: Floats, references: dict[str, str], start: Sequence[float]) -> TunedWeights:
    """Return the weights with the fewest word errors that a search along each weight in turn finds.

    Only ratios matter, so the first weight keeps its size; it is tried with both signs, since a given score
    may be a cost.
    """
    chosen, errors, total = _errors(nbest, references)
    starts = np.flatnonzero(np.isin(chosen, nbest.starts)).astype(np.int64)
    search = _Search(features[chosen], errors, starts)
    given = np.array(start, dtype=np.float64)
    if given[0] == 0:
        given[0] = 1.0
    turned = given.copy()
    turned[0] = -turned[0]
    found = [search.descend(weights) for weights in (given, turned)]
    weights, after = min(found, key=lambda pair: pair[1])
    best = int(np.minimum.reduceat(errors, starts).sum())
    before = int(errors[starts].sum())
    return TunedWeights(tuple(weights.tolist()), before / total, after / total, best / total, len(starts))


def _checked(weights: Sequence[float] | None, count: int) -> list[float]:
    """Return the weights given, or 1 for every score and 0 for the number of words."""
    if weights is None:
        return [1.0] * (count - 1) + [0.0]
    if len(weights) == count - 1:  # without the weight of the number of words
        weights = [*weights, 0.0]
    if not np.isfinite(weights).all():
        bad = next(weight for weight in weights if not np.isfinite(weight))
        raise ConfigError(
            f"'--weights' has {bad:g}, which is not a finite number; write numbers as in 1,0.5,0"
        )
    if len(weights) != count:
        raise ConfigError(
            f"'--weights' has {len(weights)} numbers, and {count} are needed: {count - 2} for the given "
            "scores, then the model's, then that of the number of words (which may be left out)"
        )
    return [float(weight) for weight in weights]


def _errors(nbest: NBest, references: dict[str, str]) -> tuple[npt.NDArray[np.int64], Ints, int]:
    """Return hypotheses that have a reference, their word errors, and the references' words."""
    ends = np.append(nbest.starts, len(nbest))
    chosen: list[npt.NDArray[np.int64]] = []
    errors: list[Ints] = []
    total = 0
    for number, name in enumerate(nbest.groups):
        if name in references:
            rows = np.arange(ends[number], ends[number + 1])
            chosen.append(rows)
            errors.append(word_errors(references[name], [nbest.texts[i] for i in rows]))
            total += len(references[name].split())
    if not chosen or not total:
        example = f"'{nbest.groups[0]}'" if nbest.groups else "none"
        raise DataError(
            f"no id of the n-best list has a reference with words (the list begins with {example}); "
            "use the same ids in both files"
        )
    return np.concatenate(chosen), np.concatenate(errors), total


@dataclass(frozen=True)
class _Search:
    """The fewest word errors that weights can reach, one weight at a time."""

    features: Floats
    errors: Ints
    starts: npt.NDArray[np.int64]

    def descend(self, weights: Floats) -> tuple[Floats, int]:
        """Improve one weight after another until a round changes nothing."""
        weights, best = weights.copy(), self.count(self.features @ weights)
        for _ in range(ROUNDS):
            before = best
            for k in range(1, len(weights)):
                for width in WIDTHS:
                    weights[k], best = self.line(weights, k, width, best)
            if best == before:
                break
        return weights, best

    def line(self, weights: Floats, k: int, width: float, best: int) -> tuple[float, int]:
        """Find the best value of one weight on a line around it; among ties the middle of the widest run."""
        column = self.features[:, k]
        rest = self.features @ weights - column * weights[k]
        values = weights[k] + np.linspace(-width, width, STEPS) * max(1.0, abs(float(weights[k])))
        counts = np.array([self.count(rest + value * column) for value in values])
        lowest = int(counts.min())
        if lowest >= best:
            return float(weights[k]), best
        runs = np.split(np.arange(STEPS), np.flatnonzero(np.diff(counts != lowest)) + 1)
        widest = max((run for run in runs if counts[run[0]] == lowest), key=len)
        return float(values[widest[len(widest) // 2]]), lowest

    def count(self, combined: Floats) -> int:
        """Count word errors of the best hypotheses under these scores; among ties the earlier wins."""
        best = np.maximum.reduceat(combined, self.starts)
        lengths = np.diff(np.append(self.starts, len(combined)))
        is_best = combined == np.repeat(best, lengths)
        places = np.where(is_best, np.arange(len(combined)), len(combined))
        return int(self.errors[np.minimum.reduceat(places, self.starts)].sum())
