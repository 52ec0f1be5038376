"""Durations as people say them."""

import math

import pytest

from nextword.core.durations import about


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.3, "about 5 s"),
        (22, "about 20 s"),
        (58, "about 1 minute"),
        (260, "about 4 minutes"),
        (3 * 3600, "about 3 hours"),
        (13_000, "about 3.6 hours"),
        (900_000, "about 10 days"),
        (math.inf, "an unknown time"),
    ],
)
def test_estimate_is_rounded_to_what_is_worth_saying(seconds, said):
    assert about(seconds) == said
