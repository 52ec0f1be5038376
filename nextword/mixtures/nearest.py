"""The nearest keys of a feature: exactly, in bounded memory, or approximately by an index.

Squared distances |q - k|² = |q|² - 2 q·k + |k|² are one product for many queries and keys; those of the
nearest are computed again by their definition, so that they do not depend on the other queries.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from nextword.core.errors import DamagedError, MissingPart

HELD = 1 << 24  # distances held at once
KEYS = 1 << 16  # keys compared at once


class Search(Protocol):
    """Finds keys near to queries."""

    def find(self, queries_QD: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return ``distance_QK``, squared, the nearest first, and ``place_QK`` among the keys."""
        ...


class ExactSearch:
    """Compare every key; keys may be mapped from a file, in float16 or float32."""

    def __init__(self, keys_MD: Any) -> None:
        self.keys_MD = keys_MD

    def find(self, queries_QD: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Compare some queries with some keys at a time and keep the best."""
        k = min(k, len(self.keys_MD))
        size = max(1, HELD // min(KEYS, max(1, len(self.keys_MD))))
        if len(queries_QD) == 0:
            return torch.zeros(0, k), torch.zeros(0, k, dtype=torch.int64)
        parts = (queries_QD[at : at + size].float() for at in range(0, len(queries_QD), size))
        found = [self._find(part_QD, k) for part_QD in parts]
        return torch.cat([d_QK for d_QK, _ in found]), torch.cat([at_QK for _, at_QK in found])

    def _find(self, queries_QD: Tensor, k: int) -> tuple[Tensor, Tensor]:
        Q = len(queries_QD)
        best_QK, at_QK = torch.full((Q, 0), torch.inf), torch.zeros(Q, 0, dtype=torch.int64)
        for first in range(0, len(self.keys_MD), KEYS):
            keys_MD = _tensor(self.keys_MD[first : first + KEYS])
            distance_QM = torch.addmm(keys_MD.pow(2).sum(dim=1), queries_QD, keys_MD.T, alpha=-2)
            near = distance_QM.topk(min(k, len(keys_MD)), dim=1, largest=False)
            best_QK = torch.cat([best_QK, near.values], dim=1)
            at_QK = torch.cat([at_QK, near.indices + first], dim=1)
            kept = best_QK.topk(min(k, best_QK.shape[1]), dim=1, largest=False).indices
            best_QK, at_QK = best_QK.gather(1, kept), at_QK.gather(1, kept)
        return in_order(queries_QD, self.keys_MD, at_QK)


class IndexSearch:
    """A graph of neighbours (HNSW, Malkov & Yashunin 2016) by the library usearch: fast, but approximate."""

    def __init__(self, keys_MD: Any, index: Any) -> None:
        self.keys_MD, self.index = keys_MD, index

    def find(self, queries_QD: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Search the index and compute the exact distances of what it finds."""
        k = min(k, len(self.keys_MD))
        if len(queries_QD) == 0:
            return torch.zeros(0, k), torch.zeros(0, k, dtype=torch.int64)
        found = self.index.search(np.ascontiguousarray(queries_QD.float().numpy()), k, threads=1)
        at_QK = np.asarray(found.keys, dtype=np.int64).reshape(len(queries_QD), -1)
        return in_order(queries_QD.float(), self.keys_MD, torch.from_numpy(at_QK))


def in_order(queries_QD: Tensor, keys_MD: Any, at_QK: Tensor) -> tuple[Tensor, Tensor]:
    """Return squared distances to these keys by their definition, the nearest first."""
    found = []
    for query_D, at_K in zip(queries_QD, at_QK, strict=True):
        found.append((_tensor(keys_MD[np.sort(at_K.numpy())]) - query_D).pow(2).sum(dim=1))
    distance_QK, sorted_QK = torch.stack(found), at_QK.sort(dim=1).values
    order_QK = distance_QK.argsort(dim=1, stable=True)
    return distance_QK.gather(1, order_QK), sorted_QK.gather(1, order_QK)


def build_index(keys_MD: Any, path: Path) -> None:
    """Write the index of some keys; takes about as long as reading the text did."""
    index = _usearch().Index(ndim=keys_MD.shape[1], metric="l2sq", dtype="f16")
    for first in range(0, len(keys_MD), KEYS):
        part_MD = np.asarray(keys_MD[first : first + KEYS], np.float32)
        index.add(np.arange(first, first + len(part_MD), dtype=np.uint64), part_MD, threads=1)
    index.save(str(path))


def open_index(keys_MD: Any, path: Path) -> IndexSearch:
    """Memory-map the index of a file."""
    usearch = _usearch()
    try:
        index = usearch.Index(ndim=keys_MD.shape[1], metric="l2sq", dtype="f16")
        index.view(str(path))
    except (RuntimeError, ValueError, OSError) as error:
        raise DamagedError(f"{path} is not a neighbour index ({error}); make the mixture again") from error
    if len(index) != len(keys_MD):
        raise DamagedError(f"{path} has {len(index):,} of {len(keys_MD):,} keys; make the mixture again")
    return IndexSearch(keys_MD, index)


def _usearch() -> Any:
    try:
        import usearch.index
    except ModuleNotFoundError as error:
        raise MissingPart("usearch", "memory", "'neighbours.search' = \"approximate\"") from error
    return usearch.index


def _tensor(part_MD: Any) -> Tensor:
    """Read a piece of the keys into memory as float32."""
    return torch.from_numpy(np.array(part_MD, dtype=np.float32))
