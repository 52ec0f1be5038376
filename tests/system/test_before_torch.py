"""The program makes memory, threads and instructions ready once torch comes; the library never does."""

import os
import subprocess
import sys
from importlib.machinery import ModuleSpec

import pytest

from nextword.system import allocator, before_torch, processor, threads


@pytest.mark.parametrize("is_installed", [True, False])
def test_it_waits_for_torch_and_then_steps_aside(is_installed, monkeypatch):
    called = []
    found = ModuleSpec("torch", None) if is_installed else None
    monkeypatch.setattr(before_torch.PathFinder, "find_spec", lambda name: found)
    monkeypatch.setattr(before_torch, "make_ready", lambda tell: called.append(1))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    before_torch.prepare(print)
    finder = sys.meta_path[0]
    assert isinstance(finder, before_torch.BeforeTorch)
    assert finder.find_spec("numpy", None) is None
    assert not called
    assert finder.find_spec("torch", None) is None
    assert called == [1] * is_installed
    assert finder not in sys.meta_path


def test_news_of_the_processor_are_told(monkeypatch):
    told, done = [], []
    monkeypatch.setattr(allocator, "keep_big_arrays", lambda: done.append("memory"))
    monkeypatch.setattr(threads, "wait_briefly", lambda: done.append("threads"))
    monkeypatch.setattr(threads, "ask_for_short_slices", lambda: done.append("slices"))
    monkeypatch.setattr(processor, "prepare", lambda: "bf16 products crash")
    before_torch.make_ready(told.append)
    assert (told, done) == (["bf16 products crash"], ["memory", "threads", "slices"])


@pytest.mark.parametrize("name", ["OMP_WAIT_POLICY", "GOMP_SPINCOUNT"])
def test_waiting_that_somebody_has_chosen_stays(name, monkeypatch):
    for each in threads._POLICIES:
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setenv(name, "passive")
    threads.wait_briefly()
    assert {each: os.environ.get(each) for each in threads._POLICIES}[name] == "passive"
    assert sum(each in os.environ for each in threads._POLICIES) == 1


def test_importing_the_library_changes_nothing():
    code = (
        "import os, sys, nextword\n"
        "before = dict(os.environ)\n"
        "import nextword.api.train, nextword.system.before_torch as b\n"
        "assert dict(os.environ) == before\n"
        "sys.exit(any(isinstance(finder, b.BeforeTorch) for finder in sys.meta_path))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
