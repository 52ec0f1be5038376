"""A made-up comparison that the tests of ranking, report and pictures share."""

from __future__ import annotations

import pytest
from comparisons import BLOCKS, rows

from nextword.comparison.ranking import rank
from nextword.comparison.rows import Row


@pytest.fixture
def found():
    """Three models of three seeds, one without seeds, and one whose scores are not probabilities."""
    made = [*rows("lstm", 1.9, 3, seed=1), *rows("gru", 1.9005, 3, seed=2), *rows("ngram", 2.0),
            *rows("mixture", 1.95, 3, seed=3, note="0.30 ngram + 0.70 lstm", parts=["a", "b"])]  # fmt: skip
    made.append(Row("ngram-stupid", "", 1.0, is_probability=False, note="a score"))
    return rank(made, [1000.0] * BLOCKS)
