"""The cliff: its slope is that of its loss."""

from __future__ import annotations

import pytest

from nextword.experiments import clipping


def test_the_slope_of_the_cliff_is_that_of_its_loss():
    for w in (4.5, 4.99, 5.3):
        numeric = (clipping.unit_loss(w + 1e-6)[0] - clipping.unit_loss(w - 1e-6)[0]) / 2e-6
        assert clipping.unit_loss(w)[1] == pytest.approx(numeric, rel=1e-3, abs=1e-6)
