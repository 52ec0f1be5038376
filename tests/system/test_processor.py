"""What the processor can really do is found out once, by a child that may die, and remembered."""

import json
import os
import platform
import re
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from places import SUPPORT
from small_texts import LINES

from nextword.api import doctor
from nextword.system import processor, products
from nextword.system.processor import LIMIT, Processor, find_out, known, read_answer

BAD = SUPPORT / "bad_processor"
FORKS = hasattr(os, "fork")
RATIOS = {"linear 128": 1.9, "linear 512": 2.0, "lstm 128": 1.5, "lstm 512": 1.3}
FINE = {"limit": "", "reached": "end", "signal": 0, "missing": "", "ratios": RATIOS}


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """A machine that has found nothing out yet; its cache folder."""
    monkeypatch.setenv("NEXTWORD_CACHE", str(tmp_path / "cache"))
    for name in (LIMIT, "NEXTWORD_MAX_CPU_ISA"):
        monkeypatch.setenv(name, "")  # so that it is put back afterwards
        monkeypatch.delenv(name)
    monkeypatch.setattr(processor, "_answer", None)
    return tmp_path / "cache" / "processor"


@pytest.fixture
def asked(monkeypatch):
    """Counts the child processes, which answer at once."""
    calls = []

    def ask():
        calls.append(1)
        return Processor("works", "", RATIOS)

    monkeypatch.setattr(processor, "_ask", ask)
    return calls


def crash(monkeypatch, kind):
    monkeypatch.setenv("PYTHONPATH", str(BAD))
    monkeypatch.setenv("NEXTWORD_TEST_CRASH", kind)


def test_child_tries_every_kind_and_times_both_types(fresh):
    found = find_out()
    assert found.bf16 in ("works", "missing", "crashes")
    assert found.has_float32
    if found.bf16 == "works":
        assert set(found.ratios) == {
            f"{kind} {width}" for kind in products.TIMED for width in products.WIDTHS
        }
        assert all(0 < ratio < 1000 for ratio in found.ratios.values())


def test_answer_is_asked_for_once_per_machine_and_version(fresh, asked, monkeypatch):
    assert find_out() == find_out()
    processor.forget()
    assert find_out() == known()
    assert len(asked) == 1
    assert [path.suffix for path in fresh.iterdir()] == [".json"]
    monkeypatch.setattr(processor, "version", lambda package: "99.0")
    processor.forget()
    assert known() is None
    find_out()
    monkeypatch.setattr(platform, "node", lambda: "another machine")
    processor.forget()
    assert known() is None
    find_out()
    assert len(asked) == 3


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: "[1, 2]",
        lambda text: text.replace('"works"', '"wonderful"'),
        lambda text: text.replace('"limit": ""', '"limit": "; rm"'),
        lambda text: text.replace("1.9", '"fast"'),
        lambda text: re.sub('"machine": "[^"]*"', '"machine": "of somebody else"', text),
        lambda text: json.dumps({"found": 3, "about": json.loads(text)["about"]}),
    ],
    ids=["empty", "half", "list", "state", "limit", "ratio", "other machine", "number"],
)
def test_damaged_or_foreign_answer_is_asked_for_again_and_replaced(damage, fresh, asked):
    find_out()
    path = processor.place()
    good = path.read_text()
    path.write_text(damage(good))
    processor.forget()
    assert find_out() == Processor("works", "", RATIOS)
    assert len(asked) == 2
    assert json.loads(path.read_text()) == json.loads(good)


def test_cache_that_cannot_be_written_costs_only_time(fresh, asked, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NEXTWORD_CACHE", str(tmp_path / "file" / "below"))
    assert find_out().bf16 == "works"
    assert find_out().bf16 == "works"
    assert len(asked) == 1
    processor.forget()
    assert find_out().bf16 == "works"
    assert len(asked) == 2


def test_two_processes_at_once_take_the_same_answer(fresh):
    """Each would choose by its own measurement; the first one that is written counts for both."""
    code = "from nextword.system.processor import find_out; print(sorted(find_out().ratios.items()))"
    both = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(2)]
    told = [each.communicate()[0] for each in both]
    assert [each.returncode for each in both] == [0, 0]
    assert told[0] == told[1] != b""
    assert len(list(fresh.iterdir())) == 1


@pytest.mark.skipif(not FORKS, reason="attempts are forked")
@pytest.mark.parametrize(
    ("kind", "bf16", "limit", "words"),
    [
        ("amx", ("works", "crashes"), ("AVX512_CORE_FP16", ""), "bf16 products crash with SIGILL"),
        ("bf16", ("crashes",), ("",), "bf16 products crash with SIGILL"),
        ("fp32", ("works", "missing"), ("AVX512_CORE_FP16",), "float32 products crash with SIGILL"),
    ],
)
def test_child_that_dies_steps_down(kind, bf16, limit, words, fresh, monkeypatch):
    """Where this machine has no bf16 at all, a limit does not bring it."""
    crash(monkeypatch, kind)
    found = find_out()
    assert found.bf16 in bf16
    assert found.limit in limit
    assert words in found.why
    assert found.has_float32


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("#!/bin/sh\nkill -ILL $$\n", "could not be tried"),
        ("#!/bin/sh\nexit 3\n", "could not be tried"),
        ("#!/bin/sh\necho nonsense\n", "could not be tried"),
        ("#!/bin/sh\necho '[]'\n", "could not be tried"),
        ("#!/bin/sh\nexec sleep 60\n", "timed out after 0.2 s"),
    ],
    ids=["dies", "fails", "nonsense", "empty", "hangs"],
)
def test_interpreter_that_does_not_answer_means_float32(script, words, fresh, tmp_path, monkeypatch):
    fake = tmp_path / "python"
    fake.write_text(script)
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake))
    monkeypatch.setattr(processor, "_PATIENCE", 0.2 if "sleep" in script else 60)
    found = find_out()
    assert found.bf16 == "unknown"
    assert words in found.why
    assert found.faster("linear", 128) == "fp32"
    assert found.refusal


