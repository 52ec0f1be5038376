"""Vectors of words: neighbours by cosine, and the plane of most variance."""

from __future__ import annotations

import numpy as np
import pytest

from nextword.probe import vectors


def test_neighbours_are_by_cosine_and_never_the_word_itself():
    rows = np.array([[9.0, 9.0], [1.0, 0.0], [2.0, 0.1], [0.0, 3.0], [-1.0, 0.0]])
    near, cosine = vectors.neighbours(rows, np.array([1]), 3, hidden=1)
    assert near[0].tolist() == [2, 3, 4]
    assert cosine[0] == pytest.approx([2 / np.hypot(2, 0.1), 0.0, -1.0])


def test_the_map_is_the_plane_of_most_variance():
    points = np.random.default_rng(0).normal(size=(200, 5)) * [10, 5, 1, 0.1, 0.1]
    mean, axes, shares = vectors.plane(points)
    found = (points - mean) @ axes
    assert found.var(axis=0) == pytest.approx(
        np.sort(np.linalg.eigvalsh(np.cov(points.T, bias=True)))[::-1][:2]
    )
    assert shares.sum() > 0.98
    assert axes.T @ axes == pytest.approx(np.eye(2), abs=1e-12)


def test_a_map_of_one_word_or_of_equal_words_is_drawn():
    for points in (np.ones((1, 4)), np.ones((3, 4)), np.ones((3, 1))):
        _, axes, shares = vectors.plane(points)
        assert np.isfinite(axes).all()
        assert shares.tolist() == [0, 0]
