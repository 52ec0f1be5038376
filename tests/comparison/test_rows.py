"""Rows of a comparison in their order."""

from __future__ import annotations

from nextword.comparison.rows import Row, ranked


def test_ranking_puts_finite_probabilities_first_and_scores_last():
    rows = [Row("a", "", None), Row("s", "", 1.0, is_probability=False), Row("b", "", 2.0), Row("c", "", 1.5)]
    assert [row.model for row in ranked(rows)] == ["c", "b", "a", "s"]
