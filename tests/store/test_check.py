"""Runs are checked byte for byte, and nothing of them is changed by it."""

import os

import pytest
from run_folders import save

from nextword.store import replace
from nextword.store.check import check_leftovers, check_run, runs_in
from nextword.store.checkpoints import Checkpoints
from nextword.store.writing import new_run


def write(path):
    with new_run(path, overwrite=True) as folder:
        folder.write("config.toml", "a = 1\n")
        folder.write("weights.bin", bytes(2 << 20))


def told(run, **how):
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    found = list(check_run(run, **how))
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before
    return [(each.level, each.text) for each in found]


def test_whole_run_is_told_with_its_size(tmp_path):
    write(tmp_path / "r")
    assert told(tmp_path / "r") == [("ok", "2 files, 2.1 MB, every SHA-256 matches")]


@pytest.mark.parametrize("name", ["config.toml", "weights.bin", "MANIFEST.json"])
def test_flipped_bit_is_a_problem_that_names_the_file(tmp_path, name):
    write(tmp_path / "r")
    data = bytearray((tmp_path / "r" / name).read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "r" / name).write_bytes(data)
    ((level, text),) = told(tmp_path / "r")
    assert level == "problem"
    assert name in text
    assert "again" in text


def test_training_that_has_not_ended_is_told_with_the_command_that_goes_on(tmp_path):
    run = tmp_path / "my run"
    save(run, 10)
    save(run, 20)
    ((level, text),) = told(run)
    assert level == "note"
    assert "is unfinished; its checkpoint of step 20 is intact; resume with: " in text
    assert f"nextword train --out '{run}' --resume" in text


def test_damaged_checkpoint_is_told_and_left_where_it_is(tmp_path):
    save(tmp_path / "r", 10)
    save(tmp_path / "r", 20)
    (tmp_path / "r/checkpoint/ckpt-000020-00000001/state.bin").write_bytes(b"")
    first, second = told(tmp_path / "r")
    assert first[0] == "problem"
    assert "ckpt-000020-00000001/state.bin has 0 bytes" in first[1]
    assert "--resume uses the checkpoint of step 10 instead" in first[1]
    assert "step 10 is intact" in second[1]
    (tmp_path / "r/checkpoint/ckpt-000010-00000001/MANIFEST.json").unlink()
    assert [level for level, _ in told(tmp_path / "r")] == ["problem", "problem"]
    assert "starts over" in told(tmp_path / "r")[0][1]


def test_stopped_run_is_whole_and_can_be_gone_on_with(tmp_path):
    save(tmp_path / "r", 10)
    with new_run(tmp_path / "r", resumes=True) as folder:
        folder.write("config.toml", "a = 1\n")
        Checkpoints(tmp_path / "r", "00000001").hand_over(folder.path)
    first, second = told(tmp_path / "r")
    assert first[0] == "ok"
    assert "was interrupted; its checkpoint of step 10" in second[1]


def test_what_was_set_aside_or_left_by_a_dead_writer_is_named(tmp_path):
    save(tmp_path / "r", 10)
    (tmp_path / "r/checkpoint/ckpt-000020-00000001.damaged").mkdir()
    (tmp_path / "r/checkpoint/ckpt-000030-00000001.tmp-77").mkdir()
    texts = " ".join(text for _, text in told(tmp_path / "r"))
    assert "ckpt-000020-00000001.damaged is a damaged checkpoint that was renamed" in texts
    assert "ckpt-000030-00000001.tmp-77 was left by a dead process" in texts


def test_folder_that_is_no_run_is_a_problem_only_for_whoever_named_it(tmp_path):
    (tmp_path / "photos").mkdir()
    assert told(tmp_path / "photos")[0][0] == "problem"
    assert told(tmp_path / "photos", named=False)[0][0] == "note"


def test_run_that_is_being_written_is_told(tmp_path):
    write(tmp_path / "r")
    with replace.locked(tmp_path / "r"):
        assert told(tmp_path / "r")[0] == ("note", "another process is writing it; wait for it to finish")
        assert list(check_leftovers(tmp_path)) == []


def test_leftovers_of_killed_processes_are_named(tmp_path):
    write(tmp_path / "r")
    (tmp_path / ".r.lock").write_text("77\n")
    (tmp_path / f".r.new-77-{'0' * 16}").mkdir()
    os.rename(tmp_path / "r", tmp_path / f".r.old-77-{'0' * 16}")
    lock, new, old = check_leftovers(tmp_path)
    assert lock.level == "note"
    assert "does no harm" in lock.text
    assert "rm -r " in new.text
    assert old.level == "problem"
    assert "opening that run restores it" in old.text
    assert list(check_leftovers(tmp_path / "nowhere")) == []


def test_folder_of_runs_stands_for_the_runs_in_it(tmp_path):
    for name in ("a", "b"):
        write(tmp_path / "both" / name)
    (tmp_path / "both" / "report").mkdir()
    assert runs_in(tmp_path / "both") == [tmp_path / "both" / "a", tmp_path / "both" / "b"]
    assert runs_in(tmp_path / "both" / "a") == [tmp_path / "both" / "a"]
    assert runs_in(tmp_path / "both" / "report") == [tmp_path / "both" / "report"]


def test_edited_description_is_a_note_and_not_a_problem(tmp_path):
    with new_run(tmp_path / "r") as folder:
        folder.write("config.toml", "x = 1\n")
        folder.write("README.md", "about")
    (tmp_path / "r" / "README.md").write_text("edited")
    assert told(tmp_path / "r") == [
        ("note", "README.md changed or missing; the model is intact and does not need them")
    ]
