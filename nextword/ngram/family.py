"""The family `ngram` for training and loading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from nextword.core import catalog
from nextword.core.contracts import LanguageModel, Tokenizer
from nextword.core.errors import DamagedError
from nextword.core.events import Event
from nextword.core.family import Budget, Cost
from nextword.core.settings import SpreadSettings
from nextword.ngram import estimate, estimation
from nextword.ngram.arrays import Trie
from nextword.ngram.model import NgramModel
from nextword.ngram.settings import NgramSettings
from nextword.store.reading import RunFolder
from nextword.store.writing import NewRun

Array = np.ndarray[Any, np.dtype[Any]]
_FACTS = "ngram.json"


class NgramFamily:
    """n-gram models of any order and smoothing."""

    name = "ngram"
    task = "lm"
    Settings = NgramSettings
    Training = SpreadSettings  # its counting can be spread over a cluster
    defaults: Mapping[str, Any] = {}
    default_tokenizer = "words"
    holds_text = True
    measures = False

    def fit(
        self, ids: Array, tokenizer: Tokenizer, settings: NgramSettings, budget: Budget
    ) -> Iterator[Event]:
        """Count and smooth; with ``budget.memory`` or on a cluster, by buckets on disk."""
        closed = is_closed(tokenizer, settings)
        if budget.memory or budget.engine != "local":
            from nextword.ngram.limited import buckets

            yield from buckets.fit(ids, tokenizer.vocab_size, settings, closed, budget)
        else:
            yield from estimation.fit(ids, tokenizer.vocab_size, settings, closed)

    def estimate(self, settings: NgramSettings, size: int, text: Any) -> Cost:
        """Return what counting a text of this size in bytes takes."""
        return estimate.cost(size, text.tokenizer, settings.order)

    def save(self, model: LanguageModel, folder: NewRun) -> None:
        """Write the arrays of the trie, and what they mean."""
        assert isinstance(model, NgramModel)
        for name, array in model.trie.named().items():
            if not (folder.path / name).exists():  # buckets write theirs as they go
                folder.write_array(name, array, wait=False)
        folder.write_json(
            _FACTS,
            {
                "order": model.order,
                "fallback": model.trie.fallback,
                "smoothing": model.smoothing,
                "probability": model.is_probability,
                "closed": model.closed,
                "sizes": model.trie.sizes,
            },
        )

    def load(self, folder: RunFolder, settings: NgramSettings, tokenizer: Tokenizer) -> NgramModel:
        """Memory-map the arrays and check that they are consistent."""
        facts = folder.read_json(_FACTS)
        try:
            order, fallback, closed = int(facts["order"]), str(facts["fallback"]), bool(facts["closed"])
            smoothing, is_probability = str(facts["smoothing"]), bool(facts["probability"])
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedError(
                f"{folder.path / _FACTS} does not describe the arrays; train the run again"
            ) from error
        if not 1 <= order <= 255 or fallback not in ("shorter", "unigram", "uniform", "none"):
            raise DamagedError(
                f"{folder.path / _FACTS} has order {order}, fallback '{fallback}'; train the run again"
            )
        trie = Trie.load(folder.path, order, fallback)  # type: ignore[arg-type]
        if trie.vocab_size != tokenizer.vocab_size:
            raise DamagedError(
                f"'{folder.path}' has {tokenizer.vocab_size:,} tokens in its tokenizer and "
                f"{trie.vocab_size:,} in its arrays; it mixes files of two runs, train it again"
            )
        return NgramModel(trie, smoothing, is_probability, closed)


def is_closed(tokenizer: Tokenizer, settings: NgramSettings) -> bool:
    """Return whether UNKNOWN has no probability: by setting, or because the tokenizer never needs it."""
    return tokenizer.closed if settings.vocabulary == "auto" else settings.vocabulary == "closed"


def smoothings() -> list[str]:
    """Return the names of all smoothings."""
    return catalog.names("smoothing")


FAMILY = NgramFamily()
