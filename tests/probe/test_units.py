"""Units: the one that tracks a feature is found, and measured on the other half of the text."""

from __future__ import annotations

import numpy as np
import pytest

from nextword.probe import selection, units
from nextword.probe.settings import ProbeSettings


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
