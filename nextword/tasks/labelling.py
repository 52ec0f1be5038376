"""Labels of new texts, with any classifier: as lines, as a table, as JSON, and as an explained page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from nextword.core.errors import ConfigError
from nextword.core.task import DEFAULT_OPTIONS, Prediction, PredictOptions
from nextword.data import unlabelled
from nextword.data.batches.ahead import read_ahead
from nextword.data.classes import ClassVocabulary
from nextword.data.labelled import LabelledDataSettings
from nextword.drawing.marked import Weight, answer, weighted
from nextword.drawing.page import CLOSING, Page
from nextword.probe.importance import Answers, occlusion
from nextword.text.splitter import Piece, pieces

_CHUNK, _CHUNK_LETTERS = 1024, 1 << 20  # texts and characters that are read ahead and sorted by length
_OTHERS = 4  # labels that a page shows beside the predicted one


@runtime_checkable
class ReadsWords(Protocol):
    """A classifier that can be given words instead of a text."""

    def logits_of(self, words: list[list[str]]) -> npt.NDArray[Any]:
        """Return the scores of texts that are split into words."""
        ...


class Found(NamedTuple):
    """The answer for one text: the predicted labels, the most probable one, all probabilities."""

    labels: tuple[str, ...]
    best: int
    p_K: npt.NDArray[np.float64]


class LabelPredictor:
    """Classifies texts, in order, in bounded memory; batches inside are sorted by length."""

    def __init__(
        self,
        model: Answers,
        vocabulary: ClassVocabulary,
        options: PredictOptions = DEFAULT_OPTIONS,
        data: LabelledDataSettings | None = None,
        name: str = "",
    ) -> None:
        self.model, self.vocabulary, self.options, self.name = model, vocabulary, options, name
        self.data = data or LabelledDataSettings()
        if options.pretokenized and not isinstance(model, ReadsWords):
            raise ConfigError(
                f"'--pretokenized' is for classifiers that read words, and '{name}' reads the text itself; "
                "leave it out"
            )

    def predict(self, inputs: Iterable[str]) -> Iterator[Prediction]:
        """Yield one prediction for each text."""
        for chunk in read_ahead(inputs, _CHUNK, len, _CHUNK_LETTERS):
            for text, found in zip(chunk, self._classify(chunk), strict=True):
                yield self._prediction(text, found)

    def predict_file(self, file: str) -> Iterator[Prediction]:
        """Yield one prediction for each text of a file."""
        return self.predict(unlabelled.read_file(file, self.data))

    def write(self, predictions: Iterable[Prediction]) -> Iterator[str]:
        """Yield a line for each text; or a table with a header, or a page."""
        if self.options.format == "tsv":
            yield "\t".join(("label", *map(_cell, self.vocabulary.labels))) + "\n"
        if self.options.format == "html":
            page = Page(f"Classified by {self.name or 'a classifier'}")
            page.text(
                "The redder a word, the more it speaks for the label; the bluer, the more against it: by how "
                "much log p / (1 - p) falls when the word is left out. Each text has its own scale.",
                soft=True,
            )
            yield page.opening() + page.parts[0] + "\n"
        yield from (f"{each.text}\n" for each in predictions)
        if self.options.format == "html":
            yield CLOSING

    def _logits(self, texts: list[str]) -> npt.NDArray[Any]:
        if self.options.pretokenized and isinstance(self.model, ReadsWords):
            return self.model.logits_of([text.split()[: self.vocabulary.longest] for text in texts])
        return self.model.logits(texts)

    def _classify(self, texts: list[str]) -> list[Found]:
        labels, several = self.vocabulary.labels, self.vocabulary.several
        p_NK = self.model.calibration.probabilities(self._logits(texts), several)
        best_N = p_NK.argmax(axis=1).tolist()
        if not several:
            return [Found((labels[k],), k, p_K) for k, p_K in zip(best_N, p_NK, strict=True)]
        chosen_NK = self.model.calibration.chosen(p_NK)
        return [
            Found(tuple(labels[k] for k in np.flatnonzero(chosen_K)), best, p_K)
            for best, p_K, chosen_K in zip(best_N, p_NK, chosen_NK, strict=True)
        ]

    def _prediction(self, text: str, found: Found) -> Prediction:
        labels = self.vocabulary.labels
        probabilities = dict(zip(labels, found.p_K.tolist(), strict=True))
        values: dict[str, Any] = {"label": labels[found.best], "probabilities": probabilities}
        if self.vocabulary.several:
            values["labels"] = list(found.labels)
        if self.options.format == "html":
            return Prediction(self._drawn(text, found, probabilities), values)
        named = ",".join(map(_cell, found.labels))
        if self.options.format == "tsv":
            return Prediction("\t".join((named, *(f"{p:.6f}" for p in probabilities.values()))), values)
        sure = ",".join(f"{probabilities[label]:.6f}" for label in found.labels)
        return Prediction(f"{named}\t{sure}", values)

    def _drawn(self, text: str, found: Found, probabilities: dict[str, float]) -> str:
        """Return the label, the next ones, and the text with the words that mattered in colour."""
        label = self.vocabulary.labels[found.best]
        others = sorted(probabilities.items(), key=lambda each: -each[1])[1 : _OTHERS + 1]
        shown = ", ".join(f"{name} {p:.1%}" for name, p in others)
        named = ", ".join(found.labels) if self.vocabulary.several else label
        words = (_words(text) if self.options.pretokenized else pieces(text))[: self.vocabulary.longest]
        scores_W = occlusion(self._logits, text, words, found.best, self.vocabulary.several)
        scores_W = scores_W / self.model.calibration.temperature
        most = max(1e-9, float(np.abs(scores_W).max(initial=0.0)))
        weights = [
            Weight(word.start, word.end, score / most, f"{word.text}: {score:+.2f}")
            for word, score in zip(words, scores_W.tolist(), strict=True)
        ]
        return answer(named or "no label", probabilities[label], shown) + weighted(text, weights)


def _words(text: str) -> list[Piece]:
    """Return what whitespace separates, with its places."""
    made, at = [], 0
    for word in text.split():
        start = text.index(word, at)
        at = start + len(word)
        made.append(Piece(word, start, at))
    return made


def _cell(label: str) -> str:
    """Return a label as one cell of a line."""
    return " ".join(label.split())
