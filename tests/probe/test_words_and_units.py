"""Embeddings, units and linear probes find what was put there, and say how sure that is."""

from __future__ import annotations

import numpy as np
import pytest

from nextword.core.errors import DataError
from nextword.probe import features, linear, selection, units, vectors
from nextword.probe.settings import ProbeSettings


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


def test_embeddings_of_the_words_of_the_text(subject):
    found = selection.look("embeddings", subject("window"), ProbeSettings(words=4, neighbours=2))
    assert found.names["Q"][0] == "the"
    assert found.arrays["near_QK"].shape == (4, 2)
    assert (found.arrays["near_QK"] > 2).all()
    assert "A map of the words" in found.parts[1].svg


def test_features_follow_quotes_lines_and_sentences():
    pieces = ["", "He", ' said "', "go", '"', ".", "\n", "Now"]
    found = features.numbers(pieces)
    assert found["inside quotes"].tolist() == [0, 0, 1, 1, 0, 0, 0, 0]
    assert found["position in the line"].tolist() == [0, 2, 9, 11, 12, 13, 0, 3]
    assert found["words of the sentence"].tolist() == [0, 1, 3, 3, 3, 0, 0, 1]
    assert [features.KINDS[i] for i in features.kinds(pieces)] == [
        "none", "small letter", "mark", "small letter", "mark", "mark", "space", "small letter",
    ]  # fmt: skip


def test_features_of_other_scripts():
    found = features.numbers(["「", "राम", "」", "。", "你好", "\n"])
    assert found["inside quotes"].tolist() == [1, 1, 0, 0, 0, 0]
    assert features.KINDS[features.kinds(["你"])[0]] == "letter"


def test_the_unit_that_tracks_a_feature_is_found_and_measured_on_the_other_half():
    rng = np.random.default_rng(2)
    values = rng.integers(0, 2, 400).astype(float)
    layer = rng.normal(size=(400, 6))
    layer[:, 3] = -values + 0.1 * rng.normal(size=400)
    found = units.best("inside quotes", values, [("words", layer), ("layer 1", layer)])
    assert (found.layer, found.unit) == ("layer 1", 3)
    assert found.r == pytest.approx(np.corrcoef(layer[200:, 3], values[200:])[0, 1])
    assert found.r < -0.9
    assert units.best("x", np.ones(400), [("words", layer), ("layer 1", layer)]) is None


def test_units_are_drawn_over_the_text(subject):
    made = subject("lstm")
    found = selection.look("units", made, ProbeSettings(tokens=90))
    assert any(part.title.startswith("Unit ") for part in found.parts[1:])
    one = selection.look("units", made, ProbeSettings(tokens=90, layer=2, unit=5))
    assert one.parts[1].title == "Unit 5 of layer 2, over the text"


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
    with pytest.raises(DataError, match="nothing in it changes"):
        linear.fit([np.zeros((100, 2))], {})
