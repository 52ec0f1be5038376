"""How well texts are classified: accuracy, F1 by label, confusion matrix, ROC, calibration.

Micro F1 counts all labels together, macro F1 is the mean over labels; both equal scikit-learn's.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nextword.drawing.page import Page
from nextword.evaluation import pictures
from nextword.evaluation.tagging import Scores
from nextword.models.calibration import Calibration, expected_error

_SHOWN = 12  # labels of a table in the terminal


@dataclass(frozen=True)
class ClassificationReport:
    """All numbers of an evaluation."""

    accuracy: float  # several labels: the share of texts whose labels are all right
    macro_f1: float
    micro_f1: float
    texts: int
    labels: dict[str, Scores]
    confusion: list[list[int]] = field(default_factory=list)  # rows: the true label; one label a text only
    calibration_error: float | None = None
    reliability: list[dict[str, float]] = field(default_factory=list)
    roc: list[tuple[float, float]] = field(default_factory=list)  # (false, true) positives, two labels only
    roc_area: float | None = None
    nll: float | None = None  # nats per text
    new_labels: tuple[str, ...] = ()  # of the reference, that training has not seen
    several: bool = False
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return asdict(self)

    def page(self) -> Page:
        """Return the report with pictures: confusion matrix, reliability diagram, ROC, F1 by label."""
        made = Page("How well texts are classified")
        shown = f"accuracy {self.accuracy:.2%}, macro F1 {self.macro_f1:.4f}"
        made.verdict(True, f"{self.texts:,} texts: {shown}, micro F1 {self.micro_f1:.4f}.")
        labels = list(self.labels)
        if self.confusion:
            pictures.draw_confusion(made, self.confusion, labels)
        pictures.draw_f1(made, [(name, each.f1, each.support) for name, each in self.labels.items()], "label")
        if self.reliability and self.calibration_error is not None:
            pictures.draw_reliability(made, self.reliability, self.calibration_error)
        if self.roc and self.roc_area is not None:
            pictures.draw_roc(made, self.roc, self.roc_area, labels[1])
        return made

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to an HTML file."""
        return self.page().save(path)

    def _repr_html_(self) -> str:
        return self.page().fragment()

    def __str__(self) -> str:
        lines = [
            f"accuracy  {self.accuracy:8.2%}   {self.texts:,} texts",
            f"macro F1  {self.macro_f1:8.4f}" + (f"   micro F1 {self.micro_f1:.4f}" if self.several else ""),
        ]
        if self.roc_area is not None:
            lines.append(f"ROC area  {self.roc_area:8.4f}")
        if self.calibration_error is not None:
            lines.append(f"calibration error {self.calibration_error:.4f} (expected, ten bins)")
        width = max(5, *(len(label) for label in self.labels)) if self.labels else 5
        lines += ["", f"{'label':<{width}}{'precision':>11}{'recall':>10}{'F1':>10}{'texts':>8}"]
        ordered = sorted(self.labels.items(), key=lambda each: -each[1].support)
        for label, scores in ordered[:_SHOWN]:
            lines.append(
                f"{label:<{width}}{scores.precision:>11.4f}{scores.recall:>10.4f}{scores.f1:>10.4f}"
                f"{scores.support:>8,}"
            )
        if len(ordered) > _SHOWN:
            lines.append(f"… and {len(ordered) - _SHOWN} more labels (--json shows all)")
        if self.new_labels:
            lines.append(
                f"labels that training has not seen, counted as errors: {', '.join(self.new_labels)}"
            )
        return "\n".join(lines)


