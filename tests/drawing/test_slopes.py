"""Pictures of differences: every whisker is whole, or has an arrow where it goes on."""

import re

import pytest

from nextword.drawing.slopes import Interval, intervals


def drawn(found):
    """The dots, the whiskers' ends and the number of arrows, from the picture itself."""
    picture = intervals(found, "differences", "bits")
    dots = [float(x) + 3.2 for x in re.findall(r'd="M([\d.]+) \d+a3\.2', picture)]
    ends = [tuple(map(float, pair)) for pair in re.findall(r'd="M([\d.]+) \d+H([\d.]+)', picture)]
    return dots, ends, len(re.findall(r"M[\d.]+ \d+L[\d.]+ \d+L", picture))


def test_whiskers_go_on_beyond_the_dots():
    dots, ends, arrows = drawn([Interval("a", 0.01, 0.005, 0.015), Interval("b", -0.02, -0.025, -0.015)])
    assert arrows == 0
    assert dots == [pytest.approx(sum(pair) / 2, abs=0.2) for pair in ends]


def test_a_whisker_that_would_hide_the_dots_is_cut_off_with_an_arrow():
    dots, ends, arrows = drawn([Interval("a", 0.01, -5.0, 5.0), Interval("b", -0.01, -0.02, 0.0)])
    assert arrows == 2
    assert dots[0] - dots[1] > 0.4 * (ends[0][1] - ends[0][0])
    assert ends[1][1] == pytest.approx(ends[1][0] + 2 * (ends[1][1] - dots[1]), abs=0.2)


@pytest.mark.parametrize("found", [[], [Interval("a", 0.0, 0.0, 0.0)], [Interval("a", 0.0, -1.0, 1.0)]])
def test_nothing_that_differs_can_be_drawn(found):
    assert drawn(found)[2] == 0


def test_what_was_not_measured_has_a_name_only():
    dots, ends, _ = drawn([Interval("a", float("nan"), 0.0, 0.0), Interval("b", 1.0, 0.5, 1.5)])
    assert (len(dots), len(ends)) == (1, 1)
