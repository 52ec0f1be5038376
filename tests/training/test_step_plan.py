"""The plan of a training, revised while the minutes run."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nextword.training.clock import Plan


def test_progress_of_a_fixed_plan_is_the_middle_of_each_step():
    plan = Plan.of(4)
    assert [plan.progress(step) for step in (1, 2, 3, 4)] == pytest.approx([0.125, 0.375, 0.625, 0.875])


@given(st.lists(st.integers(1, 500), min_size=1, max_size=6), st.data())
def test_revised_plan_never_goes_back_and_ends_at_one(totals, data):
    plan, step, before = Plan.of(totals[0]), 0, 0.0
    for total in totals[1:]:
        for _ in range(data.draw(st.integers(0, 5))):
            step += 1
            assert plan.progress(step) >= before
            before = plan.progress(step)
        plan.revise(step, step + total)
    assert Plan.from_json(plan.to_json()) == plan
    assert plan.progress(plan.steps) <= 1.0
    assert plan.progress(plan.steps + 1) == pytest.approx(1.0)


def test_what_was_spent_before_a_revision_stays_spent():
    plan = Plan.of(100)
    plan.revise(50, 60)
    assert plan.progress(55) == pytest.approx(0.5 + 0.5 * 4.5 / 10)
    assert plan.progress(20) == pytest.approx(0.195)
