"""A push of the first state: kept, forgotten or grown."""

from __future__ import annotations

import numpy as np

from nextword.experiments import initial_state


def test_a_push_of_nothing_changes_nothing_and_a_contraction_forgets(monkeypatch):
    rows = np.random.default_rng(0).integers(3, 12, (4, 20))
    curve = initial_state.distances(initial_state._scaled(0.5, 12), rows)
    assert curve[0] == 1
    assert curve[-1] < 1e-3
    assert initial_state.distances(initial_state._scaled(3.0, 12), rows)[-1] > 1
