"""A run is written whole or not at all, and damage is named. [reliability: faults 1-4, 14-24, 27]"""

from __future__ import annotations

import errno
import json
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

from nextword.core.errors import DamagedError, RunError
from nextword.store import disk, replace
from nextword.store.manifest import LARGE, MANIFEST
from nextword.store.names import default_name, latest, list_runs, mark_latest, resolve
from nextword.store.reading import RunFolder, open_run
from nextword.store.writing import check_target, new_run
from nextword.system import atomic


def write(path: Path, version: int = 1, overwrite: bool = False, size: int = 100) -> None:
    with new_run(path, overwrite=overwrite) as folder:
        folder.write("config.toml", f"version = {version}\n")
        folder.write_json("training.json", {"version": version})
        folder.later("array.npy", bytes([version % 256]) * size)


def write_half(path: Path, overwrite: bool = False) -> None:
    with new_run(path, overwrite=overwrite) as folder:
        folder.later("array.npy", bytes(1000))
        folder.write("config.toml", "half")
        raise KeyError("stop")


def version_of(path: Path) -> int:
    folder = open_run(path, verify=True)
    version: int = folder.read_json("training.json")["version"]
    assert folder.read_text("config.toml") == f"version = {version}\n"
    assert set(folder.read("array.npy")) == {version % 256}
    return version


def hidden(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.startswith("."))


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


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = tmp_path / "run"
    write(path, 7, size=LARGE + 5)
    return path


@pytest.mark.parametrize("name", ["config.toml", "training.json", "array.npy", MANIFEST])
def test_a_flipped_bit_is_named(run: Path, name: str) -> None:
    generator = random.Random(name)
    data = bytearray((run / name).read_bytes())
    data[generator.randrange(len(data))] ^= 1 << generator.randrange(7)
    (run / name).write_bytes(data)
    with pytest.raises(DamagedError, match=name):
        open_run(run, verify=True)


def test_opening_hashes_small_files_only(run: Path) -> None:
    data = bytearray((run / "array.npy").read_bytes())
    data[-1] ^= 1
    (run / "array.npy").write_bytes(data)
    folder = open_run(run)  # sizes are right, large files are checked on request
    with pytest.raises(DamagedError, match=r"array\.npy was changed after it was written"):
        folder.verify()


@pytest.mark.parametrize("name", ["config.toml", "training.json", "array.npy", MANIFEST])
@pytest.mark.parametrize("how", ["truncate", "empty", "delete", "longer", "folder", "link"])
def test_every_kind_of_damage_is_an_error_that_names_the_file(run: Path, name: str, how: str) -> None:
    path, data = run / name, (run / name).read_bytes()
    path.unlink()
    if how == "folder":
        path.mkdir()
    elif how == "link":
        (run.parent / "elsewhere").write_bytes(data)
        path.symlink_to("../elsewhere")
    elif how != "delete":
        path.write_bytes({"truncate": data[:-1], "empty": b"", "longer": data + b"x"}[how])
    with pytest.raises(RunError, match=name):
        open_run(run)


@pytest.mark.parametrize(
    "change",
    [
        {"nextword_format": 99},
        {"nextword_format": "1"},
        {"files": {"../../etc/passwd": {"size": 1, "sha256": "0" * 64}}},
        {"files": {"a": {"size": -1, "sha256": "0" * 64}}},
        {"files": []},
        {"created": "now"},
        {"check": 5},
    ],
)
def test_a_forged_manifest_is_refused(run: Path, change: dict[str, object]) -> None:
    from nextword.store.manifest import _check

    body = json.loads((run / MANIFEST).read_bytes()) | change
    if "check" not in change:
        body["check"] = _check(body)
    (run / MANIFEST).write_text(json.dumps(body))
    with pytest.raises(DamagedError, match=MANIFEST):
        open_run(run)


