"""Processor time of short work."""

from __future__ import annotations

from clocks import set_clock

from nextword.experiments import timing


def test_work_shorter_than_a_tick_of_the_clock_takes_time(monkeypatch):
    ticks = iter(k // 100 * 0.004 for k in range(10**6))  # a clock that 100 calls do not advance
    set_clock(monkeypatch, timing, process_time=lambda: next(ticks))
    found = timing.seconds(lambda: next(ticks), tries=3)
    assert len(found) == 3
    assert all(0 < each < 0.004 for each in found)
