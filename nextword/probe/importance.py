"""Which words of a text decided its label: occlusion, and gradient x input.

Occlusion leaves one word out and asks again (Zeiler & Fergus 2014, Li et al. 2016), so that it works with any
classifier; gradient x input needs one pass through a network (Shrikumar et al. 2016). Both are in the unit of
the answer, log p / (1 - p) of the label: of a sum over words, as in naive Bayes, they are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from nextword.core.errors import ConfigError, DataError
from nextword.drawing.coloured import coloured
from nextword.drawing.page import Table
from nextword.probe.result import Figure, ProbeResult
from nextword.probe.settings import ProbeSettings
from nextword.probe.subject import Subject
from nextword.text.splitter import Piece, pieces

Floats = npt.NDArray[np.float64]
Classify = Callable[[list[str]], npt.NDArray[Any]]  # texts -> logits_NK
_ROWS = 256  # texts that are asked at a time
_SHOWN = 5  # words of the sentence that matters most


@runtime_checkable
class Answers(Protocol):
    """A classifier of any family, as far as it is asked here."""

    calibration: Any
    vocabulary: Any

    def logits(self, texts: list[str]) -> npt.NDArray[Any]:
        """Return a score for each label of each text."""
        ...


@dataclass(frozen=True)
class WordImportance:
    """The words of a text, where they stand, and how much each one speaks for the label."""

    text: str
    label: str
    probability: float
    words: tuple[Piece, ...]
    scores_W: Floats
    method: str


def log_odds(logits_NK: npt.NDArray[Any], label: int, several: bool) -> Floats:
    """Return log p / (1 - p) of a label; of several labels each is a question of its own."""
    z_NK = np.asarray(logits_NK, np.float64)
    if several:
        return np.asarray(z_NK[:, label])
    others_NK = np.delete(z_NK, label, axis=1)
    return np.asarray(z_NK[:, label] - np.logaddexp.reduce(others_NK, axis=1))


def occlusion(classify: Classify, text: str, words: Sequence[Piece], label: int, several: bool) -> Floats:
    """Return how far the log-odds of a label fall if a word is left out, for each word."""
    without = [text[: word.start] + " " + text[word.end :] for word in words]
    asked = [text, *without]
    found_N = np.concatenate(
        [log_odds(classify(asked[at : at + _ROWS]), label, several) for at in range(0, len(asked), _ROWS)]
    )
    return found_N[0] - found_N[1:]


def gradient_times_input(network: Any, words: Any, label: int, several: bool) -> Floats:
    """Return x · d log-odds / d x for each word of one text; ``words``: a batch of one row."""
    import torch

    x_1TE = network.words(words).detach().requires_grad_()
    z_K = network.from_vectors(x_1TE, words.lengths_B)[0]
    others_K = torch.cat([z_K[:label], z_K[label + 1 :]])
    answer = z_K[label] if several else z_K[label] - others_K.logsumexp(0)
    (gradient_1TE,) = torch.autograd.grad(answer, x_1TE)
    return np.asarray((gradient_1TE * x_1TE).sum(dim=-1)[0].detach().double().cpu().numpy())


def explain(model: Answers, text: str, label: str | None = None, method: str = "occlusion") -> WordImportance:
    """Find which words speak for a label; the one that is predicted where none is given."""
    vocabulary, several = model.vocabulary, model.vocabulary.several
    logits_1K = model.logits([text])
    p_K = model.calibration.probabilities(logits_1K, several)[0]
    if label is not None and label not in vocabulary.labels:
        known = ", ".join(vocabulary.labels[:20])
        raise ConfigError(f"there is no label '{label}'; the classifier knows: {known}")
    at = int(p_K.argmax()) if label is None else vocabulary.labels.index(label)
    words = tuple(pieces(text)[: vocabulary.longest])
    if method == "occlusion":
        scores_W = occlusion(model.logits, text, words, at, several)
    elif method == "gradient":
        scores_W = _gradients(model, words, at, several)
    else:
        raise ConfigError(f"'method' is '{method}'; it must be occlusion or gradient")
    scores_W = scores_W / model.calibration.temperature
    return WordImportance(text, vocabulary.labels[at], float(p_K[at]), words, scores_W, method)


def _gradients(model: Any, words: Sequence[Piece], label: int, several: bool) -> Floats:
    from nextword.data.batches.words import Sentences
    from nextword.models.network import device_of
    from nextword.models.words import to_tensors

    if not words:
        return np.zeros(0)
    packed = Sentences([[word.text for word in words]], model.vocabulary.lexicon)
    rows = to_tensors(packed.take(np.arange(1)), device_of(model.network))
    return gradient_times_input(model.network, rows, label, several)


def has_vectors(model: Any) -> bool:
    """Tell whether a classifier is a network whose answer has a gradient by the vectors of its words."""
    return isinstance(model, _OverNetwork) and isinstance(model.network, _FromVectors)


@runtime_checkable
class _OverNetwork(Protocol):
    network: Any


@runtime_checkable
class _FromVectors(Protocol):
    words: Any

    def from_vectors(self, x_BTE: Any, lengths_B: Any) -> Any: ...


class Importance:
    """Which words of a text decided its label."""

    about = "which words of a text decided its label: each left out, and gradient x input"
    needs = "classifiers"

    def fits(self, subject: Subject) -> bool:
        """Accept classifiers of all families."""
        return isinstance(subject.model, Answers)

    def look(self, subject: Subject, settings: ProbeSettings, against: Subject | None = None) -> ProbeResult:
        """Show the text in colours."""
        model, text = subject.model, subject.given
        if not isinstance(model, Answers) or text is None or not text.split():
            raise DataError("a classifier is looked at with a text of at least one word; give it with --text")
        found = [explain(model, text)]
        if has_vectors(model):
            found.append(explain(model, text, found[0].label, "gradient"))
        first = found[0]
        best = sorted(zip(first.scores_W, first.words, strict=True), key=lambda each: -each[0])[:_SHOWN]
        named = ", ".join(f"'{word.text}' ({score:+.2f})" for score, word in best if score > 0)
        return ProbeResult(
            "importance",
            subject.name,
            f"Which words made it {first.label}: {subject.name}",
            f"{subject.name} says {first.label} ({first.probability:.1%})"
            + (f"; what speaks for it most: {named}." if named else "; no single word speaks for it."),
            'IITD-2 "RNNs can be used for sentence classification"',
            {each.method: each.scores_W for each in found},
            {"words": [word.text for word in first.words]},
            (*(_figure(each) for each in found), _table(found)),
        )


_TITLES = {"occlusion": "each word left out", "gradient": "gradient x input"}


def _figure(found: WordImportance) -> Figure:
    title = f"{found.label}: {_TITLES[found.method]}"
    shown: list[str] = []
    values: list[float] = []
    at = 0
    for word, score in zip(found.words, found.scores_W.tolist(), strict=True):
        if word.start > at:
            shown.append(found.text[at : word.start])
            values.append(np.nan)
        shown.append(word.text)
        values.append(score)
        at = word.end
    return Figure(
        title, coloured(shown, values, title, "change of the log-odds"),
        f"Red words speak for {found.label}, blue ones against it.",
    )  # fmt: skip


def _table(found: Sequence[WordImportance]) -> Table:
    columns = np.stack([each.scores_W for each in found], axis=1).round(3).tolist()
    rows = tuple((word.text, *row) for word, row in zip(found[0].words, columns, strict=True))
    return Table(("word", *(_TITLES[each.method] for each in found)), rows)