def died(reached, limit="", number=4):
    return {"limit": limit, "reached": reached, "signal": number}


def test_no_lower_limit_is_set_than_is_needed():
    fine, none = replace(Processor("works"), ratios=RATIOS), {"missing": "emulated", "ratios": {}}
    assert read_answer([FINE]) == fine
    assert read_answer([FINE | none]) == Processor("missing", why="emulated")
    fp16 = FINE | {"limit": "AVX512_CORE_FP16"}
    assert read_answer([died("bf16 lstm"), fp16]).limit == "AVX512_CORE_FP16"
    assert read_answer([died("times"), fp16]).bf16 == "works"
    only = read_answer([died("bf16 lstm"), fp16 | none])
    assert (only.bf16, only.limit) == ("crashes", "")  # float32 needs no limit
    both = read_answer([died("fp32 lstm"), fp16 | none])
    assert (both.bf16, both.limit) == ("missing", "AVX512_CORE_FP16")
    never = read_answer([died("bf16 lstm", each) for each in processor.LIMITS])
    assert (never.bf16, never.limit, never.has_float32) == ("crashes", "", True)
    late = read_answer([died("fp32 lstm"), died("fp32 lstm", "AVX512_CORE_FP16"), died("bf16 lstm", "AVX2")])
    assert (late.limit, late.has_float32) == ("AVX2", True)
    assert not read_answer([died("fp32 linear", each) for each in processor.LIMITS]).has_float32
    assert "fail on" in read_answer([died("bf16 lstm", number=0)]).why


def test_limit_counts_only_if_torch_was_loaded_after_it(fresh, asked, monkeypatch):
    limited = Processor("works", "AVX512_CORE_FP16", RATIOS, "bf16 products crash unless …")
    processor.remember(limited)
    monkeypatch.setitem(sys.modules, "torch", object())
    processor.prepare()
    assert LIMIT not in os.environ
    assert "torch was already loaded" in limited.refusal
    monkeypatch.delitem(sys.modules, "torch")
    processor.prepare()
    assert os.environ[LIMIT] == "AVX512_CORE_FP16"
    assert limited.refusal == ""
    processor.forget()
    assert known() == limited  # the limit we have set ourselves is not another machine
    assert not asked


def test_users_own_limit_is_another_case(fresh, asked, monkeypatch):
    find_out()
    processor.forget()
    monkeypatch.setenv(LIMIT, "AVX2")
    assert known() is None


NEWS = "unless ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16, which nextword sets"
SMALL = [
    "--tokenizer", "words", "--set", "model.hidden=8", "--set", "train.steps=3", "--set", "train.batch=2",
    "--set", "train.length=4",
]  # fmt: skip


def command(*arguments, cwd):
    line = [sys.executable, "-m", "nextword", *arguments]
    return subprocess.run(line, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.skipif(not FORKS, reason="attempts are forked")
def test_training_on_a_processor_that_crashes_ends_well_and_tells_it_once(fresh, tmp_path, monkeypatch):
    crash(monkeypatch, "amx")
    (tmp_path / "t.txt").write_text(LINES * 20)
    first = command("train", "t.txt", "--model", "lstm", *SMALL, "--out", "one", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    again = command("train", "t.txt", "--model", "lstm", *SMALL, "--out", "two", cwd=tmp_path)
    assert again.returncode == 0
    assert first.stderr.count("SIGILL") == 1
    assert "SIGILL" not in again.stderr
    if processor.find_out().bf16 == "works":  # limits bring bf16 back only where there is some
        assert NEWS in first.stderr
    crash(monkeypatch, "bf16")
    monkeypatch.setenv("NEXTWORD_CACHE", str(tmp_path / "other"))
    done = command(
        "train",
        "t.txt",
        "--model",
        "lstm",
        *SMALL,
        "--out",
        "three",
        "--set",
        "train.precision=bf16",
        cwd=tmp_path,
    )
    assert done.returncode == 1
    assert "'train.precision' is bf16, but bf16 products crash with SIGILL" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("found", "level", "words"),
    [
        (Processor("works", "", RATIOS), "ok", "networks use bf16"),
        (Processor("works", "", dict.fromkeys(RATIOS, 0.5)), "ok", "networks use float32"),
        (Processor("works", "", RATIOS | {"lstm 128": 0.5}), "ok", "the faster type for each width"),
        (Processor("works", "AVX2", RATIOS, "bf16 products crash"), "note", "bf16 products crash"),
        (
            Processor("missing", why="emulated"),
            "ok",
            "networks use float32; bf16 is not available (emulated)",
        ),
        (
            Processor("crashes", why="bf16 products crash"),
            "note",
            "networks use float32; bf16 products crash",
        ),
        (
            Processor("crashes", why="all crash", has_float32=False),
            "problem",
            "install another version of torch",
        ),
    ],
)
def test_doctor_tells_what_was_found_and_why(found, level, words, monkeypatch):
    monkeypatch.setattr(processor, "_answer", found)
    (told,) = doctor._products()
    assert told.level == level
    assert words in told.text


def test_doctor_asks_again_where_there_was_no_answer(fresh, asked):
    processor.remember(Processor("unknown", why="no answer"))
    (told,) = doctor._products()
    assert told.level == "ok"
    assert len(asked) == 1


def test_what_is_remembered_costs_nothing(fresh, asked):
    find_out()
    processor.forget()
    began = time.process_time()
    find_out()
    assert time.process_time() - began < 0.5  # a file is read; the child loads torch