def test_random_bytes_as_manifest_raise_only_our_error(run: Path) -> None:
    original = (run / MANIFEST).read_bytes()
    generator = random.Random(5)
    for _ in range(300):
        data = bytearray(original)
        for _ in range(generator.randrange(1, 4)):
            start = generator.randrange(len(data))
            data[start : start + generator.randrange(0, 3)] = generator.randbytes(generator.randrange(0, 3))
        (run / MANIFEST).write_bytes(data)
        if bytes(data) == original:
            continue
        with pytest.raises(RunError, match=MANIFEST):
            open_run(run)


def test_missing_runs_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="there is no run"):
        open_run(tmp_path / "nothing")
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="is a file"):
        open_run(tmp_path / "file")
    (tmp_path / "folder").mkdir()
    with pytest.raises(DamagedError, match="not a complete run"):
        open_run(tmp_path / "folder")


def test_unlisted_and_garbled_files_are_named(run: Path) -> None:
    folder = open_run(run)
    with pytest.raises(DamagedError, match=r"has no file 'x\.npy'"):
        folder.file("x.npy")
    with pytest.raises(DamagedError, match="is not valid JSON"):
        folder.read_json("config.toml")
    (run / "config.toml").write_text("version = 8\n")
    with pytest.raises(DamagedError, match="was changed"):
        folder.read("config.toml")


def test_a_run_replaced_while_it_is_read_is_noticed(run: Path) -> None:
    folder = open_run(run)
    folder.ensure_unchanged()
    write(run, 8, overwrite=True)
    with pytest.raises(RunError, match="was replaced by another process"):
        folder.ensure_unchanged()


# ---- disk -----------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    mount = tmp_path / "disk"
    mount.mkdir()
    if shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(mount)], capture_output=True)
    if done.returncode:
        pytest.skip("mounting a tmpfs is not allowed here")
    yield mount
    subprocess.run(["umount", "-l", str(mount)], check=True)


def test_a_full_disk_keeps_the_old_run_and_says_the_bytes(small_disk: Path) -> None:
    write(small_disk / "run", 1, size=1000)
    with pytest.raises(RunError, match=r"No space left on device\); [\d,]+ bytes are free"):
        write(small_disk / "run", 2, overwrite=True, size=4 << 20)
    assert version_of(small_disk / "run") == 1
    assert os.listdir(small_disk) == ["run"]


def test_needed_space_is_checked_before_writing(small_disk: Path) -> None:
    message = r"needs 1,000,000,000 bytes, but its disk has [\d,]+ free"
    with pytest.raises(RunError, match=message), new_run(small_disk / "run", need=10**9):
        raise AssertionError("not reached")
    with pytest.raises(RunError, match="needs"), new_run(small_disk / "run") as folder:
        folder.need(10**9)
    assert os.listdir(small_disk) == []


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


def test_names_are_folders_or_live_under_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("runs/one"), 1)
    write(Path("elsewhere"), 2)
    assert resolve("one") == Path("runs/one")
    assert resolve("runs/one") == Path("runs/one")
    assert resolve("elsewhere") == Path("elsewhere")
    with pytest.raises(RunError, match=r"there is no run 'onne'.*did you mean 'one'\?"):
        resolve("onne")
    with pytest.raises(RunError, match="runs there: one"):
        resolve("zzzzzz")
    with pytest.raises(RunError, match="invalid run name"):
        resolve("")
    Path("model.arpa").write_text("")
    with pytest.raises(RunError, match=r"nextword import model\.arpa"):
        resolve("model.arpa")


