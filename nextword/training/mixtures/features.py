"""The features before every token of a text: computed once, kept in a file, used as often as needed.

Memories are tuned on them (θ, size, temperature) without reading the text again; the same features, of
another text, are the keys of the nearest neighbours [Khandelwal et al. 2020].
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from nextword.core.contracts import START, Carrier
from nextword.core.events import Event, Progress
from nextword.data.batches.batch import Stream
from nextword.mixtures.memory import Memory
from nextword.models.network import NeuralLanguageModel

PIECE = 1 << 12  # tokens read at once
WARM = 64  # tokens read, but not kept, before a row that begins within a document
ROWS, LENGTH = 32, 512  # rows of a batch of a stored text, and their tokens

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Read:
    """A text as a network has read it, START left out."""

    keys_TD: Any  # the feature before each token, memory-mapped
    words_T: npt.NDArray[np.int64]
    logp_T: Floats  # of each token, by the network
    begins: list[int]  # where documents begin

    def documents(self, most: int) -> Iterator[slice]:
        """Yield the documents among the first ``most`` tokens."""
        ends = [*self.begins[1:], len(self.words_T)]
        for first, end in zip(self.begins, ends, strict=True):
            if first < min(end, most):
                yield slice(first, min(end, most))


def read_text(
    model: NeuralLanguageModel, ids: Any, documents: Any, path: Path
) -> Generator[Event, None, Read]:
    """Read one document after another, as `nextword eval` does; write the features to a file."""
    stream = Stream(np.asarray(ids), documents, isinstance(model, Carrier))
    count = stream.tokens
    keys_TD = np.lib.format.open_memmap(
        path, mode="w+", dtype=np.float32, shape=(max(1, count), model.network.width)
    )
    words_T, logp_T, begins, done = np.zeros(count, np.int64), np.zeros(count), [], 0
    edges = [*stream.places(stream.starts).tolist(), len(stream)]
    for first, end in pairwise(edges):
        state = model.start(1)
        begins.append(done)
        for at in range(first + 1, end, PIECE):
            piece = stream.at(np.arange(at, min(at + PIECE, end)))
            ids_1T, lengths = torch.from_numpy(piece[None]), torch.tensor([len(piece)])
            before_1TD, state = model.read(ids_1T, lengths, state)
            now = slice(done, done + len(piece))
            keys_TD[now], words_T[now] = before_1TD[0].float().numpy(), piece
            logp_T[now] = model.score_features(before_1TD, ids_1T, lengths)[0].double().numpy()
            done += len(piece)
            yield Progress(done)
    return Read(keys_TD, words_T, logp_T, begins)


def recalled(memory: Memory, read: Read, most: int) -> Floats:
    """Return log p of the first ``most`` tokens under a memory; the network's where the memory has none."""
    logp_T = read.logp_T[:most].copy()
    for document in read.documents(most):
        state = memory.start(1)
        for at in range(document.start, document.stop, PIECE):
            now = slice(at, min(at + PIECE, document.stop))
            before_1TD = torch.from_numpy(np.array(read.keys_TD[now])[None])
            ids_1T = torch.from_numpy(read.words_T[now][None])
            with torch.inference_mode():
                found, says, state = memory.score(before_1TD, ids_1T, torch.tensor([ids_1T.shape[1]]), state)
            logp_T[now] = np.where(says[0].numpy(), found[0].double().numpy(), logp_T[now])
    return logp_T


def rows_of(stream: Stream, most: int) -> Iterator[tuple[int, int, int]]:
    """Cut a stored text into rows: where reading starts, where keeping starts, where the row ends."""
    edges = [*stream.places(stream.starts).tolist(), len(stream)]
    for begin, end in pairwise(edges):
        for first in range(begin, min(end, most), LENGTH):
            yield max(begin, first - WARM), first, min(first + LENGTH, end, most)


def read_rows(
    model: NeuralLanguageModel, stream: Stream, most: int
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float32]]]:
    """Yield positions, tokens and the features before them, of the first ``most`` positions, in batches."""
    rows = sorted(rows_of(stream, most), key=lambda row: row[2] - row[0])
    for at in range(0, len(rows), ROWS):
        some = np.array(rows[at : at + ROWS])
        columns = np.arange(int((some[:, 2] - some[:, 0]).max()))
        places_BT = np.minimum(some[:, :1] + columns, len(stream) - 1)
        ids_BT = stream.at(places_BT)
        lengths_B = torch.from_numpy(some[:, 2] - some[:, 0])
        state = model.start(len(some), None, False)
        before_BTD, _ = model.read(torch.from_numpy(ids_BT), lengths_B, state)
        places_BT = some[:, :1] + columns
        kept_BT = (places_BT >= some[:, 1:2]) & (places_BT < some[:, 2:]) & (ids_BT != START)
        yield places_BT[kept_BT], ids_BT[kept_BT], before_BTD.float().numpy()[kept_BT]
