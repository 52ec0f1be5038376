"""Room on a disk is asked where the system knows it."""

from __future__ import annotations

from pathlib import Path

from nextword.store import disk


def test_room_is_only_asked_where_the_system_knows(tmp_path: Path) -> None:
    assert disk.free_bytes(tmp_path / "nowhere") is None
    disk.check_space(tmp_path / "new" / "run", 1)
