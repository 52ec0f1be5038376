"""Sentences of words as arrays: what taggers and classifiers read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from nextword.data.batches.batch import NOT_COUNTED, Ints, Rows
from nextword.text.lexicon import Forms, Lexicon


@dataclass(frozen=True)
class WordRows(Rows):
    """Words, padded to the longest row: entries of the lexicon, and forms (rows of ``forms``)."""

    words_BT: Ints
    forms_BT: Ints
    lengths_B: Ints
    forms: Forms  # of all rows together: it is not cut
    states_BTD: npt.NDArray[np.float32] | None = None  # features of language models

    @property
    def tokens(self) -> int:
        """Number of words."""
        return int(self.lengths_B.sum())

    def _arrays(self) -> dict[str, Any]:
        found = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "forms"}
        return {name: array for name, array in found.items() if array is not None}


@dataclass(frozen=True)
class TaggedRows(WordRows):
    """Words with their tags; `NOT_COUNTED` past a row's end and where a tag is not known."""

    tags_BT: Ints | None = None

    @property
    def tokens(self) -> int:
        """Number of tags that are learned from."""
        return int(np.count_nonzero(self.tags_BT != NOT_COUNTED))

    def blank(self) -> Self:
        """Return one row of which nothing is learned."""
        row = self.cut(slice(0, 1))
        return replace(row, tags_BT=np.full_like(row.tags_BT, NOT_COUNTED))


class Sentences:
    """Many sentences, packed one behind another, from which batches are taken."""

    def __init__(
        self, sentences: Sequence[Sequence[str]], lexicon: Lexicon, states: Sequence[Any] | None = None
    ) -> None:
        self.lengths_N = np.fromiter(map(len, sentences), np.int64, len(sentences))
        self.starts_N = np.cumsum(self.lengths_N) - self.lengths_N
        every = [word for words in sentences for word in words]
        if not every:  # nothing but empty texts: one word that no row reads
            every = [""]
        distinct = {word: at for at, word in enumerate(dict.fromkeys(every))}
        spellings = list(distinct)
        ids_F = lexicon.word_ids(spellings)
        self.form_ids = np.fromiter((distinct[word] for word in every), np.int64, len(every))
        self.word_ids = ids_F[self.form_ids] if len(every) else np.zeros(0, np.int64)
        self.forms = lexicon.forms(spellings)
        if states is None and lexicon.reader is not None:
            states = lexicon.reader(sentences)
        self.states = np.concatenate(states).astype(np.float16) if states else None

    def __len__(self) -> int:
        return len(self.lengths_N)

    def take(self, rows_B: Ints) -> WordRows:
        """Return some sentences as a batch."""
        places_BT, real_BT, lengths_B = self.places(rows_B)
        words_BT = np.where(real_BT, self.word_ids[places_BT], 0)
        forms_BT = np.where(real_BT, self.form_ids[places_BT], self.form_ids[places_BT[:, :1]])
        states_BTD = (
            None if self.states is None else (self.states[places_BT] * real_BT[..., None]).astype(np.float32)
        )
        return WordRows(words_BT, forms_BT, lengths_B, self.forms, states_BTD)

    def places(self, rows_B: Ints) -> tuple[Ints, npt.NDArray[np.bool_], Ints]:
        """Return where the words of some sentences stand, which places are real, and the lengths."""
        lengths_B = self.lengths_N[rows_B]
        t_T = np.arange(max(1, int(lengths_B.max(initial=1))))
        real_BT = t_T < lengths_B[:, None]
        places_BT = np.where(real_BT, self.starts_N[rows_B][:, None] + t_T, 0)
        return places_BT, real_BT, lengths_B
