"""Sources of similar length are read together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nextword.models.source_reader import similar_rows


@given(st.lists(st.integers(0, 60), max_size=80))
def test_groups_hold_every_row_once_and_little_is_filled_up(lengths):
    groups = similar_rows(lengths)
    assert sorted(row for rows in groups for row in rows) == list(range(len(lengths)))
    for rows in groups:
        own = sorted((lengths[row] for row in rows), reverse=True)
        assert all((own[0] - length) * (len(own) - place) <= 64 for place, length in enumerate(own))


def test_rows_of_one_length_are_one_group():
    assert similar_rows([7] * 64) == [list(range(64))]
