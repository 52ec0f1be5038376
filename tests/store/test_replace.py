"""Folders and locks that replace a run: what each file system can do, and what it refuses."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from run_folders import fail_with, write

from nextword.store import replace
from nextword.system import disk


def test_other_errors_of_locking_are_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replace.fcntl, "flock", fail_with(errno.EIO))
    with pytest.raises(OSError, match="Input/output error"):
        write(tmp_path / "run", 1)


@pytest.mark.parametrize("library", [lambda *a, **k: object(), fail_with(errno.ENOENT)])
def test_without_the_system_call_folders_are_not_exchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: object
) -> None:
    monkeypatch.setattr(replace.ctypes, "CDLL", library)
    assert replace.exchange(tmp_path / "a", tmp_path / "b") is False
    disk._sync_file_range.cache_clear()
    disk.begin_writeback(0, 0, 0)
    disk._sync_file_range.cache_clear()


def test_exchanging_what_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        replace.exchange(tmp_path / "a", tmp_path / "b")
