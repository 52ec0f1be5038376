"""Checkpoints are whole or not there, the last good one is found, and what is wrong is named."""

import os
import re
import subprocess
import sys

import pytest
from run_folders import save

from nextword.core.errors import RunError
from nextword.store import checkpoints, writing
from nextword.store.checkpoints import Checkpoints, find_last
from nextword.store.reading import open_run
from nextword.store.writing import check_target, new_run
from nextword.system import disk

FILES = ("state.bin", "numbers.json")


def names(run):
    return sorted(os.listdir(run / "checkpoint"))


def last(run):
    found = find_last(run).checkpoint
    return None if found is None else found.step


def test_newest_is_found_and_only_the_last_two_are_kept(tmp_path):
    for step in (10, 20, 30, 1_000_000):
        save(tmp_path / "r", step)
    assert names(tmp_path / "r") == ["LAST", "ckpt-000030-00000001", "ckpt-1000000-00000001"]
    found = find_last(tmp_path / "r").checkpoint
    assert (found.step, found.training) == (1_000_000, "00000001")
    assert found.folder.read_json("numbers.json") == {"step": 1_000_000}


@pytest.mark.parametrize("name", [*FILES, "MANIFEST.json"])
@pytest.mark.parametrize("harm", ["flip", "truncate", "empty", "delete"])
def test_damaged_file_is_named_set_aside_and_the_one_before_is_taken(tmp_path, name, harm):
    save(tmp_path, 10)
    save(tmp_path, 20)
    file = tmp_path / "checkpoint" / "ckpt-000020-00000001" / name
    data = bytearray(file.read_bytes())
    if harm == "flip":
        data[len(data) // 2] ^= 1
    file.write_bytes({"flip": data, "truncate": data[:-1], "empty": b"", "delete": b""}[harm])
    if harm == "delete":
        file.unlink()
    found = find_last(tmp_path)
    assert found.checkpoint.step == 10
    assert len(found.damaged) == 1
    assert str(file) in found.damaged[0]
    assert "ckpt-000020-00000001.damaged" in names(tmp_path)
    save(tmp_path, 20)
    assert last(tmp_path) == 20


def test_pointer_that_is_garbled_absent_or_points_nowhere_costs_nothing(tmp_path):
    save(tmp_path, 10)
    save(tmp_path, 20)
    pointer = tmp_path / "checkpoint" / "LAST"
    for text in ("", "../../etc\n", "ckpt-000099-00000001\n", "\xff" * 9):
        pointer.write_text(text)
        assert last(tmp_path) == 20
    pointer.unlink()
    assert last(tmp_path) == 20


def test_higher_number_of_an_older_training_is_not_taken(tmp_path):
    save(tmp_path, 900, "0000000a")
    save(tmp_path, 10, "0000000b")
    assert names(tmp_path) == ["LAST", "ckpt-000010-0000000b"]
    save(tmp_path / "old", 900, "0000000a")
    os.rename(tmp_path / "old/checkpoint/ckpt-000900-0000000a", tmp_path / "checkpoint/ckpt-000900-0000000a")
    assert last(tmp_path) == 10
    save(tmp_path, 20, "0000000b")
    assert names(tmp_path) == ["LAST", "ckpt-000010-0000000b", "ckpt-000020-0000000b"]


def test_clock_that_is_set_back_changes_no_order(tmp_path, monkeypatch):
    save(tmp_path, 10)
    monkeypatch.setattr("time.time_ns", lambda: 5)
    save(tmp_path, 20)
    (tmp_path / "checkpoint" / "LAST").unlink()
    assert last(tmp_path) == 20


def test_what_a_dead_writer_left_is_swept(tmp_path):
    save(tmp_path, 10)
    (tmp_path / "checkpoint" / "ckpt-000020-00000001.tmp-77").mkdir()
    (tmp_path / "checkpoint" / "LAST.tmp-77").write_text("ckpt-0")
    assert last(tmp_path) == 10
    save(tmp_path, 30)
    assert names(tmp_path) == ["LAST", "ckpt-000010-00000001", "ckpt-000030-00000001"]


@pytest.mark.parametrize(
    ("module", "call"), [(writing, "fsync_file"), (writing, "fsync_folder"), (disk, "write_all")]
)
def test_disk_that_refuses_leaves_the_old_one_and_no_rest(tmp_path, monkeypatch, module, call):
    save(tmp_path, 10)

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, call, refuse)
    if call != "fsync_file":
        with pytest.raises(RunError, match=r"No space left.*bytes are free"):
            save(tmp_path, 20)
    monkeypatch.undo()
    assert last(tmp_path) in (10, 20)
    assert not [name for name in names(tmp_path) if "tmp" in name]


def test_room_is_looked_for_before_anything_is_written(tmp_path, monkeypatch):
    save(tmp_path, 10)
    monkeypatch.setattr(disk, "free_bytes", lambda folder: 99)
    with pytest.raises(RunError, match="needs 110 bytes, but its disk has 99 free"):
        save(tmp_path, 20)
    assert last(tmp_path) == 10


