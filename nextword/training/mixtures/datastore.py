"""The stored text of a kNN-LM: a key and a word for every place, in files that are mapped.

Khandelwal et al. 2020. The key is the network's feature before the word. To be quick, the text is cut into
rows that are read side by side; each begins some words earlier, so that the network has read something when
keys are taken.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from nextword.core.contracts import Carrier
from nextword.core.errors import ConfigError, DataError
from nextword.core.events import Event, Progress, Stage
from nextword.data.batches.stream import Stream
from nextword.mixtures.nearest import build_index
from nextword.mixtures.neighbours import INDEX, KEYS, WORDS, NeighboursSettings
from nextword.models.network import NeuralLanguageModel
from nextword.store.writing import NewRun
from nextword.training.mixtures.features import read_rows

_LARGEST = {"float16": 65504.0, "float32": 3.4e38}


def write_store(
    model: NeuralLanguageModel, ids: Any, documents: Any, settings: NeighboursSettings, folder: NewRun
) -> Generator[Event, None, None]:
    """Keys and words of a text; `NewRun` puts them in place together."""
    stream = Stream(np.asarray(ids), documents, isinstance(model, Carrier))
    starts = stream.places(stream.starts)
    most = _places(len(stream), starts, settings.words)
    count = most - int(np.searchsorted(starts, most))
    if count <= 0:
        raise DataError("the text of the neighbours has no word; give a text with words")
    width = model.network.width
    folder.need(count * (width * np.dtype(settings.numbers).itemsize + 4))
    yield Stage("store the neighbours", count, "words")
    keys_MD = np.lib.format.open_memmap(
        folder.path / KEYS, mode="w+", dtype=settings.numbers, shape=(count, width)
    )
    words_M, done = np.zeros(count, np.int32), 0
    for places, words, features in read_rows(model, stream, most):
        if np.abs(features).max(initial=0.0) > _LARGEST[settings.numbers]:
            raise ConfigError(
                "'neighbours.numbers' is float16, and the features of this model are too large for it; "
                "add --set neighbours.numbers=float32"
            )
        at = places - np.searchsorted(starts, places, side="right")
        keys_MD[at], words_M[at] = features, words
        done += len(at)
        yield Progress(done)
    keys_MD.flush()
    folder.write_array(WORDS, words_M)
    if settings.search == "approximate":
        yield Stage("index the neighbours")
        build_index(keys_MD, folder.path / INDEX)


def _places(length: int, starts: Any, words: int) -> int:
    """So many places of the stream hold the words that are wanted (0: all)."""
    if not words:
        return length
    real = np.ones(length, bool)
    real[starts] = False
    found = np.flatnonzero(real)
    return int(found[min(words, len(found)) - 1]) + 1 if len(found) else length
