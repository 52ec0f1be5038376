"""Gaps between words: expected ones cost next to nothing, and all are written."""

from __future__ import annotations

from collections import Counter

import pytest

from nextword.text.gaps import GapModel


def test_expected_gaps_cost_next_to_nothing_and_rare_ones_more() -> None:
    model = GapModel.fit(Counter({(1, b" "): 10**6, (1, b"\t"): 10, (0, b""): 10**5}))
    assert model.cost(1, b" ") < 2e-5
    assert 5 < model.cost(1, b"\t") < model.cost(1, b"\v\v\v")
    assert model.cost(3, b"") < 1.0


def test_many_kinds_of_gaps_are_all_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nextword.text.gaps.LISTED", 3)
    model = GapModel.fit(Counter({(1, b" " * n): 100 - n for n in range(1, 50)}))
    assert len(model.listed[1]) == 3
    assert model.escaped[1] > 0
    for n in range(1, 50):
        asking = model.ask(1)
        next(asking)
        *symbols, (_, last) = model.symbols(1, b" " * n)
        for _, symbol in symbols:
            asking.send(symbol)
        with pytest.raises(StopIteration) as stop:
            asking.send(last)
        assert stop.value.value == b" " * n


def test_gap_costs_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    model = GapModel.default()
    costs = {n: model.cost(0, b" " * (n % 300)) for n in range(300)}
    model._costs = {(0, b"%d" % n): 0.0 for n in range((1 << 16) + 1)}
    assert model.cost(0, b" " * 299 + b"\t") > costs[298]
    assert len(model._costs) == 1