def test_files_are_on_disk_before_the_name_and_the_name_before_the_pointer(tmp_path, monkeypatch):
    """The order of the calls: what survives a loss of power."""
    save(tmp_path, 10)
    calls = []
    fsync, rename, replace = os.fsync, os.rename, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (calls.append(("fsync", _name(fd))), fsync(fd)))
    monkeypatch.setattr(os, "rename", lambda a, b: (calls.append(("rename", b.name)), rename(a, b)))
    monkeypatch.setattr(os, "replace", lambda a, b: (calls.append(("rename", b.name)), replace(a, b)))
    monkeypatch.setattr(checkpoints.replace, "remove", lambda p: calls.append(("remove", p.name)))
    save(tmp_path, 20)
    save(tmp_path, 30)
    place = "ckpt-000020-00000001"
    temporary = f"{place}.tmp-{os.getpid()}"
    assert calls[: calls.index(("rename", "LAST")) + 2] == [
        ("fsync", "state.bin"), ("fsync", "numbers.json"), ("fsync", "MANIFEST.json"), ("fsync", temporary),
        ("rename", place), ("fsync", "checkpoint"),
        ("fsync", ".LAST.tmp"), ("rename", "LAST"), ("fsync", "checkpoint"),
    ]  # fmt: skip
    assert calls[-1] == ("remove", "ckpt-000010-00000001")


def _name(descriptor):
    name = os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}"))
    return re.sub(r"(?<=^\.LAST\.tmp)-\d+-[0-9a-f]+$", "", name)


@pytest.mark.needs("strace")
def test_order_of_system_calls_is_that_of_the_protocol(tmp_path):
    code = (
        "import sys; from pathlib import Path; from nextword.store.checkpoints import Checkpoints\n"
        "with Checkpoints(Path(sys.argv[1]), '00000001').writing(10) as new: new.write('a.bin', b'a')\n"
    )
    trace = tmp_path / "trace"
    subprocess.run(
        ["strace", "-f", "-y", "-e", "trace=fsync,rename,renameat2", "-o", trace,
         sys.executable, "-c", code, tmp_path / "r"], check=True,
    )  # fmt: skip
    calls = [line.split(None, 1)[1] for line in trace.read_text().split("\n") if "(" in line]
    renamed = next(at for at, call in enumerate(calls) if call.startswith("rename") and "ckpt-" in call)
    pointed = next(at for at, call in enumerate(calls) if call.startswith("rename") and "LAST" in call)
    assert any("a.bin" in call for call in calls[:renamed] if call.startswith("fsync"))
    assert any("MANIFEST" in call for call in calls[:renamed] if call.startswith("fsync"))
    assert any("checkpoint" in call for call in calls[renamed:pointed] if call.startswith("fsync"))
    assert calls[-1].startswith("fsync")


def test_unfinished_training_is_refused_unless_it_goes_on_or_is_replaced(tmp_path):
    run = tmp_path / "r"
    save(run, 10)
    with pytest.raises(RunError, match="an unfinished training run; resume it with --resume"):
        check_target(run)
    with pytest.raises(
        RunError, match="unfinished training run; resume it with the same command and --resume"
    ):
        open_run(run)
    check_target(run, overwrite=True)
    check_target(run, resumes=True)
    with new_run(run, resumes=True) as folder:
        folder.write("config.toml", "a = 1\n")
    assert sorted(os.listdir(run)) == ["MANIFEST.json", "config.toml"]


def test_folder_without_a_checkpoint_yet_is_as_good_as_none(tmp_path):
    (tmp_path / "r" / "checkpoint" / "ckpt-000010-00000001.tmp-9").mkdir(parents=True)
    check_target(tmp_path / "r")
    with new_run(tmp_path / "r") as folder:
        folder.write("config.toml", "a = 1\n")
    assert open_run(tmp_path / "r").names == ["config.toml"]


def test_run_that_was_stopped_keeps_its_checkpoint_beside_its_files(tmp_path):
    run = tmp_path / "r"
    save(run, 10)
    with new_run(run, resumes=True) as folder:
        folder.write("config.toml", "a = 1\n")
        Checkpoints(run, "00000001").hand_over(folder.path)
    assert open_run(run, verify=True).names == ["config.toml"]
    assert last(run) == 10
    save(run, 20)
    open_run(run, verify=True)
    with pytest.raises(RunError, match="already holds a run"):
        check_target(run)


def test_exchange_that_died_between_its_renames_is_repaired_for_unfinished_trainings_too(tmp_path):
    run = tmp_path / "r"
    save(run, 10)
    os.rename(run, tmp_path / f".r.old-7-{'0' * 16}")
    with new_run(run, resumes=True):
        assert last(run) == 10
        raise_nothing = True
    assert raise_nothing
    assert writing.MANIFEST in os.listdir(run)