def report(
    logits_NK: npt.NDArray[Any],
    gold: Sequence[Sequence[str]],
    labels: Sequence[str],
    calibration: Calibration,
    several: bool,
    seconds: float = 0.0,
) -> ClassificationReport:
    """Compare predictions with the labels of the texts."""
    p_NK = calibration.probabilities(logits_NK, several)
    ids = {label: at for at, label in enumerate(labels)}
    is_NK = np.zeros(p_NK.shape, np.bool_)
    new: set[str] = set()
    complete_N = np.ones(len(gold), np.bool_)
    for row, each in enumerate(gold):
        for label in each:
            if label in ids:
                is_NK[row, ids[label]] = True
            else:
                new.add(label)
                complete_N[row] = False
    if several:
        found_NK = calibration.chosen(p_NK)
    else:
        found_NK = np.zeros(p_NK.shape, np.bool_)
        found_NK[np.arange(len(gold)), p_NK.argmax(axis=1)] = True
    right_N = (found_NK == is_NK).all(axis=1) & complete_N
    right_K, predicted_K, there_K = (found_NK & is_NK).sum(0), found_NK.sum(0), is_NK.sum(0)
    scores = {
        label: Scores.of(int(right_K[k]), int(predicted_K[k]), int(there_K[k]))
        for k, label in enumerate(labels)
    }
    missed = sum(len([label for label in each if label not in ids]) for each in gold)
    shown = [each for k, each in enumerate(scores.values()) if there_K[k] or predicted_K[k]]
    targets_N = np.array([ids.get(each[0], -1) if each else -1 for each in gold]) if not several else None
    extra: dict[str, Any] = {}
    if targets_N is not None:
        extra = _of_one_label(p_NK, targets_N, len(labels))
    return ClassificationReport(
        accuracy=float(right_N.mean()) if len(gold) else 0.0,
        macro_f1=float(np.mean([each.f1 for each in shown])) if shown else 0.0,
        micro_f1=Scores.of(int(right_K.sum()), int(predicted_K.sum()), int(there_K.sum()) + missed).f1,
        texts=len(gold),
        labels=scores,
        new_labels=tuple(sorted(new)),
        several=several,
        seconds=seconds,
        **extra,
    )


def each_score(
    logits_NK: npt.NDArray[Any],
    gold: Sequence[Sequence[str]],
    labels: Sequence[str],
    calibration: Calibration,
    several: bool,
) -> list[float]:
    """Return for each text whether its label is right (1 or 0), or of several labels their F1."""
    p_NK = calibration.probabilities(logits_NK, several)
    if not several:
        best_N = p_NK.argmax(axis=1).tolist()
        return [float(labels[best] == each[0]) for best, each in zip(best_N, gold, strict=True)]
    found = [
        {label for label, is_chosen in zip(labels, row_K, strict=True) if is_chosen}
        for row_K in calibration.chosen(p_NK)
    ]
    return [
        Scores.of(len(mine & set(each)), len(mine), len(set(each))).f1 if mine or each else 1.0
        for mine, each in zip(found, gold, strict=True)
    ]


def _of_one_label(p_NK: npt.NDArray[Any], targets_N: npt.NDArray[Any], labels: int) -> dict[str, Any]:
    """Return what only data with one label a text has: confusion, calibration, ROC of two labels."""
    known = targets_N >= 0
    confusion = np.zeros((labels, labels), np.int64)
    np.add.at(confusion, (targets_N[known], p_NK[known].argmax(axis=1)), 1)
    found: dict[str, Any] = {"confusion": confusion.tolist()}
    if known.any():
        error, points = expected_error(p_NK[known], targets_N[known])
        nats = -np.log(np.maximum(p_NK[known, targets_N[known]], 1e-12))
        found |= {"calibration_error": error, "reliability": points, "nll": float(nats.mean())}
    if labels == 2 and len(set(targets_N[known].tolist())) == 2:
        curve, area = roc(p_NK[known, 1], targets_N[known] == 1)
        found |= {"roc": curve, "roc_area": area}
    return found


def roc(p_N: npt.NDArray[Any], is_N: npt.NDArray[np.bool_]) -> tuple[list[tuple[float, float]], float]:
    """Return the curve of (false, true) positive rates over all thresholds (at most 200) and its area."""
    order = np.argsort(-p_N, kind="stable")
    is_last = np.append(np.diff(p_N[order]) != 0, True)  # ties are one threshold
    true = np.append(0, np.cumsum(is_N[order])[is_last]) / max(1, is_N.sum())
    false = np.append(0, np.cumsum(~is_N[order])[is_last]) / max(1, (~is_N).sum())
    area = float(((false[1:] - false[:-1]) * (true[1:] + true[:-1]) / 2).sum())
    keep = np.unique(np.linspace(0, len(true) - 1, 200).round().astype(int))
    return [(float(false[at]), float(true[at])) for at in keep], area
