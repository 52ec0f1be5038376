"""Means over seeds, the order of the models and how sure it is, in the table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from comparisons import BLOCKS, rows

from nextword.comparison.ranking import differences, few_seeds, rank, table, verdict


def test_rows_of_one_model_are_ranked_as_one(found):
    by_name = {each.name: each for each in found}
    assert len(by_name["lstm"].rows) == 3
    assert by_name["lstm"].value == pytest.approx(
        np.mean([row.bits_per_byte for row in by_name["lstm"].rows])
    )
    assert by_name["lstm"].spread > 0
    assert by_name["ngram"].spread is None
    assert found[-1].name == "ngram-stupid"


def test_the_test_tells_what_differs_from_the_best(found):
    by_name = {each.name: each for each in found}
    assert found[0].is_best
    assert found[0].name in ("lstm", "gru")
    assert found[1].differs is False
    assert found[1].verdict.startswith("no significant difference (p = ")
    assert by_name["ngram"].p < 0.05
    assert by_name["ngram"].verdict.startswith("worse (p")
    assert by_name["ngram"].test.behind == pytest.approx(0.1, abs=0.01)
    assert by_name["ngram-stupid"].p is None
    assert "not differ significantly from it" in verdict(found)


def test_one_model_needs_no_test():
    (only,) = rank(rows("lstm", 1.9, 2), [1000.0] * BLOCKS)
    assert only.p is None
    assert verdict([only]).startswith("lstm predicts the new text best")


def test_a_difference_that_nobody_sees_is_none():
    best, other = rows("a", 1.9)[0], rows("b", 1.9)[0]
    other.blocks[:] = [bits + 0.2 for bits in best.blocks]
    found = rank([best, other], [1000.0] * BLOCKS)
    assert found[1].p < 0.001
    assert found[1].differs is False
    assert found[1].verdict == "behind by less than 0.0005"


def test_two_seeds_are_not_enough_for_a_verdict():
    two = [*rows("lstm", 1.9, 2, seed=1), *rows("gru", 2.5, 2, seed=2)]
    found = rank(two, [1000.0] * BLOCKS)
    assert (found[0].verdict, found[1].verdict) == ("lowest mean", "no verdict below 3 seeds")
    assert found[1].p is None
    assert found[1].differs is None
    assert "nothing is decided" in verdict(found)
    values = found[1].to_json()["test"]
    assert values["low"] < values["behind"] < values["high"]
    assert values["significant"] is None
    # a count model has no seeds: the text decides
    counted = rank([*rows("a", 1.9), *rows("b", 2.5)], [1000.0] * BLOCKS)
    assert counted[1].verdict == "worse (p < 0.001)"
    mixed = rank([*rows("a", 1.9), *two], [1000.0] * BLOCKS)
    assert {each.name: each.p is None for each in mixed[1:]} == {"lstm": True, "gru": True}


def test_a_single_seed_is_told_to_be_one():
    one = [replace(rows(name, bits)[0], seed=0) for name, bits in (("lstm", 1.9), ("gru", 2.5))]
    found = rank(one, [1000.0] * BLOCKS)
    assert "one seed only of lstm and gru" in few_seeds(found)
    assert few_seeds(rank([*rows("a", 1.9), *rows("b", 2.5)], [1000.0] * BLOCKS)) == ""


def test_differences_are_shown_with_their_interval_and_what_could_be_found(found):
    shown = differences(found)
    assert shown.columns == (
        "bits per byte", "difference", "95 % interval", "detectable", f"against {found[0].name}"
    )  # fmt: skip
    ngram = next(row for row in shown.rows if row[0] == "ngram")
    low, high = (float(part) for part in str(ngram[2]).split(" to "))
    assert low < float(str(ngram[1])) < high
    assert 0 < float(str(ngram[3])) < 0.1
    assert differences(found[:1]) is None


def test_the_table_shows_spread_and_verdict(found):
    shown = str(table(found))
    assert " ± 0.00" in shown
    assert "the best" in shown
    assert "trained/s" in shown
