"""Distributions in NumPy and in torch: sums in logs, and impossible tokens stay so."""

from __future__ import annotations

import numpy as np

from nextword.models.distributions import as_numpy, logsumexp, normalise


def test_logsumexp_and_normalise_keep_rows_of_zero_probability():
    logp = np.array([[-np.inf, -np.inf], [0.0, 0.0]])
    assert np.isneginf(logsumexp(logp)[0, 0])
    assert np.allclose(normalise(logp)[1], np.log(0.5))
    assert np.isneginf(normalise(logp)[0]).all()


def test_tensors_are_taken_without_importing_torch():
    class Tensor:
        dtype = "torch.bfloat16"

        def detach(self):
            return self

        def cpu(self):
            return self

        def float(self):
            return self

        def numpy(self):
            return np.ones(2, np.float32)

    assert as_numpy(Tensor(), np.float64).dtype == np.float64
