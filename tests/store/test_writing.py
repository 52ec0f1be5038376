"""A run is written whole or not at all, whoever stops it. [reliability: faults 1-4, 14-24, 27]"""

from __future__ import annotations

import errno
import os
import random
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from run_folders import fail_with, hidden, version_of, write, write_half
from small_disks import small_disk

from nextword.core.errors import RunError
from nextword.store import replace
from nextword.store.manifest import MANIFEST
from nextword.store.names import resolve
from nextword.store.reading import open_run
from nextword.store.writing import check_target, new_run
from nextword.system import disk


def _modes(folder: Path) -> set[str]:
    paths = [folder, *folder.rglob("*")]
    return {f"{'folder' if path.is_dir() else 'file'} {path.stat().st_mode & 0o777:o}" for path in paths}


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_private_run_is_readable_by_its_owner_only(tmp_path: Path, overwrite: bool) -> None:
    before = os.umask(0o022)
    try:
        if overwrite:
            write(tmp_path / "run")
        with new_run(tmp_path / "run", overwrite=overwrite) as folder:
            assert folder.path.stat().st_mode & 0o777 == 0o700  # also before it is complete
            folder.private = True
            folder.write("config.toml", "x")
            folder.write("part-1/config.toml", "x")
            (folder.path / "by-hand.npy").write_bytes(b"x")
        assert _modes(tmp_path / "run") == {"folder 700", "file 600"}
        write(tmp_path / "other")
        assert _modes(tmp_path / "other") == {"folder 755", "file 644"}
    finally:
        os.umask(before)


def test_a_run_reads_back_what_was_written(tmp_path: Path) -> None:
    with new_run(tmp_path / "a" / "b" / "run") as folder:
        folder.write("words.bin", b"one ", bytearray(b"two"), memoryview(b" three"))
        folder.write("empty.txt", "")
        (folder.path / "by-hand.txt").write_text("found at the end")
        folder.write("part-1/config.toml", "nested = true\n")
    run = open_run(tmp_path / "a" / "b" / "run", verify=True)
    assert run.names == ["by-hand.txt", "empty.txt", "part-1/config.toml", "words.bin"]
    assert run.read("words.bin") == b"one two three"
    assert run.read_text("by-hand.txt") == "found at the end"
    assert "words.bin" in run
    assert hidden(tmp_path / "a" / "b") == []


@pytest.mark.parametrize(
    "array",
    [
        np.arange(7, dtype=np.int32),
        np.zeros(0, dtype=np.float32),
        np.arange(24, dtype=np.uint64).reshape(2, 3, 4),
        np.arange(24, dtype=np.float32).reshape(4, 6)[:, ::2],
        np.float64(3.5).reshape(()),
    ],
    ids=str,
)
def test_arrays_read_back_with_numpy(tmp_path: Path, array: np.ndarray) -> None:
    with new_run(tmp_path / "run") as folder:
        folder.write_array("now.npy", array)
        folder.write_array("later.npy", array, wait=False)
        with pytest.raises(TypeError, match="Python objects"):
            folder.write_array("never.npy", np.array([object()]))
    for name in ("now.npy", "later.npy"):
        back = np.load(open_run(tmp_path / "run").file(name), allow_pickle=False)
        assert back.dtype == array.dtype
        np.testing.assert_array_equal(back, array)
    plain = tmp_path / "plain.npy"
    np.save(plain, np.ascontiguousarray(array).reshape(array.shape))
    assert plain.read_bytes() == (tmp_path / "run" / "now.npy").read_bytes()


def test_equal_files_give_equal_fingerprints(tmp_path: Path) -> None:
    for name, version in (("a", 1), ("b", 1), ("c", 2)):
        write(tmp_path / name, version)
    a, b, c = (open_run(tmp_path / name).fingerprint for name in "abc")
    assert a == b
    assert a != c


