"""Fit a classifier without a network in several ways, keep the one that held-out texts prefer, fit it again.

What decides is the likelihood of the held-out labels after calibration: it is steadier than their accuracy
where held-out texts are few. Texts that were held out only for this are then learned from too, so that the
scores they had before are kept for calibration and measurement.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from nextword.core.events import Event, Note, Stage
from nextword.data.batches.batch import NOT_COUNTED
from nextword.data.classes import ClassVocabulary, LabelledTexts
from nextword.models import calibration

_FEW = 32  # texts that compiled loops are tried on
Logits = npt.NDArray[Any]
Fitted = TypeVar("Fitted", bound="Scorer")
Way = TypeVar("Way", bound="Choice")


class Choice(Protocol):
    """One choice of what the settings leave open; ``str`` describes it."""

    @property
    def work(self) -> float:
        """Return what fitting takes, as a multiple of any unit."""
        ...


class Scorer(Protocol):
    """A classifier of texts."""

    def logits(self, texts: list[str]) -> Logits:
        """Return a score for each label of each text, before the temperature."""
        ...


class LabelledData(Protocol):
    """Labelled texts as a family without a network is fitted to them."""

    @property
    def vocabulary(self) -> ClassVocabulary:
        """Return the labels."""
        ...

    @property
    def learned(self) -> LabelledTexts:
        """Return the texts to learn from."""
        ...

    @property
    def measured(self) -> LabelledTexts | None:
        """Return the texts to measure, if there are any."""
        ...

    @property
    def was_held_out(self) -> bool:
        """Tell whether they are a part of the texts given to learn from."""
        ...


@dataclass(frozen=True)
class Examples:
    """Texts and the numbers of their labels; those of text i are ``labels[bounds[i]:bounds[i + 1]]``."""

    texts: list[str]
    labels: npt.NDArray[np.int64]
    bounds: npt.NDArray[np.int64]
    count: int  # of all labels
    several: bool

    @classmethod
    def of(cls, *parts: LabelledTexts, vocabulary: ClassVocabulary) -> Examples:
        """Take the texts of some sets whose labels are known."""
        texts: list[str] = []
        found: list[list[int]] = []
        for part in parts:
            for text, labels in zip(part.texts, part.labels, strict=True):
                ids = [at for at in map(vocabulary.label_id, labels) if at != NOT_COUNTED]
                if ids or vocabulary.several:
                    texts.append(text)
                    found.append(ids)
        bounds = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(ids) for ids in found], out=bounds[1:])
        flat = np.array([at for ids in found for at in ids], np.int64)
        return cls(texts, flat, bounds, len(vocabulary.labels), vocabulary.several)

    def first(self, texts: int) -> Examples:
        """Return the first of the texts."""
        kept = self.bounds[: texts + 1]
        return replace(self, texts=self.texts[:texts], labels=self.labels[: kept[-1]], bounds=kept)

    def priors(self) -> npt.NDArray[np.float64]:
        """Return the share of texts of each label, of several labels a little away from 0 and 1."""
        counts_K = np.bincount(self.labels, minlength=self.count)
        if self.several:
            return np.asarray((counts_K + 0.5) / (len(self.texts) + 1.0), np.float64)
        return np.asarray((counts_K + 0.5) / (counts_K.sum() + 0.5 * self.count), np.float64)


def cost(logits_NK: Logits, targets: npt.NDArray[Any], several: bool) -> float:
    """Return the nats for each label of held-out texts after calibration."""
    return calibration.nats(logits_NK, targets, several, calibration.fit(logits_NK, targets, several))


def fit_best(
    ways: Sequence[Way], fit: Callable[[Examples, Way], Fitted], data: LabelledData, seconds: float = math.inf
) -> Generator[Event, None, tuple[Fitted, Logits | None]]:
    """Fit in every way, choose, and fit to all texts; returns the scores of held-out texts before that.

    A way that does not fit into the time is skipped, but never the first. With a time limit a few texts are
    fitted before anything is timed: the first run after an installation compiles loops, which takes longer
    than fitting itself.
    """
    vocabulary, measured = data.vocabulary, data.measured
    learned = Examples.of(data.learned, vocabulary=vocabulary)
    if measured is None:
        yield Stage(f"fit: {ways[0]}")
        return fit(learned, ways[0]), None
    entered = time.monotonic()
    if math.isfinite(seconds) and len(ways) > 1:
        yield Stage("compile")
        fit(learned.first(_FEW), ways[0]).logits(list(measured.texts[:1]))
    began, done, again = time.monotonic(), 0.0, 1.0 if data.was_held_out else 0.0

    def has_time(work: float) -> bool:
        """Return whether so much work fits into the time, at the speed so far."""
        now = time.monotonic()
        return not done or now - entered + (now - began) / done * work <= seconds

    found: list[tuple[float, int, Fitted, Logits]] = []
    for at, way in enumerate(ways):
        if not has_time((1 + again) * way.work):
            yield Note(f"there is no time to try {way}")
            continue
        yield Stage(f"fit: {way}")
        model = fit(learned, way)
        logits_NK = model.logits(list(measured.texts))
        found.append((cost(logits_NK, measured.targets, vocabulary.several), at, model, logits_NK))
        done += way.work
    nats, best, model, logits_NK = min(found, key=lambda each: each[:2])
    if len(found) > 1:
        others = ", ".join(f"{ways[at]} {each:.4f}" for each, at, *_ in found if at != best)
        yield Note(f"held-out texts prefer {ways[best]}: {nats:.4f} nats per text (others: {others})")
    if data.was_held_out and has_time(ways[best].work):
        yield Stage("fit to all texts")
        model = fit(Examples.of(data.learned, measured, vocabulary=vocabulary), ways[best])
    return model, logits_NK
