"""Places at which the running mean is looked at."""

from __future__ import annotations

from nextword.experiments.random_truncation import places


def test_the_running_mean_is_looked_at_in_rounded_steps():
    assert places(40) == [1, 2, 5, 10, 20, 40]
    assert places(100) == [1, 2, 5, 10, 20, 50, 100]