def test_files_follow_the_umask_and_folder_is_readable(tmp_path: Path) -> None:
    old = os.umask(0o022)
    try:
        write(tmp_path / "run")
    finally:
        os.umask(old)
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "run" / MANIFEST).stat().st_mode & 0o777 == 0o644


def test_an_exception_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        write_half(tmp_path / "deep" / "run")
    assert os.listdir(tmp_path) == []


def test_an_exception_keeps_the_old_run(tmp_path: Path) -> None:
    write(tmp_path / "run", 1)
    with pytest.raises(KeyError):
        write_half(tmp_path / "run", overwrite=True)
    assert version_of(tmp_path / "run") == 1
    assert os.listdir(tmp_path) == ["run"]


def test_an_existing_run_is_not_replaced_without_overwrite(tmp_path: Path) -> None:
    write(tmp_path / "run", 1)
    with pytest.raises(RunError, match="already holds a run; choose another --out or pass --overwrite"):
        check_target(tmp_path / "run")
    with pytest.raises(RunError, match="already holds a run"):
        write(tmp_path / "run", 2)
    assert version_of(tmp_path / "run") == 1
    check_target(tmp_path / "run", overwrite=True)


def test_overwrite_replaces_the_run(tmp_path: Path) -> None:
    write(tmp_path / "run", 1)
    write(tmp_path / "run", 2, overwrite=True)
    assert version_of(tmp_path / "run") == 2
    assert os.listdir(tmp_path) == ["run"]


def test_overwrite_without_exchange_replaces_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replace, "exchange", lambda one, other: False)
    write(tmp_path / "run", 1)
    write(tmp_path / "run", 2, overwrite=True)
    assert version_of(tmp_path / "run") == 2
    assert os.listdir(tmp_path) == ["run"]


def test_folders_that_are_no_runs_are_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunError, match="other than a nextword run and is left untouched"):
        write(tmp_path / "thesis", overwrite=True)
    with pytest.raises(RunError, match="is a file"):
        check_target(tmp_path / "file", overwrite=True)
    write(tmp_path / "empty", 3)
    assert version_of(tmp_path / "empty") == 3
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "years of work"


def test_a_linked_run_is_replaced_where_it_lies(tmp_path: Path) -> None:
    write(tmp_path / "real", 1)
    (tmp_path / "link").symlink_to("real")
    write(tmp_path / "link", 2, overwrite=True)
    assert (tmp_path / "link").is_symlink()
    assert version_of(tmp_path / "real") == 2


@pytest.mark.parametrize(
    "name", ["../x", "a/../../x", "/etc/x", ".hidden", "a b", "", "a//b", "ü", "a\0b", "x" * 600]
)
def test_file_names_cannot_leave_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(RunError, match="cannot be a file of a run"), new_run(tmp_path / "run") as folder:
        folder.write(name, b"")
    assert os.listdir(tmp_path) == []


def test_a_name_is_written_once(tmp_path: Path) -> None:
    with new_run(tmp_path / "run") as folder:
        folder.write("a", b"1")
        with pytest.raises(RunError, match="could not be written"):
            folder.write("a", b"2")
    assert open_run(tmp_path / "run").read("a") == b"1"


# ---- damage ---------------------------------------------------------------------------------------------


# ---- disk -----------------------------------------------------------------------------------------------


