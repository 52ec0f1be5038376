"""Nearest neighbours: exact, by an index, and where the package is missing."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

from nextword.core.errors import DamagedError, MissingPart
from nextword.mixtures.nearest import ExactSearch, build_index, open_index


def test_more_neighbours_than_keys_are_all_of_them():
    keys = np.eye(3, dtype=np.float32)
    found, at = ExactSearch(keys).find(torch.zeros(2, 3), 10)
    assert found.shape == at.shape == (2, 3)


@pytest.mark.needs("usearch")
def test_an_index_finds_nearly_the_same_with_the_same_distances(tmp_path):
    rng = np.random.default_rng(0)
    keys, queries = rng.normal(size=(900, 8)).astype(np.float16), torch.from_numpy(rng.normal(size=(40, 8)))
    build_index(keys, tmp_path / "index")
    found = open_index(keys, tmp_path / "index")
    distance_QK, at_QK = found.find(queries, 10)
    expected_QK, exact_QK = ExactSearch(keys).find(queries, 10)
    same = [len(set(a.tolist()) & set(b.tolist())) for a, b in zip(at_QK, exact_QK, strict=True)]
    assert np.mean(same) > 9
    torch.testing.assert_close(distance_QK[:, 0], expected_QK[:, 0])
    with pytest.raises(DamagedError, match="of 899 keys"):
        open_index(keys[:-1], tmp_path / "index")
    (tmp_path / "index").write_bytes(b"no index")
    with pytest.raises(DamagedError, match="is not a neighbour index"):
        open_index(keys, tmp_path / "index")


def test_without_the_package_the_line_to_run_is_told(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "usearch", None)
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    with pytest.raises(MissingPart, match=r"pip install 'nextword\[memory\]'"):
        build_index(np.zeros((3, 2), np.float32), tmp_path / "index")
