"""Labelled texts on their way to a classifier: files, held-out texts, words and labels, checks, arrays."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from pydantic import Field

from nextword.core.errors import DataError
from nextword.core.family import CompositeFamily, CountFamily
from nextword.data.classes import ClassVocabulary, LabelledTexts
from nextword.data.encode import DataFacts
from nextword.data.labelled import Labelled, LabelledText
from nextword.data.part import Part
from nextword.runs.settings import RunSettings, family_of
from nextword.tasks.vectors import GivenVectors
from nextword.text.lexicon import Lexicon, LexiconSettings

_LEAST_HELD_OUT = 10  # texts


class ClassifyTextSettings(LexiconSettings):
    """Which words are known, and how much of a text is read."""

    longest: int = Field(400, ge=1, le=1_000_000, description="words of a text that are read")


@dataclass(frozen=True)
class LabelledFiles:
    """The files of a classifier."""

    text: LabelledText | Part[Labelled]
    valid: LabelledText | None = None

    @property
    def size(self) -> int | None:
        """Return the bytes of the training files."""
        return self.text.size


@dataclass(frozen=True)
class PreparedClasses:
    """Labelled texts as arrays, with what turns them into numbers."""

    vocabulary: ClassVocabulary
    facts: DataFacts
    learned: LabelledTexts
    measured: LabelledTexts | None
    was_held_out: bool = False  # whether they are a part of the files, not files of their own
    vectors: GivenVectors | None = None

    def digest(self) -> str:
        """Return the SHA-256 of what is learned from."""
        return self.facts.sha256


def hold_out(examples: list[Labelled], share: float) -> tuple[list[Labelled], list[Labelled]]:
    """Hold out every n-th text of each label, and of rare ones together; every label is learned."""
    if not share or len(examples) * share < _LEAST_HELD_OUT:
        return examples, []
    every = max(2, round(1 / share))
    sizes = Counter(each.label for each in examples)
    seen: Counter[str | None] = Counter()
    is_known: set[str] = set()
    learned: list[Labelled] = []
    measured: list[Labelled] = []
    for each in examples:
        counted = each.label if sizes[each.label] >= every else None  # None: rare labels
        seen[counted] += 1
        if seen[counted] >= every and each.label in is_known:
            measured.append(each)
            seen[counted] = 0
        else:
            learned.append(each)
            is_known.add(each.label)
    return learned, measured


def make_vocabulary(
    examples: list[Labelled], settings: RunSettings, several: bool, labels_of: Any
) -> ClassVocabulary:
    """Collect the words and labels of the texts."""
    from nextword.text.splitter import split

    counts: Counter[str] = Counter()
    for each in examples:
        labels = labels_of(each.label)
        if not several and not each.label:
            raise DataError("the text has no label", each.path, each.line)
        counts.update(labels)
    if len(counts) < 2:
        only = next(iter(counts), "")
        raise DataError(
            f"all texts have the label '{only}', so there is nothing to learn; choose another column with "
            "--set data.label=NAME",
            examples[0].path,
        )
    if len(counts) > 20 and len(counts) > 0.5 * len(examples):
        raise DataError(
            f"there are {len(counts):,} different labels of {len(examples):,} texts, which looks like the "
            "wrong column; choose another with --set data.label=NAME",
            examples[0].path,
        )
    text = cast(ClassifyTextSettings, settings.text)
    read = examples if _reads_words(settings) else []
    lexicon = Lexicon.of((split(each.text)[: text.longest] for each in read), text)
    labels = tuple(sorted(counts, key=lambda label: (-counts[label], label)))
    return ClassVocabulary(lexicon, labels, several, 0, text.longest)


def _reads_words(settings: RunSettings) -> bool:
    """Return whether the family reads words of a list, as networks do; the others hash them."""
    family = settings.find_family()
    names = family.parts(settings.model) if isinstance(family, CompositeFamily) else (settings.family,)
    return not all(isinstance(family_of(settings.task, name), CountFamily) for name in names)


def word_lengths(examples: LabelledTexts, settings: RunSettings) -> Any:
    """Return the words of each text: for a family that splits texts itself, those between spaces."""
    if _reads_words(settings):
        return examples.sentences.lengths_N
    return np.array([len(text.split()) for text in examples.texts], np.int64)


def check_known(examples: list[Labelled], vocabulary: ClassVocabulary) -> None:
    """Refuse texts without labels, and files none of whose labels the classifier knows."""
    found: set[str] = set()
    for each in examples:
        if not each.label and not vocabulary.several:
            raise DataError(
                "the text has no label; classify texts without labels with: nextword predict RUN FILE",
                each.path,
                each.line,
            )
        found.update(vocabulary.labels_of(each.label))
    if not found & set(vocabulary.labels):
        shown = ", ".join(f"'{label[:40]}'" for label in sorted(found)[:3])
        known = ", ".join(vocabulary.labels[:8])
        raise DataError(
            f"none of the labels here ({shown}) was seen in training ({known}); choose the column of the "
            "label with --set data.label=NAME",
            examples[0].path,
            examples[0].line,
        )


def to_arrays(examples: list[Labelled], vocabulary: ClassVocabulary) -> LabelledTexts:
    """Turn texts and labels into numbers."""
    return LabelledTexts(
        [each.text for each in examples], [vocabulary.labels_of(each.label) for each in examples], vocabulary
    )
