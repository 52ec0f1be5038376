"""Mapped arrays within a limit: what has been passed is released before what is searched."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nextword.ngram.limited import mapped

SIZE = 4_000_000  # bytes of an array


def test_arrays_that_were_passed_are_released_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    released: list[list[object]] = []
    monkeypatch.setattr(mapped, "_release", lambda arrays: released.append(list(arrays)))
    for name in ("passed", "searched"):
        np.save(tmp_path / f"{name}.npy", np.zeros(10))
    maps = mapped.Maps(limit=100)
    passed = maps.open(tmp_path / "passed.npy")
    searched = maps.open(tmp_path / "searched.npy", searched=True)
    sizes = iter([90])
    monkeypatch.setattr(mapped, "resident", lambda: next(sizes))
    maps.tidy()
    assert released == []  # below the limit
    sizes = iter([110, 90])
    maps.tidy()
    assert [array is passed for (array,) in released] == [True]
    released.clear()
    sizes = iter([110, 110])
    maps.tidy()
    assert [array is passed or array is searched for (array,) in released] == [True, True]


def test_released_pages_are_still_in_the_file(tmp_path: Path) -> None:
    maps = mapped.Maps(limit=0)
    array = maps.create(tmp_path / "numbers.npy", np.uint32, SIZE // 4)
    array[:] = np.arange(len(array))
    maps.tidy()
    assert int(array[-1]) == len(array) - 1
    maps.close()
    assert int(np.load(tmp_path / "numbers.npy")[-1]) == SIZE // 4 - 1
