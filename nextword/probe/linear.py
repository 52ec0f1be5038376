"""A linear probe for each layer: what a linear map can predict from its activations.

[IITD-2 "Multi-layer RNNs": lower layers hold lower-level features]; Alain and Bengio 2017. Ridge regression
to the classes of a feature; the last part of the text is held out, and the baseline is the most common
class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nextword.core.errors import DataError
from nextword.drawing.page import Table
from nextword.drawing.svg import Axis, Series, lines
from nextword.probe import features
from nextword.probe.result import Figure, ProbeResult, row_of
from nextword.probe.settings import ProbeSettings
from nextword.probe.subject import Subject
from nextword.probe.units import Units, states
from nextword.probe.words import WordSubject, probed

Array = np.ndarray[Any, np.dtype[Any]]
_TOKENS = 2000
_LEAST = 60
_HELD_OUT = 0.3
_RIDGES = (1.0, 10.0, 100.0, 1000.0)


@dataclass(frozen=True)
class Fitted:
    """How well a feature is predicted from each layer."""

    feature: str
    majority: float  # the share of the most common class of the first part in the held-out part
    accuracy_L: Array

    @property
    def removed(self) -> Array:
        """The share of the most common class's errors that the probe avoids; below 0 it makes more."""
        return (self.accuracy_L - self.majority) / max(1e-9, 1.0 - self.majority)


class Linear:
    """What a linear map finds in every layer."""

    about = "a linear probe per layer: what its activations predict, against the most common class"
    needs = "recurrent networks, Transformers, taggers and classifiers"

    def fits(self, subject: Subject) -> bool:
        """Accept networks with layers over the whole text."""
        return Units().fits(subject)

    def _of_words(self, subject: WordSubject, settings: ProbeSettings) -> ProbeResult:
        """Probe the tags or labels on every layer of a tagger or classifier."""
        layers, classes = probed(subject, settings.tokens)
        names, count = [name for name, _ in layers], len(layers[0][1])
        unit = "words" if subject.is_by_word else "texts"
        if count < _LEAST:
            raise DataError(
                f"there are {count} {unit}, of which a linear probe needs {_LEAST} or more; give more --text"
            )
        found = fit([x_ND for _, x_ND in layers], classes)
        return ProbeResult(
            "linear", subject.name, f"What a linear probe reads off each layer: {subject.name}",
            f"{_sentence(found, names, count, unit)} These are {subject.source}.",
            'IITD-2 "Multi-layer RNNs"',
            {
                "accuracy_FL": np.stack([each.accuracy_L for each in found]),
                "majority_F": np.array([each.majority for each in found]),
            },
            {"F": [each.feature for each in found], "L": names}, (_picture(found, names, count, unit),),
        )  # fmt: skip

    def look(self, subject: Subject, settings: ProbeSettings, against: Subject | None = None) -> ProbeResult:
        """Probe every feature of the text on every layer."""
        if isinstance(subject, WordSubject):
            return self._of_words(subject, settings)
        words, layers = states(subject, settings.tokens or _TOKENS)
        if len(words) < _LEAST:
            raise DataError(
                f"the text has {len(words)} tokens, of which a linear probe needs {_LEAST} or more; "
                "give more --text"
            )
        found = fit([x_ND for _, x_ND in layers], features.classes(words.pieces))
        names = [name for name, _ in layers]
        arrays = {
            "accuracy_FL": np.stack([each.accuracy_L for each in found]),
            "majority_F": np.array([each.majority for each in found]),
        }
        return ProbeResult(
            "linear", subject.name, f"What a linear probe reads off each layer: {subject.name}",
            _sentence(found, names, len(words)), 'IITD-2 "Multi-layer RNNs"', arrays,
            {"F": [each.feature for each in found], "L": names}, (_picture(found, names, len(words)),),
        )  # fmt: skip


