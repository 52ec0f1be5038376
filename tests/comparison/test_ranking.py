"""Means over seeds, the order of the models and how sure it is, in the table."""

from __future__ import annotations

import numpy as np
import pytest
from comparisons import BLOCKS, rows

from nextword.comparison.ranking import rank, table, verdict


def test_rows_of_one_model_are_ranked_as_one(found):
    by_name = {each.name: each for each in found}
    assert len(by_name["lstm"].rows) == 3
    assert by_name["lstm"].bits == pytest.approx(np.mean([row.bits_per_byte for row in by_name["lstm"].rows]))
    assert by_name["lstm"].spread > 0
    assert by_name["ngram"].spread is None
    assert found[-1].name == "ngram-stupid"


def test_the_test_tells_what_is_as_good_as_the_best(found):
    by_name = {each.name: each for each in found}
    assert found[0].is_best
    assert found[0].name in ("lstm", "gru")
    assert found[1].as_good
    assert by_name["ngram"].p < 0.05
    assert by_name["ngram"].verdict.startswith("worse, p")
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
    assert found[1].as_good


def test_the_table_shows_spread_and_verdict(found):
    shown = str(table(found))
    assert " ± 0.00" in shown
    assert "the best" in shown
    assert "trained/s" in shown