@pytest.fixture
def disk_of_two_megabytes(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", "2m") as place:
        yield place


def test_a_full_disk_keeps_the_old_run_and_says_the_bytes(disk_of_two_megabytes: Path) -> None:
    place = disk_of_two_megabytes
    write(place / "run", 1, size=1000)
    with pytest.raises(RunError, match=r"No space left on device\); [\d,]+ bytes are free"):
        write(place / "run", 2, overwrite=True, size=4 << 20)
    assert version_of(place / "run") == 1
    assert os.listdir(place) == ["run"]


def test_needed_space_is_checked_before_writing(disk_of_two_megabytes: Path) -> None:
    place = disk_of_two_megabytes
    message = r"needs 1,000,000,000 bytes, but its disk has [\d,]+ free"
    with pytest.raises(RunError, match=message), new_run(place / "run", need=10**9):
        raise AssertionError("not reached")
    with pytest.raises(RunError, match="needs"), new_run(place / "run") as folder:
        folder.need(10**9)
    assert os.listdir(place) == []


def test_a_file_size_limit_keeps_the_old_run(tmp_path: Path) -> None:
    write(tmp_path / "run", 1)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
    try:
        with pytest.raises(RunError, match="could not be written"):
            write(tmp_path / "run", 2, overwrite=True, size=2 << 20)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert version_of(tmp_path / "run") == 1
    assert os.listdir(tmp_path) == ["run"]


def test_a_read_only_folder_is_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = tmp_path / "locked"
    parent.mkdir()
    parent.chmod(0o555)
    if os.geteuid() == 0:  # root may write everywhere: let the system calls answer as for a user
        monkeypatch.setattr(os, "access", lambda path, mode: str(path) != str(parent))
        real_open = os.open

        def refuse(path: str, flags: int, mode: int = 0o777) -> int:
            if str(path).startswith(str(parent)) and flags & os.O_CREAT:
                raise PermissionError(13, "Permission denied", str(path))
            return real_open(path, flags, mode)

        monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(RunError, match="is not writable; choose another --out"):
        check_target(parent / "run")
    with pytest.raises(RunError, match=r"cannot be written \(Permission denied\)"):
        write(parent / "run")


def test_a_file_in_the_way_of_the_parent_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="is not a folder"):
        check_target(tmp_path / "file" / "run")
    with pytest.raises(RunError, match="could not be written"):
        write(tmp_path / "file" / "run")


def test_the_folder_deleted_under_the_writer_is_one_sentence(tmp_path: Path) -> None:
    def write_nowhere() -> None:
        with new_run(tmp_path / "run") as folder:
            shutil.rmtree(folder.path)
            folder.write("a", b"1")

    with pytest.raises(RunError, match="could not be written"):
        write_nowhere()


def test_errors_of_the_callers_own_files_pass_unchanged(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), new_run(tmp_path / "run"):
        (tmp_path / "no such corpus").read_bytes()
    assert os.listdir(tmp_path) == []


def test_files_are_synced_before_the_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    real_fsync, real_rename = os.fsync, os.rename

    def fsync(descriptor: int) -> None:
        calls.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real_fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "rename", lambda a, b: (calls.append("rename"), real_rename(a, b))[1])
    write(tmp_path / "run")
    place = calls.index("rename")
    synced = {Path(name).name.split(".new-")[0] for name in calls[:place]}
    assert {"config.toml", "training.json", "array.npy", MANIFEST, ".run"} <= synced
    assert calls[place + 1 :] == [str(tmp_path)]


# ---- several writers, crashes ---------------------------------------------------------------------------


def test_a_second_writer_hears_that_the_run_is_busy(tmp_path: Path) -> None:
    with new_run(tmp_path / "run") as folder:
        folder.write("a", b"1")
        with pytest.raises(RunError, match=rf"being written by another process \(process {os.getpid()}\)"):
            write(tmp_path / "run", 2, overwrite=True)
        with pytest.raises(RunError, match="being written by another process"):
            check_target(tmp_path / "run")
        write(tmp_path / "other", 3)
    assert open_run(tmp_path / "run").names == ["a"]
    assert hidden(tmp_path) == []


