"""What was learned of words elsewhere: vectors for the first weights, and states of language models."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from nextword.core.errors import ConfigError
from nextword.core.events import Event, Note, Stage
from nextword.data.classes import ClassVocabulary
from nextword.data.tagged import TagVocabulary
from nextword.runs.settings import RunSettings, changed
from nextword.store.reading import RunFolder
from nextword.text.lexicon import Lexicon
from nextword.text.vectors import find_vectors, told

if TYPE_CHECKING:
    from nextword.models.words import WordInput


Vocabulary = TypeVar("Vocabulary", TagVocabulary, ClassVocabulary)


@runtime_checkable
class TakesVectors(Protocol):
    """Settings of a model with a table of words."""

    embedding: int
    vectors: str
    vectors_fixed: bool


@runtime_checkable
class TakesFeatures(Protocol):
    """Settings of a model that may read the states of language models."""

    features: str


@dataclass(frozen=True)
class GivenVectors:
    """Vectors for rows of the table of words."""

    rows_N: npt.NDArray[np.int64]
    vectors_NE: npt.NDArray[np.float32]
    fixed: bool

    def fill(self, words: WordInput) -> None:
        """Put them into a network that has its first weights."""
        import torch

        words.fill(torch.from_numpy(self.rows_N), torch.from_numpy(self.vectors_NE), self.fixed)


def given_vectors(
    settings: RunSettings, lexicon: Lexicon, extend: bool
) -> Generator[Event, None, tuple[RunSettings, Lexicon, GivenVectors | None]]:
    """Read the file of ``model.vectors``, if one is set; ``extend``: its frequent words become known, too.

    The size of a word's vector becomes that of the file, unless the user has asked for another.
    """
    model = settings.model
    if not isinstance(model, TakesVectors) or not model.vectors:
        return settings, lexicon, None
    path = model.vectors
    yield Stage("read the word vectors")
    room: Any = settings.text
    more = max(0, room.max_words - len(lexicon.words)) if extend else 0
    found = find_vectors(path, lexicon.words, lexicon.lower, more)
    if "model.embedding" in settings.named and model.embedding != found.size:
        raise ConfigError(
            f"'model.embedding' is {model.embedding}, but the vectors of {path} have {found.size} numbers; "
            "leave model.embedding out"
        )
    yield Note(told(found, sum(count > 0 for count in lexicon.counts), path))
    first = lexicon.size
    if found.new:
        lexicon = lexicon.extended(found.new)
    assert found.new_ME is not None
    rows_N = np.concatenate([found.rows_N + 1, np.arange(first, first + len(found.new))])
    vectors_NE = np.concatenate([found.vectors_NE, found.new_ME])
    made = GivenVectors(rows_N, vectors_NE, model.vectors_fixed)
    return changed(settings, {"model.embedding": found.size}), lexicon, made


def given_states(
    settings: RunSettings, vocabulary: Vocabulary, folder: RunFolder | None = None
) -> Generator[Event, None, tuple[RunSettings, Vocabulary]]:
    """Let a vocabulary read the states of the runs of ``model.features``, if any are set.

    ``folder``: the run that is opened; its language models may also stand beside it.
    """
    if not isinstance(settings.model, TakesFeatures) or not settings.model.features:
        return settings, vocabulary
    from nextword.tasks.word_states import with_states

    return (yield from with_states(settings, vocabulary, None if folder is None else folder.path))
