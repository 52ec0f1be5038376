"""What a tagger's run knows: words, characters, tags and their scheme."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt

from nextword.core.errors import DamagedError
from nextword.data import spans
from nextword.data.batches.batch import NOT_COUNTED, Ints
from nextword.data.batches.buckets import Buckets
from nextword.data.batches.words import Sentences, TaggedRows
from nextword.text.lexicon import Lexicon

_SCHEMES = ("none", "bio", "iob1", "bioes", "bilou")


@dataclass(frozen=True)
class TagVocabulary:
    """Words and characters, tags in order of frequency, how they mark spans, the width of features."""

    lexicon: Lexicon
    tags: tuple[str, ...]
    scheme: spans.Name = "none"
    states: int = 0  # features of language models for each word
    _ids: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_ids", {tag: at for at, tag in enumerate(self.tags)})

    def tag_ids(self, tags: Iterable[str]) -> list[int]:
        """Look up tags; `NOT_COUNTED` for one that training has not seen."""
        return [self._ids.get(tag, NOT_COUNTED) for tag in tags]

    def legal(self) -> tuple[npt.NDArray[np.bool_], ...]:
        """Return which tags may follow which, begin and end."""
        return spans.legal(self.tags, self.scheme)

    def to_json(self) -> dict[str, Any]:
        """Return what ``vocabulary.json`` holds."""
        return {
            "tags": list(self.tags), "scheme": self.scheme, "states": self.states, **self.lexicon.to_json(),
        }  # fmt: skip

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Undo `to_json`."""
        try:
            tags, scheme, states = tuple(map(str, value["tags"])), value["scheme"], int(value["states"])
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedError(f"the list of tags is damaged ({error}); train the run again") from error
        if scheme not in _SCHEMES or len(set(tags)) != len(tags) or not tags:
            raise DamagedError("the list of tags is damaged; train the run again")
        return cls(Lexicon.from_json(value), tags, cast(spans.Name, scheme), states)


class TaggedSentences:
    """Sentences and their tags as arrays."""

    def __init__(
        self,
        words: Sequence[Sequence[str]],
        tags: Sequence[Sequence[str]],
        vocabulary: TagVocabulary,
        states: Sequence[Any] | None = None,
    ) -> None:
        self.words, self.tags = words, tags
        self.sentences = Sentences(words, vocabulary.lexicon, states)
        flat = [tag for each in tags for tag in vocabulary.tag_ids(each)]
        self.tag_ids = np.fromiter(flat, np.int64, len(flat))

    def __len__(self) -> int:
        return len(self.sentences)

    def take(self, rows_B: Ints) -> TaggedRows:
        """Return some sentences as a batch."""
        rows = self.sentences.take(rows_B)
        places_BT, real_BT, _ = self.sentences.places(rows_B)
        tags_BT = np.where(real_BT, self.tag_ids[places_BT], NOT_COUNTED)
        return TaggedRows(rows.words_BT, rows.forms_BT, rows.lengths_B, rows.forms, rows.states_BTD, tags_BT)


class TaggedBatches:
    """Batches of sentences of similar length."""

    def __init__(self, examples: TaggedSentences, positions: int, seed: int) -> None:
        self.examples = examples
        self.buckets = Buckets(examples.sentences.lengths_N, positions, seed)
        self.per_epoch = self.buckets.per_epoch
        self.tokens = int(np.count_nonzero(examples.tag_ids != NOT_COUNTED))

    def batches(self, epoch: int, start: int = 0) -> Any:
        """Yield the batches of an epoch, from the one of this index on."""
        for rows_B in self.buckets.rows(epoch, start):
            yield self.examples.take(rows_B)


def with_states(vocabulary: TagVocabulary, states: int) -> TagVocabulary:
    """Return the vocabulary of a tagger that reads features of this width."""
    return replace(vocabulary, states=states)