def test_latest_is_the_last_one_written_even_if_the_clock_goes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunError, match="no run under 'runs' yet"):
        resolve("latest")
    write(Path("runs/a"), 1)
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now - 3600 * 10**9)
    write(Path("runs/b"), 2)
    assert resolve("latest") == Path("runs/b")
    Path("runs/.latest").unlink()  # the pointer is a convenience: the manifests know the order too
    assert latest() == Path("runs/b")
    Path("runs/.latest").write_text("gone\n")
    assert latest() == Path("runs/b")
    mark_latest("runs/a")
    assert latest() == Path("runs/a")
    assert [path.name for path in list_runs()] == ["a", "b"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("corpus.txt", "ngram-corpus-1"),
        ("/data/My Book.TXT.gz", "ngram-my-book-1"),
        ("wikitext2/test", "ngram-test-1"),
        ("-", "ngram-text-1"),
        ("हिन्दी.txt", "ngram-text-1"),
        ("folder/", "ngram-folder-1"),
        (".txt", "ngram-txt-1"),
    ],
)
def test_default_names_come_from_model_and_data(tmp_path: Path, data: str, expected: str) -> None:
    assert default_name("ngram", data, tmp_path) == tmp_path / expected


def test_default_names_count_on(tmp_path: Path) -> None:
    for name in ("m-d-1", "m-d-9", "m-d-x", "m-other-12"):
        (tmp_path / name).mkdir()
    assert default_name("m", "d", tmp_path).name == "m-d-10"
    with new_run(tmp_path / "m-d-10") as folder:
        assert default_name("m", "d", tmp_path).name == "m-d-11"
        folder.write("a", b"")


def test_folder_objects_know_their_manifest(tmp_path: Path) -> None:
    write(tmp_path / "run", 1, size=LARGE)
    folder = open_run(tmp_path / "run")
    assert isinstance(folder, RunFolder)
    assert [name for name, record in folder.manifest.files.items() if record.large] == ["array.npy"]
    assert json.loads((tmp_path / "run" / MANIFEST).read_bytes())["files"]["array.npy"]["large"] is True


# ---- systems that cannot do everything --------------------------------------------------------------------


def fail_with(code: int) -> object:
    def call(*args: object, **options: object) -> None:
        raise OSError(code, os.strerror(code))

    return call


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


def test_other_errors_of_locking_are_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replace.fcntl, "flock", fail_with(errno.EIO))
    with pytest.raises(OSError, match="Input/output error"):
        write(tmp_path / "run", 1)


def test_a_folder_that_cannot_be_synced_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", fail_with(errno.EIO))
    with pytest.raises(OSError, match="Input/output error"):
        atomic.fsync_folder(tmp_path)


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


def test_room_is_only_asked_where_the_system_knows(tmp_path: Path) -> None:
    assert disk.free_bytes(tmp_path / "nowhere") is None
    disk.check_space(tmp_path / "new" / "run", 1)


def test_a_lost_pointer_to_the_latest_is_no_error(tmp_path: Path) -> None:
    mark_latest(tmp_path / "no" / "run")
    assert os.listdir(tmp_path) == []
    (tmp_path / "runs" / "x").mkdir(parents=True)
    (tmp_path / "runs" / "x" / MANIFEST).write_text("{}")
    with pytest.raises(RunError, match="no run under"):
        latest(tmp_path / "runs")
    assert default_name("m", "d", tmp_path / "none").name == "m-d-1"


def test_huge_manifests_and_files_that_cannot_be_read_are_named(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = open_run(run)
    monkeypatch.setattr(Path, "read_bytes", fail_with(errno.EACCES))
    for call in (lambda: folder.read("config.toml"), lambda: open_run(run)):
        with pytest.raises(RunError, match="cannot be read \\(Permission denied\\)"):
            call()
    monkeypatch.undo()
    monkeypatch.setattr("nextword.store.manifest._MAX_MANIFEST", 10)
    with pytest.raises(DamagedError, match="has more than 10 bytes"):
        open_run(run)


def test_text_that_is_no_text_is_named(tmp_path: Path) -> None:
    with new_run(tmp_path / "run") as folder:
        folder.write("config.toml", b"\xff")
    with pytest.raises(DamagedError, match=r"config\.toml is not UTF-8"):
        open_run(tmp_path / "run").read_text("config.toml")
