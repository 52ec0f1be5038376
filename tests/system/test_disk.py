"""Files written whole or not at all, and free space that is asked where the system knows it."""

import errno
import os
import threading
from pathlib import Path

import pytest
from run_folders import fail_with

from nextword.system.disk import (
    check_space,
    free_bytes,
    fsync_folder,
    remove_leftovers,
    write_atomically,
    writing,
)


def test_a_file_is_written_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_atomically(path, "one ä")
    assert path.read_text(encoding="utf-8") == "one ä"
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_the_target_is_untouched_until_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with writing(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"


def test_an_exception_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")

    def interrupted() -> None:
        with writing(path) as file:
            file.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_bytes_then_name_then_folder_reach_the_disk_in_this_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    fsync, replace = os.fsync, os.replace

    def traced_fsync(descriptor: int) -> None:
        calls.append("folder" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file")
        fsync(descriptor)

    def traced_replace(source: str, target: str) -> None:
        calls.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", traced_fsync)
    monkeypatch.setattr(os, "replace", traced_replace)
    write_atomically(tmp_path / "a", b"x")
    assert calls == ["file", "rename", "folder"]


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_atomically(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_the_mode_is_what_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write_atomically(tmp_path / "open", b"")
        write_atomically(tmp_path / "closed", b"", mode=0o600)
    finally:
        os.umask(before)
    assert (tmp_path / "open").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "closed").stat().st_mode & 0o777 == 0o600


def test_a_pipe_is_written_as_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    write_atomically(pipe, b"through")
    reader.join(timeout=10)
    assert found == [b"through"]
    assert pipe.is_fifo()


def test_leftovers_of_a_killed_writer_are_removed_and_other_files_stay(tmp_path: Path) -> None:
    for name in (".out.tmp-1-ab", ".out2.tmp-1-ab", "out"):
        (tmp_path / name).write_bytes(b"x")
    remove_leftovers(tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == [".out2.tmp-1-ab", "out"]


def test_a_folder_that_cannot_be_synced_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", fail_with(errno.EIO))
    with pytest.raises(OSError, match="Input/output error"):
        fsync_folder(tmp_path)


def test_room_is_only_asked_where_the_system_knows(tmp_path: Path) -> None:
    assert free_bytes(tmp_path / "nowhere") is None
    check_space(tmp_path / "new" / "run", 1)