def fit(layers: list[Array], classes: dict[str, Array]) -> list[Fitted]:
    """Measure accuracy on the held-out end of the text; features constant in either part are left out."""
    cut = int(len(layers[0]) * (1 - _HELD_OUT))
    kept = {name: y_N for name, y_N in classes.items()
            if len(np.unique(y_N[:cut])) > 1 and len(np.unique(y_N[cut:])) > 1}  # fmt: skip
    if not kept:
        raise DataError("the text is too uniform for a linear probe: no feature changes; give other --text")
    of_layers = [_accuracies(x_ND, kept, cut) for x_ND in layers]
    found = []
    for place, (name, y_N) in enumerate(kept.items()):
        common = int(np.bincount(y_N[:cut]).argmax())
        found.append(
            Fitted(name, float((y_N[cut:] == common).mean()), np.array([each[place] for each in of_layers]))
        )
    return found


def _accuracies(x_ND: Array, classes: dict[str, Array], cut: int) -> list[float]:
    """Measure every feature on one layer; the regularization is chosen on the end of the first part."""
    inner = int(cut * 0.8)
    found = []
    trials, last = Ridge(x_ND[:inner]), Ridge(x_ND[:cut])
    for y_N in classes.values():
        hot_NC = np.eye(int(y_N.max()) + 1)[y_N]
        scores = [float((trials.predict(x_ND[inner:cut], hot_NC[:inner], ridge) == y_N[inner:cut]).mean())
                  for ridge in _RIDGES]  # fmt: skip
        ridge = _RIDGES[int(np.argmax(scores))]
        found.append(float((last.predict(x_ND[cut:], hot_NC[:cut], ridge) == y_N[cut:]).mean()))
    return found


class Ridge:
    """Least squares with a penalty on large weights (Hoerl and Kennard 1970), by singular values."""

    def __init__(self, x_ND: Array) -> None:
        self.mean_D = x_ND.mean(axis=0)
        self.scale_D = np.where(x_ND.std(axis=0) > 1e-9, x_ND.std(axis=0), 1.0)
        self.left_NK, self.sizes_K, self.right_KD = np.linalg.svd(self._scaled(x_ND), full_matrices=False)

    def predict(self, x_MD: Array, y_NC: Array, ridge: float) -> Array:
        """Return the most likely class of new rows, learned from the classes of the old ones."""
        centre_C = y_NC.mean(axis=0)
        shrunk_K = self.sizes_K / (self.sizes_K**2 + ridge)
        weights_DC = self.right_KD.T @ (shrunk_K[:, None] * (self.left_NK.T @ (y_NC - centre_C)))
        return np.argmax(self._scaled(x_MD) @ weights_DC + centre_C, axis=1)

    def _scaled(self, x_ND: Array) -> Array:
        scaled: Array = (x_ND - self.mean_D) / self.scale_D
        return scaled


def _sentence(found: list[Fitted], names: list[str], tokens: int, unit: str = "tokens") -> str:
    summary = []
    for each in sorted(found, key=lambda each: float(each.removed[0] - each.removed.max()))[:3]:
        place = int(np.argmax(each.removed))
        summary.append(
            f"'{each.feature}' is read best off {names[place]} "
            f"({100 * each.accuracy_L[place]:.0f} % right, the most common class {100 * each.majority:.0f} %)"
        )
    rough = f" There are only {tokens} {unit}: the figures are rough." if tokens < 500 else ""
    return f"What the layers add to the {names[0]}: {'; '.join(summary)}.{rough}"


def _picture(found: list[Fitted], names: list[str], tokens: int, unit: str = "tokens") -> Figure:
    curves = [
        Series(each.feature, tuple((float(i), 100 * float(y)) for i, y in enumerate(each.removed)))
        for each in found
    ]
    axis = Axis(f"layer, {names[0]} first", names=tuple((float(i), name) for i, name in enumerate(names)))
    rows = tuple(row_of(each.feature, [each.majority, *each.accuracy_L.tolist()]) for each in found)
    title = "What a linear probe reads off each layer"
    return Figure(
        title,
        lines(curves, title, axis, Axis("errors of the most common class that are avoided, %", zero=True)),
        "100 is a probe that is always right, 0 one that does no better than the most common class. "
        "Trained on the first "
        f"{100 - 100 * _HELD_OUT:.0f} % of {tokens:,} {unit}, measured on the rest. The table has the "
        "share that is right.",
        Table(("feature", "commonest guess", *names), rows),
    )