def test_a_crash_between_two_renames_is_repaired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "run", 1)
    monkeypatch.setattr(replace, "exchange", lambda one, other: False)
    monkeypatch.setattr(replace, "remove", lambda path: None)
    real_rename, calls = os.rename, []

    def stop_at_second(a: Path, b: Path) -> None:
        calls.append(a)
        if len(calls) == 2:
            raise KeyboardInterrupt
        real_rename(a, b)

    monkeypatch.setattr(os, "rename", stop_at_second)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "run", 2, overwrite=True)
    monkeypatch.undo()
    assert not (tmp_path / "run").exists()
    assert resolve(str(tmp_path / "run")) == tmp_path / "run"
    assert version_of(tmp_path / "run") == 2  # the new one was complete
    write(tmp_path / "run", 3, overwrite=True)
    assert os.listdir(tmp_path) == ["run"]


def test_leftovers_of_dead_writers_are_cleaned_and_others_kept(tmp_path: Path) -> None:
    for name in (
        ".run.new-99-0123456789abcdef",
        ".run.old-7-0123456789abcdef",
        ".run.new-mine",
        ".run2.new-1-0123456789abcdef",
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_text("x")
    write(tmp_path / "run", 1)
    assert version_of(tmp_path / "run") == 1
    assert hidden(tmp_path) == [".run.new-mine", ".run2.new-1-0123456789abcdef"]


WRITER = """
import sys
from nextword.store.writing import new_run
version = int(sys.argv[2])
print("ready", flush=True)
while True:
    version += 1
    with new_run(sys.argv[1], overwrite=True) as folder:
        folder.write("config.toml", f"version = {version}\\n")
        folder.write_json("training.json", {"version": version})
        for n in range(3):
            folder.later(f"array-{n}.npy", bytes([version % 256]) * 300_000)
"""


def start_writer(path: Path, version: int) -> subprocess.Popen[str]:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(version)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == "ready\n"
    return writer


def assert_whole(path: Path) -> None:
    folder = open_run(path, verify=True)
    version = folder.read_json("training.json")["version"]
    assert folder.read_text("config.toml") == f"version = {version}\n"
    for n in range(3):
        assert set(folder.read(f"array-{n}.npy")) == {version % 256}


def kill_and_check(path: Path, seed: int) -> None:
    delay = random.Random(seed).uniform(0, 0.06)
    with start_writer(path, seed * 1000) as writer:
        time.sleep(delay)
        writer.kill()
    if path.exists() or replace.leftovers(path, "old"):
        assert_whole(path)


@pytest.mark.parametrize("round_", range(5))
def test_a_kill_at_any_moment_leaves_a_whole_run(tmp_path: Path, round_: int) -> None:
    path = tmp_path / "run"
    for kill in range(4):  # each writer finds what the one before it left
        kill_and_check(path, round_ * 4 + kill)
    write(path, 1, overwrite=True)
    assert os.listdir(tmp_path) == ["run"]


@pytest.mark.slow
def test_two_hundred_kills_leave_whole_runs(tmp_path: Path) -> None:
    for seed in range(100, 300):
        kill_and_check(tmp_path / "run", seed)


def test_a_reader_beside_a_writer_sees_whole_runs_only(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with start_writer(path, 0) as writer:
        began, seen = time.monotonic(), 0
        while (used := time.monotonic() - began) < 0.6 or (not seen and used < 60):  # a busy machine is slow
            try:
                folder = open_run(path)
                version = folder.read_json("training.json")["version"]
                text = folder.read_text("config.toml")
                folder.ensure_unchanged()
            except RunError:  # replaced while it was read, or not there yet
                continue
            assert text == f"version = {version}\n"
            seen += 1
        writer.kill()
    assert seen > 0


# ---- names ----------------------------------------------------------------------------------------------


# ---- systems that cannot do everything --------------------------------------------------------------------


def test_a_file_system_without_locks_or_folder_sync_still_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_fsync = os.fsync

    def fsync(descriptor: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.EINVAL, "Invalid argument")
        real_fsync(descriptor)

    monkeypatch.setattr(replace.fcntl, "flock", fail_with(errno.ENOLCK))
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(disk, "_sync_file_range", lambda: None)
    write(tmp_path / "run", 1)
    assert version_of(tmp_path / "run") == 1
