"""The family `ngram` for training and loading."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from nextword.core import catalog
from nextword.core.contracts import LanguageModel, Tokenizer
from nextword.core.errors import DamagedError
from nextword.core.events import Event
from nextword.core.family import Budget, Cost
from nextword.core.settings import SpreadSettings
from nextword.ngram import estimate, estimation, quantizing
from nextword.ngram.arrays import Trie
from nextword.ngram.model import NgramModel
from nextword.ngram.quantized import QuantizedTrie
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
            fitting = estimation.fit(ids, tokenizer.vocab_size, settings, closed)
            yield from quantizing.at_end(fitting, settings.bits) if settings.bits else fitting

    def estimate(self, settings: NgramSettings, size: int, text: Any) -> Cost:
        """Return what counting a text of this size in bytes takes."""
        return estimate.cost(size, text.tokenizer, settings.order, settings.bits)

    def save(self, model: LanguageModel, folder: NewRun) -> None:
        """Write the arrays of the trie, and what they mean."""
        assert isinstance(model, NgramModel)
        stored = model.trie.named() if model.quantized is None else model.quantized.arrays
        for name, array in stored.items():
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
                **({"bits": model.bits} if model.bits else {}),
            },
        )

    def load(self, folder: RunFolder, settings: NgramSettings, tokenizer: Tokenizer) -> NgramModel:
        """Memory-map the arrays, or expand quantized ones, and check that they are consistent."""
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
        quantized = _quantized(folder, facts) if facts.get("bits") else None
        trie = Trie.load(folder.path, order, fallback) if quantized is None else quantized.trie()  # type: ignore[arg-type]
        if trie.vocab_size != tokenizer.vocab_size:
            raise DamagedError(
                f"'{folder.path}' has {tokenizer.vocab_size:,} tokens in its tokenizer and "
                f"{trie.vocab_size:,} in its arrays; it mixes files of two runs, train it again"
            )
        return NgramModel(trie, smoothing, is_probability, closed, quantized)


def _quantized(folder: RunFolder, facts: Mapping[str, Any]) -> QuantizedTrie:
    """Read the arrays of few bits, each verified by its hash."""
    bits, sizes = facts["bits"], facts.get("sizes")
    if (
        bits not in range(4, 9)
        or not isinstance(sizes, list)
        or len(sizes) != facts["order"]
        or not all(isinstance(size, int) and size >= 0 for size in sizes)
    ):
        raise DamagedError(
            f"{folder.path / _FACTS} has bits {bits!r} and sizes {sizes!r}; train the run again"
        )

    def read(name: str) -> Array:
        kind = np.float32 if name.endswith(("bins.npy", "1.probs.npy")) else np.uint8
        try:
            array: Array = np.load(io.BytesIO(folder.read(name)), allow_pickle=False)
        except (ValueError, EOFError, OSError) as error:
            raise DamagedError(
                f"{folder.path / name} is not a valid array file ({error}); train the run again"
            ) from error
        if array.ndim != 1 or array.dtype != kind:
            raise DamagedError(
                f"{folder.path / name} contains {array.dtype} {array.shape}; train the run again"
            )
        return array

    return QuantizedTrie.read(bits, tuple(sizes), read)


def is_closed(tokenizer: Tokenizer, settings: NgramSettings) -> bool:
    """Return whether UNKNOWN has no probability: by setting, or because the tokenizer never needs it."""
    return tokenizer.closed if settings.vocabulary == "auto" else settings.vocabulary == "closed"


def smoothings() -> list[str]:
    """Return the names of all smoothings."""
    return catalog.names("smoothing")


FAMILY = NgramFamily()
