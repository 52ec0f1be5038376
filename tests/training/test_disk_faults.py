"""Faults of disk and clock while a network learns, made for real.

A disk that refuses costs a checkpoint, never the training, and never the checkpoint before. Numbers are those
of the list of faults in docs/reliability.md.
"""

import os
import resource
import shutil
import time

import pytest
import safetensors.torch
from clocks import set_clock
from event_streams import notes_of
from small_disks import fill, read_only, small_disk
from small_trainings import disturbed, files, finished, has_checkpoint, killed_after, order

from nextword.api.train import run
from nextword.core.errors import RunError
from nextword.store import checkpoints, replace
from nextword.store.checkpoints import find_last
from nextword.training import checkpointing
from nextword.training.checkpointing import SaveSchedule

SAVING = {"train.save_every": 4}
FILES = (
    "state.safetensors", "state.json", "metrics.jsonl", "config.toml", "begun.json", "tokenizer.json",
    "MANIFEST.json",
)  # fmt: skip


@pytest.fixture(scope="module")
def whole(text, tmp_path_factory):
    """The training that nobody disturbed."""
    out = tmp_path_factory.mktemp("whole") / "r"
    finished(order(text), out)
    return files(out)


# ---- storage: 14-27 -------------------------------------------------------------------------------------


def test_full_disk_keeps_the_checkpoint_says_the_bytes_and_the_training_goes_on(text, whole, tmp_path):
    """14: a tmpfs of 24 MB that somebody else fills; when there is room again, nothing is lost."""
    with small_disk(tmp_path / "disk") as place:
        out = place / "r"
        events, error = disturbed(order(text, **SAVING), out, lambda: fill(place))
        told = [note for note in notes_of(events) if note.startswith("no checkpoint of step 8")]
        assert len(told) == 1
        assert "free" in told[0]
        assert "the last one is of step 4" in told[0]
        assert "bytes are free" in str(error)
        assert sorted(os.listdir(place)) == ["filler", "r"]
        (place / "filler").unlink()
        assert find_last(out).checkpoint.step == 4
        finished(order(text, **SAVING), out, resume=True)
        assert files(out) == whole


def save(run, step, size):
    with checkpoints.Checkpoints(run, "00000001").writing(step) as new:
        new.write("state.bin", bytes(size))


def test_disk_that_fills_while_a_checkpoint_is_written_keeps_the_one_before(tmp_path):
    """14: no room is found missing beforehand, the write itself fails."""
    with small_disk(tmp_path / "disk", "2m") as place:
        save(place / "r", 10, 1000)
        with pytest.raises(RunError, match=r"No space left on device.* bytes are free"):
            save(place / "r", 20, 4 << 20)
        assert find_last(place / "r").checkpoint.step == 10
        assert sorted(os.listdir(place / "r/checkpoint")) == ["LAST", "ckpt-000010-00000001"]


def test_limit_on_the_size_of_files_keeps_the_checkpoint(text, whole, tmp_path):
    """15: a quota by RLIMIT_FSIZE."""
    out, before = tmp_path / "r", resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        events, error = disturbed(
            order(text, **SAVING), out, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
        )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    told = [note for note in notes_of(events) if note.startswith("no checkpoint of step 8")]
    assert len(told) == 1
    assert "File too large" in told[0]
    assert "could not be written (File too large)" in str(error)
    assert find_last(out).checkpoint.step == 4
    finished(order(text, **SAVING), out, resume=True)
    assert files(out) == whole


def test_disk_that_becomes_read_only_keeps_the_checkpoint(text, whole, tmp_path):
    """16."""
    with small_disk(tmp_path / "disk") as place:
        out = place / "r"
        with read_only(place) as make_read_only:
            events, error = disturbed(order(text, **SAVING), out, make_read_only)
            assert any("Read-only file system" in note for note in notes_of(events))
            assert "Read-only file system" in str(error)
            with pytest.raises(RunError, match=r"Read-only file system|not writable"):
                finished(order(text, **SAVING), out, resume=True)
        assert find_last(out).checkpoint.step == 4
        finished(order(text, **SAVING), out, resume=True)
        assert files(out) == whole


def test_all_folders_deleted_on_the_way_cost_one_sentence_and_a_resume(text, whole, tmp_path):
    """17: not the run's folder alone, which is made again, but the one it is being written in, too."""
    out = tmp_path / "runs" / "r"
    _, error = disturbed(order(text, **SAVING), out, lambda: shutil.rmtree(tmp_path / "runs"))
    assert "could not be written" in str(error)
    assert find_last(out).checkpoint.step == 12
    finished(order(text, **SAVING), out, resume=True)
    assert files(out) == whole


@pytest.fixture(scope="module")
def killed(text, tmp_path_factory):
    """A training with checkpoints of steps 4 and 8."""
    out = tmp_path_factory.mktemp("killed") / "r"
    killed_after(8, order(text, **SAVING), out)
    return out


@pytest.mark.parametrize("harm", ["flip", "truncate", "empty", "delete"])
@pytest.mark.parametrize("name", FILES)
def test_damage_of_any_file_is_named_and_the_checkpoint_before_is_taken(name, harm, killed, tmp_path):
    """18-20, 22: every file of a real checkpoint."""
    out = tmp_path / "r"
    shutil.copytree(killed, out)
    newest = out / "checkpoint" / (out / "checkpoint/LAST").read_text().strip()
    assert sorted(os.listdir(newest)) == sorted(FILES)
    data = bytearray((newest / name).read_bytes())
    data[len(data) // 2] ^= 4
    harmed = {"flip": bytes(data), "truncate": bytes(data[:-7]), "empty": b"", "delete": b""}[harm]
    (newest / name).write_bytes(harmed)
    if harm == "delete":
        (newest / name).unlink()
    found = find_last(out)
    assert found.checkpoint.step == 4
    assert len(found.damaged) == 1
    assert f"{newest.name}/{name}" in found.damaged[0]


@pytest.mark.parametrize("name", FILES)
def test_after_a_flipped_bit_the_result_is_the_same(name, killed, text, whole, tmp_path):
    """18."""
    out = tmp_path / "r"
    shutil.copytree(killed, out)
    path = out / "checkpoint" / (out / "checkpoint/LAST").read_text().strip() / name
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)
    _, notes = finished(order(text, **SAVING), out, resume=True)
    assert any("the steps after step 4 are lost" in note for note in notes)
    assert files(out) == whole


