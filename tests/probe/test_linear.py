"""Linear probes read what is there and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from nextword.core.errors import DataError
from nextword.probe import linear, selection


def test_a_linear_probe_reads_what_is_there_and_nothing_else():
    rng = np.random.default_rng(0)
    classes = {"there": rng.integers(0, 3, 600), "not there": rng.integers(0, 2, 600)}
    layer = rng.normal(size=(600, 10))
    layer[:, :3] += 4 * np.eye(3)[classes["there"]]
    there, absent = linear.fit([layer, rng.normal(size=(600, 4))], classes)
    assert there.accuracy_L[0] > 0.95
    assert there.accuracy_L[1] < 0.5
    assert abs(absent.accuracy_L[0] - absent.majority) < 0.15
    assert there.removed[0] == pytest.approx((there.accuracy_L[0] - there.majority) / (1 - there.majority))


def test_the_ridge_is_least_squares_where_nothing_holds_it_back():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(50, 4)), rng.integers(0, 2, 50)
    hot = np.eye(2)[y]
    scaled = np.column_stack([(x - x.mean(0)) / x.std(0), np.ones(50)])
    expected = np.argmax(scaled @ np.linalg.lstsq(scaled, hot, rcond=None)[0], axis=1)
    assert linear.Ridge(x).predict(x, hot, 1e-9).tolist() == expected.tolist()


def test_a_text_too_short_or_too_even_is_refused(subject):
    made = subject("gru")
    made.given = "the cat"
    with pytest.raises(DataError, match="a linear probe needs 60 or more"):
        selection.look("linear", made)
    with pytest.raises(DataError, match="no feature changes"):
        linear.fit([np.zeros((100, 2))], {})
