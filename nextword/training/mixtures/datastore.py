"""The datastore of a kNN-LM: a key and a token for every position, in memory-mapped files.

Khandelwal et al. 2020. The key is the network's feature before the token. For speed, the text is read in
batches of rows; each row starts some tokens early, so that the network has some context when keys are stored.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from nextword.core.contracts import Carrier
from nextword.core.errors import ConfigError, DataError
from nextword.core.events import Event, Progress, Stage
from nextword.data.batches.batch import Stream
from nextword.mixtures.nearest import build_index
from nextword.mixtures.neighbours import INDEX, KEYS, WORDS, NeighboursSettings
from nextword.models.network import NeuralLanguageModel
from nextword.store.writing import NewRun
from nextword.training.mixtures.features import read_rows

_LARGEST = {"float16": 65504.0, "float32": 3.4e38}


def write_store(
    model: NeuralLanguageModel, ids: Any, documents: Any, settings: NeighboursSettings, folder: NewRun
) -> Generator[Event, None, None]:
    """Write keys and tokens of a text; `NewRun` puts the files in place together."""
    stream = Stream(np.asarray(ids), documents, isinstance(model, Carrier))
    starts = stream.places(stream.starts)
    most = _places(len(stream), starts, settings.words)
    count = most - int(np.searchsorted(starts, most))
    if count <= 0:
        raise DataError("the text of --neighbours has no tokens; give one that is not empty")
    width = model.network.width
    folder.need(count * (width * np.dtype(settings.numbers).itemsize + 4))
    yield Stage("store the neighbours", count, "tokens")
    keys_MD = np.lib.format.open_memmap(
        folder.path / KEYS, mode="w+", dtype=settings.numbers, shape=(count, width)
    )
    words_M, done = np.zeros(count, np.int32), 0
    for places, words, features in read_rows(model, stream, most):
        if np.abs(features).max(initial=0.0) > _LARGEST[settings.numbers]:
            raise ConfigError(
                "'neighbours.numbers' is float16, but the features of this model are too large for it; "
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
    """Return how many positions of the stream have this many tokens (0: all)."""
    if not words:
        return length
    real = np.ones(length, bool)
    real[starts] = False
    found = np.flatnonzero(real)
    return int(found[min(words, len(found)) - 1]) + 1 if len(found) else length