def test_without_any_whole_checkpoint_it_starts_from_the_beginning_and_says_so(killed, text, whole, tmp_path):
    out = tmp_path / "r"
    shutil.copytree(killed, out)
    for path in (out / "checkpoint").glob("ckpt-*/state.json"):
        path.write_bytes(b"")
    _, notes = finished(order(text, **SAVING), out, resume=True)
    assert any("no intact checkpoint is left" in note and "from the beginning" in note for note in notes)
    assert files(out) == whole


@pytest.mark.parametrize("pointer", [None, "", "ckpt-000099-00000000\n", "../../etc/passwd\n"])
def test_pointer_that_is_lost_or_points_nowhere_costs_nothing(pointer, killed, text, whole, tmp_path):
    """23."""
    out = tmp_path / "r"
    shutil.copytree(killed, out)
    (out / "checkpoint/LAST").unlink()
    if pointer is not None:
        (out / "checkpoint/LAST").write_text(pointer)
    _, notes = finished(order(text, **SAVING), out, resume=True)
    assert any("resuming after step 8" in note for note in notes)
    assert files(out) == whole


def test_checkpoint_of_an_older_training_with_a_higher_number_is_not_taken(killed, text, whole, tmp_path):
    """25."""
    killed_after(12, order(text, **SAVING, **{"model.hidden": 8}), tmp_path / "old")
    out = tmp_path / "r"
    shutil.copytree(killed, out)
    (old,) = (tmp_path / "old/checkpoint").glob("ckpt-000012-*")
    shutil.copytree(old, out / "checkpoint" / old.name)
    _, notes = finished(order(text, **SAVING), out, resume=True)
    assert any("resuming after step 8" in note for note in notes)
    assert files(out) == whole


def test_linked_folder_is_gone_on_with_where_it_lies(text, whole, tmp_path):
    """26."""
    (tmp_path / "far").mkdir()
    (tmp_path / "near").symlink_to("far")
    killed_after(4, order(text, **SAVING), tmp_path / "near" / "r")
    finished(order(text, **SAVING), tmp_path / "near" / "r", resume=True)
    assert files(tmp_path / "far" / "r") == whole


def test_file_system_that_can_do_little_is_enough(text, whole, tmp_path, monkeypatch):
    """26: no locks, no hard links, no exchange of folders, no fsync of a folder, as on some network disks."""
    real = os.fsync

    def fsync(descriptor):
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(22, "Invalid argument")
        real(descriptor)

    def refuse(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr(replace.fcntl, "flock", refuse)
    monkeypatch.setattr(replace, "exchange", lambda one, other: False)
    killed_after(4, order(text, **SAVING), tmp_path / "r")
    finished(order(text, **SAVING), tmp_path / "r", resume=True)
    assert files(tmp_path / "r") == whole


def test_slow_disk_is_written_to_so_seldom_that_it_costs_a_twentieth(monkeypatch):
    """26: each save takes half a minute, a step a second."""
    now = [0.0]
    set_clock(monkeypatch, checkpointing, monotonic=lambda: now[0])
    saves, spent = SaveSchedule(0), 0.0
    for _ in range(20_000):
        now[0] += 1.0
        if saves.is_time():
            for _ in saves.point(None):
                now[0] += 30.0
                spent += 30.0
    assert spent > 0
    assert spent / now[0] < 0.055


def test_clock_that_jumps_while_learning_changes_nothing(text, whole, tmp_path, monkeypatch):
    """27: a day back, later a day on."""
    out = tmp_path / "r"
    real, real_ns, jump = time.time, time.time_ns, [0]
    monkeypatch.setattr(time, "time", lambda: real() + jump[0])
    monkeypatch.setattr(time, "time_ns", lambda: real_ns() + jump[0] * 10**9)
    events = run(order(text, **SAVING), out)
    for _ in events:
        if has_checkpoint(out, 4):
            jump[0] = -86_400
        if has_checkpoint(out, 8):
            break
    events.close()
    (out / "checkpoint/LAST").unlink()
    jump[0] = 86_400
    _, notes = finished(order(text, **SAVING), out, resume=True)
    assert any("resuming after step 8" in note for note in notes)
    assert files(out) == whole


@pytest.mark.parametrize("name", ["MemoryError", "PanicException"])
def test_no_memory_for_a_checkpoint_costs_the_checkpoint(name, text, whole, tmp_path, monkeypatch):
    """12: safetensors throws what is no Exception when memory is short."""
    kind = {"MemoryError": MemoryError, "PanicException": type("PanicException", (BaseException,), {})}[name]

    real = safetensors.torch.save

    def fail(tensors):
        if "network.embedding.weight_VE" not in tensors:  # the weights of the run itself
            return real(tensors)
        raise kind("PyObject pointer is null")

    monkeypatch.setattr("safetensors.torch.save", fail)
    events = list(run(order(text, **SAVING), tmp_path / "r"))
    told = [note for note in notes_of(events) if note.startswith("no checkpoint of step 4")]
    assert told == ["no checkpoint of step 4: out of memory; there is no earlier one; training continues"]
    assert files(tmp_path / "r") == whole
