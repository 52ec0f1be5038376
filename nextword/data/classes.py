"""What a classifier's run knows: words, characters and labels; texts and labels as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from nextword.core.errors import DamagedError
from nextword.data.batches.batch import NOT_COUNTED, Ints
from nextword.data.batches.buckets import Buckets
from nextword.data.batches.words import Sentences, WordRows
from nextword.text.lexicon import Lexicon
from nextword.text.splitter import split


@dataclass(frozen=True)
class ClassVocabulary:
    """Words and characters, the labels in order of frequency, and whether a text may have several."""

    lexicon: Lexicon
    labels: tuple[str, ...]
    several: bool = False
    states: int = 0  # features of language models for each word
    longest: int = 400  # words of a text that are read
    _ids: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_ids", {label: at for at, label in enumerate(self.labels)})

    def words_of(self, text: str) -> list[str]:
        """Split a text into the words that are read."""
        return split(text)[: self.longest]

    def label_id(self, label: str) -> int:
        """Return the number of a label; `NOT_COUNTED` for one that training has not seen."""
        return self._ids.get(label, NOT_COUNTED)

    def labels_of(self, label: str) -> tuple[str, ...]:
        """Take a label as it is written in a file apart."""
        if not self.several:
            return (label,)
        return tuple(dict.fromkeys(part.strip() for part in label.split(",") if part.strip()))

    def targets(self, labels: Sequence[Sequence[str]]) -> npt.NDArray[Any]:
        """Return the numbers of the labels, ``labels_N``, or ``labels_NK`` of 0 and 1 for several."""
        if not self.several:
            return np.array([self.label_id(each[0]) for each in labels], np.int64)
        found_NK = np.zeros((len(labels), len(self.labels)), np.float32)
        for row_K, each in zip(found_NK, labels, strict=True):
            known = [at for at in map(self.label_id, each) if at != NOT_COUNTED]
            row_K[known] = 1.0
        return found_NK

    def to_json(self) -> dict[str, Any]:
        """Return what ``vocabulary.json`` holds."""
        return {
            "labels": list(self.labels), "several": self.several, "states": self.states,
            "longest": self.longest,
            **self.lexicon.to_json(),
        }  # fmt: skip

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Undo `to_json`."""
        try:
            labels, several = tuple(map(str, value["labels"])), bool(value["several"])
            states, longest = int(value["states"]), int(value["longest"])
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedError(f"the list of labels is damaged ({error}); train the run again") from error
        if len(set(labels)) != len(labels) or not labels:
            raise DamagedError("the list of labels is damaged; train the run again")
        return cls(Lexicon.from_json(value), labels, several, states, longest)


@dataclass(frozen=True)
class LabelledRows(WordRows):
    """Texts with their labels: ``labels_B``, or ``labels_BK`` of 0 and 1 where there may be several."""

    labels: Any = None

    @property
    def tokens(self) -> int:
        """Number of texts that are learned from."""
        if self.labels.ndim == 2:
            return int((self.labels[:, :1] != NOT_COUNTED).sum())
        return int(np.count_nonzero(self.labels != NOT_COUNTED))

    def blank(self) -> Self:
        """Return one row of which nothing is learned."""
        row = self.cut(slice(0, 1))
        return replace(row, labels=np.full_like(row.labels, NOT_COUNTED))


class LabelledTexts:
    """Texts and their labels as arrays."""

    def __init__(
        self,
        texts: Sequence[str],
        labels: Sequence[Sequence[str]],
        vocabulary: ClassVocabulary,
        words: Sequence[Sequence[str]] | None = None,
        states: Sequence[Any] | None = None,
    ) -> None:
        self.texts, self.labels, self.vocabulary, self._states = texts, labels, vocabulary, states
        if words is not None:
            self.words = words
        self.targets = vocabulary.targets(labels)

    @cached_property
    def words(self) -> Sequence[Sequence[str]]:
        """Return the words of each text: split when a network first needs them."""
        return [self.vocabulary.words_of(text) for text in self.texts]

    @cached_property
    def sentences(self) -> Sentences:
        """Return the words as arrays."""
        return Sentences(self.words, self.vocabulary.lexicon, self._states)

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, rows_B: Ints) -> LabelledRows:
        """Return some texts as a batch."""
        rows = self.sentences.take(rows_B)
        return LabelledRows(
            rows.words_BT, rows.forms_BT, rows.lengths_B, rows.forms, rows.states_BTD, self.targets[rows_B]
        )


class LabelledBatches:
    """Batches of texts of similar length: at most so many texts and so many positions."""

    def __init__(self, examples: LabelledTexts, positions: int, seed: int) -> None:
        self.examples = examples
        self.buckets = Buckets(examples.sentences.lengths_N, positions, seed)
        self.per_epoch = self.buckets.per_epoch
        self.tokens = len(examples)

    def batches(self, epoch: int, start: int = 0) -> Iterator[LabelledRows]:
        """Yield the batches of an epoch, from the one of this index on."""
        for rows_B in self.buckets.rows(epoch, start):
            yield self.examples.take(rows_B)
