"""Pictures of how well something is classified: confusion matrix, reliability diagram, ROC, F1 by label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nextword.drawing.heat import Names, heat
from nextword.drawing.page import Page, Table
from nextword.drawing.svg import Axis, Series, bars, lines

_LABELS = 40  # of a matrix or of bars: the most frequent ones
_POINTS = 60  # of a curve


def draw_confusion(page: Page, confusion: Sequence[Sequence[int]], labels: Sequence[str]) -> None:
    """Add the confusion matrix: what texts of each label were taken for."""
    counts_KK = np.asarray(confusion, np.int64).reshape(len(labels), len(labels))
    kept = np.sort(np.argsort(-counts_KK.sum(axis=1), kind="stable")[:_LABELS])
    counts_KK, names = counts_KK[np.ix_(kept, kept)], [labels[at] for at in kept]
    share_KK = counts_KK / np.maximum(1, counts_KK.sum(axis=1, keepdims=True))
    picture = heat(
        share_KK, Names("true label", names), Names("predicted label", names), "Confusion matrix",
        "share of the texts of a label", (0.0, 1.0),
    )  # fmt: skip
    rows = tuple((name, *map(int, row)) for name, row in zip(names, counts_KK, strict=True))
    more = f"; the {len(kept)} most frequent of {len(labels)} labels" if len(kept) < len(labels) else ""
    page.heading("Confusion matrix")
    page.picture(
        picture,
        f"A row shows what the texts of a label were taken for; the diagonal is right{more}.",
        Table(("true label", *names), rows),
    )


def draw_reliability(page: Page, points: Sequence[Mapping[str, float]], error: float) -> None:
    """Add the reliability diagram: how often a label is right whose probability is so high."""
    found = tuple((each["confidence"], each["accuracy"]) for each in points)
    picture = lines(
        [Series("measured", found), Series("as promised", ((0.0, 0.0), (1.0, 1.0)))],
        "Reliability diagram",
        Axis("probability of the predicted label", zero=True),
        Axis("share that is right", zero=True),
    )
    rows = tuple(
        (round(each["confidence"], 4), round(each["accuracy"], 4), int(each["texts"])) for each in points
    )
    table = Table(("probability", "right", "texts"), rows)
    page.heading("Reliability diagram")
    page.picture(
        picture,
        f"Below the straight line the classifier is too sure, above it not sure enough; expected calibration "
        f"error {error:.4f}.",
        table,
    )


def draw_roc(page: Page, curve: Sequence[Sequence[float]], area: float, label: str) -> None:
    """Add the ROC: true against false positives over all thresholds."""
    kept = np.unique(np.linspace(0, len(curve) - 1, _POINTS).round().astype(int)).tolist()
    points = tuple((curve[at][0], curve[at][1]) for at in kept)
    picture = lines(
        [Series(f"'{label}'", points), Series("chance", ((0.0, 0.0), (1.0, 1.0)))],
        "ROC",
        Axis("false positives, share of the other label", zero=True),
        Axis("true positives, share of the label", zero=True),
    )
    page.heading("ROC")
    page.picture(picture, f"Each point is a threshold for '{label}'; area below the curve {area:.4f}.")


def draw_f1(page: Page, scores: Sequence[tuple[str, float, int]], noun: str) -> None:
    """Add a bar for the F1 of each label; ``scores``: label, F1, how many there are."""
    kept = sorted(scores, key=lambda each: -each[2])[:_LABELS]
    notes = [f"{f1:.3f}  ({support:,})" for _, f1, support in kept]
    page.heading(f"F1 of each {noun}")
    page.picture(
        bars([(label, f1) for label, f1, _ in kept], f"F1 of each {noun}", "F1 (how many there are)", notes),
        f"The most frequent {noun} first.",
    )
