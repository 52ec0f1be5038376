"""``nextword doctor``: one line a finding, exit code 1 for a problem, and nothing heavy is loaded."""

import subprocess
import sys

import pytest

from nextword.api import doctor as checks
from nextword.store import disk_check
from nextword.system.machine import Machine


@pytest.fixture(autouse=True)
def _no_threads_are_set(monkeypatch):
    for name in checks.THREADS:
        monkeypatch.delenv(name, raising=False)


def lines(done):
    return [line.split(None, 1) for line in done.out.strip().split("\n")]


def test_machine_versions_disk_and_cache_are_told(nextword, here):
    done = nextword("doctor")
    assert done.code == 0
    assert {level for level, _ in lines(done)} <= {"ok", "note"}
    for word in ("processors:", "memory:", "python:", "numpy:", "torch:", "threads:", "runs:", "cache:"):
        assert any(text.startswith(word) for _, text in lines(done)), word
    found = nextword("doctor", "--json").json
    assert found["problems"] == 0
    assert found["ok"] + found["notes"] == len(found["findings"])


def test_every_run_is_checked_and_a_flipped_bit_is_exit_code_1(nextword, corpus, here):
    for name in ("good", "bad"):
        assert nextword("train", corpus, "--model", "ngram", "--out", f"runs/{name}").code == 0
    assert "every SHA-256 matches" in nextword("doctor").out
    (here / "runs/bad/config.toml").write_text("changed")
    done = nextword("doctor")
    assert done.code == 1
    problems = [text for level, text in lines(done) if level == "problem"]
    assert len(problems) == 1
    assert "runs/bad/config.toml" in problems[0]
    assert "train the run again" in problems[0]
    assert nextword("doctor", "good").code == 0
    assert nextword("doctor", "bad", "--json").json["problems"] == 1


def test_run_that_is_not_there_is_a_problem(nextword, here):
    done = nextword("doctor", "nowhere")
    assert done.code == 1
    assert "there is no run 'nowhere'" in done.out


def test_nothing_heavy_is_imported(here):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "nextword", "doctor"],
        capture_output=True,
        text=True,
        check=True,
        cwd=here,
    )
    found = {line.split("|")[-1].strip() for line in done.stderr.split("\n") if "|" in line}
    assert not found & {"torch", "numba", "matplotlib", "tokenizers"}


def told(findings):
    return [(each.level, f"{each.about}: {each.text}") for each in findings]


def test_missing_and_old_packages_are_told_with_the_line_to_run(monkeypatch):
    there = {"numpy": "1.9.0", "torch": "2.13.0+cpu"}

    def version(name):
        if name not in there:
            raise checks.PackageNotFoundError(name)
        return there[name]

    monkeypatch.setattr(checks, "version", version)
    base, extras = dict(told(checks._versions())[::-1]), told(checks._extras())
    assert "run: pip install 'nextword'" in base["problem"]
    assert any("numpy: 1.9.0 is too old" in text for _, text in told(checks._versions()))
    assert ("ok", "torch: 2.13.0+cpu") in extras
    assert any("pyspark: not installed" in text and "'nextword[spark]'" in text for _, text in extras)


@pytest.mark.parametrize(
    ("value", "level", "words"),
    [("1", "ok", "1"), ("99999", "note", "unset"), ("many", "problem", "number"), ("0", "problem", "0")],
)
def test_number_of_threads_is_looked_at(value, level, words, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    ((found, text),) = told(checks._threads(checks.read_machine()))
    assert (found, words in text) == (level, True)


def test_small_container_is_told_what_to_set():
    machine = Machine("x86_64", 64, 64, 1.5, 2**36, 2**30, 5 * 10**8, ("avx2",))
    found = {each.about: each for each in checks._machine(machine)}
    assert found["processors"].level == "note"
    assert "OMP_NUM_THREADS=2" in found["processors"].text
    assert "train.memory=400M" in found["memory"].text
    assert found["instructions"].text == "avx2"
    old = Machine("x86_64", 1, 1, None, None, None, None, ("asimd",))
    assert "without avx2" in next(each.text for each in checks._machine(old) if each.about == "instructions")


@pytest.mark.parametrize(
    ("free", "level"), [(None, "note"), (1_000, "problem"), (10**9, "note"), (10**12, "ok")]
)
def test_room_on_the_disk(free, level, tmp_path, monkeypatch):
    monkeypatch.setattr(disk_check, "free_bytes", lambda folder: free)
    first, second = disk_check.check_disk("runs", tmp_path)
    assert first.level == level
    assert second.level == "ok"
    assert list(tmp_path.iterdir()) == []


def test_disk_that_cannot_be_written_or_locked(tmp_path, monkeypatch):
    monkeypatch.setattr(disk_check, "fsync_file", _refuse)
    assert list(disk_check.check_disk("runs", tmp_path))[1].text.endswith("choose a writable folder")
    monkeypatch.undo()
    monkeypatch.setattr(disk_check.replace, "_try_lock", lambda descriptor: True)
    assert "does not support locks" in list(disk_check.check_disk("runs", tmp_path))[1].text


def _refuse(path):
    raise OSError(30, "Read-only file system")


def test_functions_that_cannot_be_kept_are_told(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "not yet there"))
    [found] = checks._compiled()
    assert (found.level, str(tmp_path) in found.text) == ("ok", True)
    monkeypatch.setattr(checks.os, "access", lambda path, mode: False)
    [found] = checks._compiled()
    assert found.level == "note"
    assert "set NUMBA_CACHE_DIR" in found.text


def test_limit_of_the_cache_that_is_no_size_is_a_problem(monkeypatch):
    monkeypatch.setenv("NEXTWORD_CACHE_LIMIT", "plenty")
    ((level, text),) = told(checks._cache())
    assert level == "problem"
    assert "plenty" in text
