"""What trained language models know at each word, as features of taggers and classifiers.

A forward model has read a word and all before it, a backward one (``data.direction=backward``) the word and
all after it: together they see the whole sentence (Peters et al. 2018, Akbik et al. 2018). They learn from
text without labels, of which there is more.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from nextword.core.contracts import END, UNKNOWN, NetworkModel, Tokenizer
from nextword.core.contracts import Reader as FeatureReader
from nextword.core.errors import ConfigError, RunError
from nextword.core.events import Event, Note, Stage
from nextword.data.classes import ClassVocabulary
from nextword.data.tagged import TagVocabulary
from nextword.runs import saved
from nextword.runs.settings import RunSettings, changed
from nextword.text.backward import BackwardTokenizer

_POSITIONS = 8192  # tokens that are read at once
_CACHED = 200_000  # words whose tokens are remembered
States = npt.NDArray[np.float16]


Vocabulary = TypeVar("Vocabulary", TagVocabulary, ClassVocabulary)


@dataclass
class Reader:
    """One language model that reads sentences."""

    model: Any  # a network with `contracts.Reader`
    tokenizer: Tokenizer
    _ids: dict[str, list[int]] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """Return the size of a state."""
        width: int = self.model.network.width
        return width

    @property
    def is_backward(self) -> bool:
        """Tell whether it reads from the end."""
        return isinstance(self.tokenizer, BackwardTokenizer)

    def tokens(self, words: Sequence[str]) -> tuple[list[int], list[int]]:
        """Return the tokens of a sentence in the order of reading, and which of them ends each word."""
        parts = [self._tokens_of(word if at == 0 else f" {word}") for at, word in enumerate(words)]
        ids: list[int] = []
        ends: list[int] = []
        for part in reversed(parts) if self.is_backward else parts:
            ids += part
            ends.append(len(ids) - 1)
        return ids, ends[::-1] if self.is_backward else ends

    def _tokens_of(self, text: str) -> list[int]:
        found = self._ids.get(text)
        if found is None:
            found = [int(index) for index in self.tokenizer.encode(text)] or [UNKNOWN]
            if len(self._ids) < _CACHED:
                self._ids[text] = found
        return found

    def states(self, sentences: Sequence[Sequence[str]]) -> list[States]:
        """Return the state after each word of sentences that have words."""
        read = [self.tokens(words) for words in sentences]
        found: list[States] = [np.zeros((0, self.width), np.float16)] * len(sentences)
        order = sorted(range(len(read)), key=lambda row: -len(read[row][0]))
        while order:
            longest = len(read[order[0]][0]) + 1
            rows, order = order[: max(1, _POSITIONS // longest)], order[max(1, _POSITIONS // longest) :]
            ids_BT = np.full((len(rows), longest), END, np.int64)
            for ids_T, row in zip(ids_BT, rows, strict=True):
                ids_T[: len(read[row][0])] = read[row][0]
            lengths_B = np.array([len(read[row][0]) + 1 for row in rows])
            before_BTD, _ = self.model.read(ids_BT, lengths_B)  # the state after a token is before the next
            for at, row in enumerate(rows):
                ends = torch.tensor(read[row][1], device=before_BTD.device)
                found[row] = before_BTD[at, ends + 1].half().cpu().numpy()
        return found


@dataclass(frozen=True)
class WordStates:
    """The states of all models side by side; a sentence that occurs twice is read once."""

    readers: tuple[Reader, ...]

    @property
    def width(self) -> int:
        """Return the width of a word's features."""
        return sum(reader.width for reader in self.readers)

    def __call__(self, sentences: Sequence[Sequence[str]]) -> list[States]:
        """Return ``states_ND`` of each sentence."""
        keys = [tuple(words) for words in sentences]
        distinct = [key for key in dict.fromkeys(keys) if key]
        parts = [reader.states(distinct) for reader in self.readers]
        found = {key: np.concatenate(each, axis=1) for key, *each in zip(distinct, *parts, strict=True)}
        found[()] = np.zeros((0, self.width), np.float16)
        return [found[key] for key in keys]

    def __deepcopy__(self, memo: Any) -> Self:
        return self  # its networks do not learn


def with_states(
    settings: RunSettings, vocabulary: Vocabulary, folder: Path | None = None
) -> Generator[Event, None, tuple[RunSettings, Vocabulary]]:
    """Open the runs of ``model.features`` and let the vocabulary read their states.

    The paths become absolute. Of a vocabulary that is saved, the runs must be those of its training.
    """
    model: Any = settings.model
    yield Stage("open the language models")
    found, names, prints = _opened(model.features, vocabulary.lexicon.features, folder)
    lexicon = replace(vocabulary.lexicon, features=prints, reader=found)
    yield Note(f"each word has {found.width:,} features of {' and '.join(names)}")
    made = replace(vocabulary, lexicon=lexicon, states=found.width)
    return changed(settings, {"model.features": ",".join(names)}), made


def _opened(
    features: str, expected: tuple[str, ...], folder: Path | None
) -> tuple[WordStates, list[str], tuple[str, ...]]:
    names = [name.strip() for name in features.split(",") if name.strip()]
    if expected and len(expected) != len(names):
        raise ConfigError(
            f"'model.features' names {len(names)} runs, but the model was trained with {len(expected)}; "
            "train it again"
        )
    readers, paths, prints = [], [], []
    for at, name in enumerate(names):
        trained = _loaded(name, folder)
        assert trained.folder is not None
        if not isinstance(trained.model, NetworkModel) or not isinstance(trained.model, FeatureReader):
            raise ConfigError(
                f"'model.features' names '{name}', which is not a neural language model and has no states; "
                "train one with: nextword train TEXT --model lstm"
            )
        prints.append(saved.fingerprint(trained.folder))
        if expected and prints[at] != expected[at]:
            raise RunError(
                f"'{trained.folder.path}', whose states are features of this model, is not the run it was "
                "trained with; put that run back, or train the model again"
            )
        readers.append(Reader(trained.model, trained.vocabulary))
        paths.append(str(trained.folder.path.resolve()))
    return WordStates(tuple(readers)), paths, tuple(prints)


def _loaded(name: str, folder: Path | None) -> saved.Trained:
    """Load a run by its name, or the one of this name beside the folder of the model that needs it."""
    beside = None if folder is None else folder.resolve().parent / Path(name).name
    if not Path(name).is_dir() and beside is not None and beside.is_dir():
        return saved.load(beside)
    try:
        return saved.load(name)
    except RunError as error:
        if folder is None:
            raise
        raise RunError(
            f"the states of '{name}' are features of this model, and that run cannot be opened ({error}); "
            "put it back, or train the model again"
        ) from error
