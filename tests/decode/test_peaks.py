"""The most likely tokens, found without sorting, are those of a sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nextword.core.errors import DamagedError
from nextword.decode.peaks import at, best, checked, copied, top


def kinds(logp_RV):
    """The same numbers as an array and as a tensor."""
    torch = pytest.importorskip("torch")
    return logp_RV.astype(np.float64), torch.from_numpy(logp_RV)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6), rows=st.integers(1, 5), size=st.integers(1, 3000), count=st.integers(1, 20),
    digits=st.sampled_from([0, 1, 5]), masked=st.sampled_from([0.0, 0.5, 0.999]),
)  # fmt: skip
def test_best_tokens_are_those_of_a_stable_sort(seed, rows, size, count, digits, masked):
    random = np.random.default_rng(seed)
    logp_RV = np.round(random.normal(size=(rows, size)) - 5, digits).astype(np.float32)  # many are equal
    logp_RV[random.random(logp_RV.shape) < masked] = -np.inf
    order_RV = np.argsort(-logp_RV, axis=1, kind="stable")[:, :count]
    values_RC = np.take_along_axis(logp_RV, order_RV, axis=1)
    for kind in kinds(logp_RV):
        values, ids = top(kind, count)
        assert np.array_equal(values, values_RC)
        assert np.array_equal(ids[np.isfinite(values)], order_RV[np.isfinite(values_RC)])
        assert np.array_equal(best(kind)[np.isfinite(values[:, 0])], ids[np.isfinite(values[:, 0]), 0])


def test_single_values_and_copies():
    for kind in kinds(np.arange(12, dtype=np.float32).reshape(3, 4)):
        assert at(kind, np.array([2, 0]), np.array([1, 3])).tolist() == [9.0, 3.0]
        copy = copied(kind)
        copy[0, 0] = -1
        assert kind[0, 0] == 0


def test_nan_is_a_damaged_model():
    damaged = np.zeros((2, 5), dtype=np.float32)
    damaged[1, 3] = np.nan
    for kind in kinds(damaged):
        with pytest.raises(DamagedError, match="NaN"):
            checked(kind)
