"""How well words are tagged: accuracy, also of unknown words and by tag; F1 of spans as seqeval counts it.

A span is right if its first word, its last word and its label are (Tjong Kim Sang & De Meulder 2003).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nextword.data.spans import Name, illegal_steps, spans_of, strict_spans
from nextword.drawing.page import Page
from nextword.evaluation import pictures


@dataclass(frozen=True)
class Scores:
    """Precision, recall and F1 of one label, or of all together."""

    precision: float
    recall: float
    f1: float
    support: int  # how many there are in the reference

    @classmethod
    def of(cls, right: int, predicted: int, there: int) -> Scores:
        """Compute the scores from counts; 0 where there is nothing to divide by."""
        precision, recall = right / predicted if predicted else 0.0, right / there if there else 0.0
        total = precision + recall
        return cls(precision, recall, 2 * precision * recall / total if total else 0.0, there)


@dataclass(frozen=True)
class TaggingReport:
    """All numbers of an evaluation."""

    accuracy: float
    words: int
    sentences: int
    unknown_words: int  # words that training has not seen
    unknown_accuracy: float | None
    tags: dict[str, Scores]
    span_f1: float | None = None
    span_f1_strict: float | None = None
    spans: dict[str, Scores] = field(default_factory=dict)  # by label
    repaired: int = 0  # predictions whose best tags word by word would not have been legal
    new_tags: tuple[str, ...] = ()  # of the reference, that training has not seen
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        found = asdict(self)
        return found if self.span_f1 is not None else {k: v for k, v in found.items() if "span" not in k}

    def page(self) -> Page:
        """Return the report with a picture of the F1 of each label or tag."""
        made = Page("How well words are tagged")
        shown = f"accuracy {self.accuracy:.2%}"
        shown += "" if self.span_f1 is None else f", span F1 {self.span_f1:.4f}"
        made.verdict(True, f"{self.words:,} words in {self.sentences:,} sentences: {shown}.")
        scores = self.tags if self.span_f1 is None else self.spans
        noun = "tag" if self.span_f1 is None else "label"
        pictures.draw_f1(made, [(name, each.f1, each.support) for name, each in scores.items()], noun)
        return made

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to an HTML file."""
        return self.page().save(path)

    def _repr_html_(self) -> str:
        return self.page().fragment()

    def __str__(self) -> str:
        lines = [f"accuracy      {self.accuracy:8.2%}   {self.words:,} words in {self.sentences:,} sentences"]
        if self.unknown_accuracy is not None:
            lines.append(f"unknown words {self.unknown_accuracy:8.2%}   {self.unknown_words:,} words")
        if self.span_f1 is not None:
            lines.append(f"span F1       {self.span_f1:8.4f}   strict {self.span_f1_strict:.4f}")
            lines += ["", f"{'label':<16}{'precision':>10}{'recall':>10}{'F1':>10}{'spans':>8}"]
            lines += [_row(label, scores) for label, scores in sorted(self.spans.items())]
        else:
            lines += ["", f"{'tag':<16}{'precision':>10}{'recall':>10}{'F1':>10}{'words':>8}"]
            lines += [
                _row(tag, scores)
                for tag, scores in sorted(self.tags.items(), key=lambda each: -each[1].support)
            ]
        if self.new_tags:
            lines.append(f"tags that training has not seen, counted as errors: {', '.join(self.new_tags)}")
        return "\n".join(lines)


def _row(name: str, scores: Scores) -> str:
    return f"{name:<16}{scores.precision:>10.4f}{scores.recall:>10.4f}{scores.f1:>10.4f}{scores.support:>8,}"


class TagCounts:
    """Counts sentence by sentence, in bounded memory."""

    def __init__(self, scheme: Name, known_tags: Iterable[str] = ()) -> None:
        self.scheme, self.known = scheme, frozenset(known_tags)
        self.words = self.right = self.sentences = self.unknown = self.unknown_right = self.repaired = 0
        self.tags_right: Counter[str] = Counter()
        self.tags_there: Counter[str] = Counter()
        self.tags_predicted: Counter[str] = Counter()
        self.spans = [Counter[str]() for _ in range(3)]  # right, predicted, there
        self.strict = [0, 0, 0]

    def add(
        self, gold: Sequence[str], predicted: Sequence[str], is_unknown: Sequence[bool] | None = None
    ) -> float:
        """Count one sentence; return the F1 of its spans, or without spans the share of right tags."""
        self.sentences += 1
        self.words += len(gold)
        for at, (one, two) in enumerate(zip(gold, predicted, strict=True)):
            self.tags_there[one] += 1
            self.tags_predicted[two] += 1
            is_right = one == two
            self.right += is_right
            self.tags_right[one] += is_right
            if is_unknown is not None and is_unknown[at]:
                self.unknown += 1
                self.unknown_right += is_right
        if self.scheme != "none":
            return self._add_spans(gold, predicted)
        return sum(one == two for one, two in zip(gold, predicted, strict=True)) / max(1, len(gold))

    def _add_spans(self, gold: Sequence[str], predicted: Sequence[str]) -> float:
        there, found = set(spans_of(gold, self.scheme)), set(spans_of(predicted, self.scheme))
        for counter, spans in zip(self.spans, (there & found, found, there), strict=True):
            counter.update(span.label for span in spans)
        strict = set(strict_spans(gold, self.scheme)), set(strict_spans(predicted, self.scheme))
        for at, number in enumerate((len(strict[0] & strict[1]), len(strict[1]), len(strict[0]))):
            self.strict[at] += number
        return Scores.of(len(there & found), len(found), len(there)).f1 if there or found else 1.0

    def count_repair(self, tags: Sequence[str]) -> None:
        """Count a sentence whose best tags, word by word, would not have been legal."""
        self.repaired += bool(illegal_steps(tags, self.scheme))

    def report(self, seconds: float = 0.0) -> TaggingReport:
        """Return all numbers."""
        has_spans = self.scheme != "none"
        right, predicted, there = self.spans
        return TaggingReport(
            accuracy=self.right / max(1, self.words),
            words=self.words,
            sentences=self.sentences,
            unknown_words=self.unknown,
            unknown_accuracy=self.unknown_right / self.unknown if self.unknown else None,
            tags={
                tag: Scores.of(self.tags_right[tag], self.tags_predicted[tag], self.tags_there[tag])
                for tag in sorted(self.tags_there | self.tags_predicted)
            },
            span_f1=Scores.of(right.total(), predicted.total(), there.total()).f1 if has_spans else None,
            span_f1_strict=Scores.of(*self.strict).f1 if has_spans else None,
            spans={
                label: Scores.of(right[label], predicted[label], there[label])
                for label in sorted(predicted | there)
            },
            repaired=self.repaired,
            new_tags=tuple(sorted(set(self.tags_there) - self.known)) if self.known else (),
            seconds=seconds,
        )
