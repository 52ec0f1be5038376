"""Rows past the trained length: what is measured, and how it is judged."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from nextword.data.batches.batch import NOT_COUNTED
from nextword.evaluation import significance
from nextword.experiments import length
from nextword.experiments.finding import Verdict
from nextword.experiments.small import build, nats, settings_of


def network(name):
    made = build(settings_of("transformer", 3, length._sets(name, 1, 2)), 20).eval()
    with torch.no_grad():  # a new network has matrices of zeros, so that nothing would depend on the past
        for weight in made.parameters():
            weight.copy_(
                torch.empty_like(weight).normal_(std=0.3, generator=torch.Generator().manual_seed(5))
            )
    return made


def rows(count):
    return np.random.default_rng(1).integers(3, 20, (count, length.LONGEST))


def plain_nats(made, ids):
    """The cost of the last token of a row, by one pass over all before it."""
    with torch.no_grad():
        features_BTD, _ = made.read(torch.from_numpy(ids[None, :-1]), made.start(1))
        logits_V = made.head.logits(features_BTD[:, -1])[0].double()
    return float(torch.logsumexp(logits_V, 0) - logits_V[ids[-1]])


@pytest.mark.parametrize("name", [name for name in length.KINDS if name != length.LEARNED])
def test_a_long_row_is_read_in_one_window(name):
    made, ids_BT = network(name), rows(1)
    found_BT = nats(made.model(), ids_BT)
    for place in (length.TRAINED - 1, length.TRAINED + 5, length.LONGEST - 1):
        assert found_BT[0, place] == pytest.approx(plain_nats(made, ids_BT[0, : place + 1]), abs=1e-4)


@pytest.mark.parametrize("name", ["sinusoidal", "rope", "alibi", "lstm"])
def test_short_windows_give_every_letter_a_trained_context(name):
    made, ids_BT = network(name), rows(2)
    found_BX = length.in_short_windows(made.model(), ids_BT)
    assert found_BX.shape == (2, length.LONGEST - length.FAR)
    for at in (0, 15, 16, 100, length.LONGEST - length.FAR - 1):
        place = length.FAR + at
        first = place - at % length.HALF - length.HALF
        assert found_BX[1, at] == pytest.approx(plain_nats(made, ids_BT[1, first : place + 1]), abs=1e-4)


def test_reading_on_differs_from_short_windows():
    made, ids_BT = network("sinusoidal"), rows(2)
    on_BX = nats(made.model(), ids_BT)[:, length.FAR :]
    assert np.abs(on_BX - length.in_short_windows(made.model(), ids_BT)).max() > 0.01


def test_learned_positions_end_at_the_trained_length():
    made = network(length.LEARNED)
    assert len(made.position.table_WD) == length.TRAINED
    with pytest.raises((IndexError, RuntimeError)):
        made.position.embed(torch.zeros(1, 1, 48), torch.tensor([[length.TRAINED]]))


def test_a_question_asks_for_the_one_value_before_it():
    batch = length.value_batch(np.random.default_rng(0), rows=40)
    assert batch.inputs_BT.shape == (40, length.TRAINED)
    for ids, targets in zip(batch.inputs_BT, batch.targets_BT, strict=True):
        (value,) = np.flatnonzero((ids >= length.FIRST_VALUE) & (ids < length.FIRST_FILLER))
        (asked,) = np.flatnonzero(ids == length.ASK)
        assert value < asked
        assert targets[asked] == ids[value]
        assert (np.delete(targets, asked) == NOT_COUNTED).all()


def test_the_value_stands_as_far_back_as_it_should():
    for distance in length.DISTANCES:
        ids_BT, value_B = length.value_rows(np.random.default_rng(0), 5, distance)
        assert (ids_BT[:, -1] == length.ASK).all()
        assert (ids_BT[:, -1 - distance] == value_B).all()
        assert ids_BT.shape[1] <= length.LONGEST


def test_the_cost_of_reading_on_is_the_mean_difference():
    rng = np.random.default_rng(2)
    short = [rng.normal(2.0, 0.3, 30) for _ in range(3)]
    on = [each + 0.2 + rng.normal(0, 0.02, 30) for each in short]
    test = length.costs_more(on, short)
    assert test.behind == pytest.approx(float(np.mean(np.array(on) - np.array(short))))
    assert 0.15 < test.low < test.behind < test.high < 0.25
    assert test.p < 0.05


def measured(behind, low, high):
    return significance.Test(behind, low, high, math.nan, 0.0)


def test_a_cost_is_judged_by_margin_and_significance():
    more, same, unclear = measured(0.3, 0.2, 0.4), measured(0.01, -0.01, 0.03), measured(0.2, -0.1, 0.5)
    better = measured(-0.3, -0.4, -0.2)
    assert length.by_change(more, 0.01, "more") is Verdict.HELD
    assert length.by_change(more, 0.01, "no more") is Verdict.FAILED
    assert length.by_change(more, 0.2, "more") is Verdict.OPEN  # not significant after Holm's correction
    assert length.by_change(same, 0.01, "no more") is Verdict.HELD  # significant, but too small to matter
    assert length.by_change(same, 0.5, "more") is Verdict.FAILED
    assert length.by_change(better, 0.01, "no more") is Verdict.HELD
    assert {length.by_change(unclear, 0.3, says) for says in ("more", "no more")} == {Verdict.OPEN}


def shares(near, far):
    found = np.full(len(length.DISTANCES), 0.5)
    found[length.DISTANCES.index(length.NEAR)], found[length.DISTANCES.index(length.FOUR_TIMES)] = near, far
    return found


def test_recall_is_judged_seed_by_seed_where_it_was_learned():
    kept, lost, never = shares(1.0, 0.9), shares(1.0, 0.1), shares(0.2, 0.1)
    assert length.by_recall({"a": np.array([kept, kept])}, True) is Verdict.HELD
    assert length.by_recall({"a": np.array([kept]), "b": np.array([lost])}, True) is Verdict.PARTLY
    assert length.by_recall({"a": np.array([kept, never])}, True) is Verdict.HELD
    assert length.by_recall({"a": np.array([lost, lost])}, False) is Verdict.HELD
    assert length.by_recall({"a": np.array([lost])}, True) is Verdict.FAILED
    assert length.by_recall({"a": np.array([never])}, False) is Verdict.OPEN


def test_a_window_guesses_beyond_its_reach():
    is_near = np.array([distance <= length.REACH for distance in length.DISTANCES])
    guesses, recalls = np.where(is_near, 1.0, 0.13), np.ones(len(length.DISTANCES))
    assert length.by_reach(np.array([guesses, guesses])) is Verdict.HELD
    assert length.by_reach(np.array([guesses, recalls])) is Verdict.FAILED
    assert length.by_reach(np.array([guesses, np.full(len(length.DISTANCES), 0.13)])) is Verdict.OPEN


def test_what_lies_beyond_the_reach_of_a_window_changes_nothing():
    made, ids_BT = network(length.WINDOW), rows(1)
    other_BT = ids_BT.copy()
    other_BT[:, 99 - length.REACH - 1] = ids_BT[:, 99 - length.REACH - 1] % 17 + 3
    near_BT = ids_BT.copy()
    near_BT[:, 99 - length.REACH] = ids_BT[:, 99 - length.REACH] % 17 + 3
    first, far, near = (nats(made.model(), each)[0, 100] for each in (ids_BT, other_BT, near_BT))
    assert far == pytest.approx(first, abs=1e-6)
    assert near != pytest.approx(first, abs=1e-6)
