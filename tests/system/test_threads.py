"""Work is shared by as many threads as it can use, and waits for others as briefly as it can."""

import os
import subprocess
import sys
import time

import pytest
import torch

from nextword.blocks.recurrent import LSTM
from nextword.core import catalog
from nextword.system import machine, threads
from nextword.system.launch import Launch


@pytest.fixture(autouse=True)
def _two_threads():
    with threads.using(2):
        yield


def test_loops_of_few_rows_are_one_threads(monkeypatch):
    with threads.for_steps(threads.FEW_ROWS - 1):
        assert torch.get_num_threads() == 1
    with threads.for_steps(threads.FEW_ROWS):
        assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize(
    ("free", "rows", "used"), [(1, 1, 1), (2, 1, 2), (8, 1, 2), (1, threads.FEW_ROWS, 2)]
)
def test_fused_loops_of_few_rows_take_what_is_free(free, rows, used, monkeypatch):
    monkeypatch.setattr(threads, "free", lambda: free)
    with torch.no_grad(), threads.while_free(rows):
        assert torch.get_num_threads() == used
    with threads.while_free(rows):
        assert torch.get_num_threads() == 2  # while something is learned the number stays


def test_fused_layer_reads_the_same_with_any_number_of_threads(monkeypatch):
    torch.manual_seed(0)
    layer, found = LSTM(96, 96), []
    x_TBE, state = torch.randn(50, 3, 96), (torch.randn(3, 96), torch.randn(3, 96))
    for free in (1, 2):
        monkeypatch.setattr(threads, "free", lambda free=free: free)
        with torch.no_grad():
            h_TBH, after = layer.read(x_TBE, state)
        found.append([h_TBH, *after])
    for one, two in zip(*found, strict=True):
        torch.testing.assert_close(one, two, atol=1e-6, rtol=0)


@pytest.mark.parametrize("family", ["rnn", "gru", "gru-torch", "lstm"])
def test_reading_leaves_the_number_of_threads_as_it_was(family):
    kind = catalog.find("model", family)
    network = kind.build(kind.Settings(hidden=8, layers=1), 20, False)
    ids_BT = torch.randint(3, 20, (2, 9))
    features_BTD, _ = network.read(ids_BT, network.start(2))
    features_BTD.sum().backward()
    assert torch.get_num_threads() == 2


def test_use_of_processors_by_others_is_what_is_not_ours(monkeypatch):
    clock = iter([(0.0, 100.0, 5.0), (0.05, 100.1, 5.0), (1.0, 102.5, 6.0), (2.0, 102.0, 6.5)])
    monkeypatch.setattr(threads.Others, "_now", lambda self: next(clock))
    others = threads.Others()
    assert others.look() == 0.0  # too short to tell
    assert others.look() == pytest.approx(1.5)  # 2.5 seconds of work in one, and one of them is ours
    assert others.look() == 0.0  # the system counts in steps


def test_processors_that_others_use_are_not_free(monkeypatch):
    monkeypatch.setattr(threads, "allowed", lambda: 4)
    for used, free in ((0.0, 4), (0.4, 4), (0.9, 3), (3.2, 1), (9.0, 1)):
        monkeypatch.setattr(threads, "_others", type("", (), {"look": lambda self, used=used: used})())
        assert threads.free() == free


def test_work_of_this_process_is_seen_in_what_the_system_counts(tmp_path):
    before = machine.busy_seconds()
    if before is None:
        pytest.skip("this system does not tell")
    until = time.process_time() + 0.3
    while time.process_time() < until:
        pass
    assert machine.busy_seconds() > before + 0.1
    assert machine.busy_seconds(tmp_path) is None


SLICES = """
import os, sys
from nextword.system import threads
before = os.getpriority(os.PRIO_PROCESS, 0)
told = threads.ask_for_short_slices()
assert os.getpriority(os.PRIO_PROCESS, 0) == before, "as nice as before"
assert os.sched_getscheduler(0) == os.SCHED_OTHER
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a call of Linux")
def test_asking_for_short_slices_changes_nothing_else():
    subprocess.run(["nice", "-n", "3", sys.executable, "-c", SLICES], check=True)


def test_short_slices_are_not_asked_for_elsewhere(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert threads.ask_for_short_slices() is False
    assert os.getpriority(os.PRIO_PROCESS, 0) >= -20


def test_threads_are_set_and_set_back():
    before = torch.get_num_threads()
    with threads.using(1) as used:
        assert used == torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
    assert threads.allowed() >= 1


@pytest.mark.parametrize(
    ("asked", "world", "found"),
    [("1", 1, 1), ("3", 1, 3), ("64", 1, 4), ("", 1, 4), ("0", 1, 4), ("many", 1, 4), ("1", 2, 2)],
)
def test_threads_keep_to_what_openmp_was_told_unless_there_are_ranks(asked, world, found, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    monkeypatch.setattr(machine, "allowed", lambda: 4)
    monkeypatch.setattr(threads, "launched", lambda: Launch(world=world, local_world=world))
    assert threads.allowed() == found
