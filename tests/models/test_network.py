"""A network on the contract: what reaches it, and the protocols that callers ask for."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_networks import TinyBigram, TinyRNN

from nextword.core.contracts import (
    ContextLimit,
    NetworkModel,
    Parametric,
    Preparable,
    Reproducible,
    ScoreKind,
)
from nextword.models.network import NeuralLanguageModel


class Sourced(TinyRNN):
    """A decoder whose first state is its source."""

    def start(self, batch, source=None):
        return (torch.as_tensor(source, dtype=self.dtype).expand(batch, self.width),)


def test_a_source_reaches_the_network():
    model = NeuralLanguageModel(Sourced())
    zero = model.start(2, torch.zeros(2, 6), begin=False)
    other = model.start(2, torch.tensor([[0.0] * 6, [1.0] * 6]), begin=False)
    assert other.inner[0].tolist() == [[0.0] * 6, [1.0] * 6]
    changed_B = (model.step([3, 3], zero)[0] != model.step([3, 3], other)[0]).any(dim=1)
    assert changed_B.tolist() == [False, True]


def test_rows_of_a_network_without_a_state_are_counted_and_joined():
    model = NeuralLanguageModel(TinyBigram())
    states = [model.start(2), model.step([4], model.start(1))[1]]
    joined = model.join(states)
    assert model.rows(joined) == 3
    expected = np.concatenate([model.next(state) for state in states])
    np.testing.assert_allclose(model.next(joined), expected, rtol=1e-6)  # products of other sizes


@pytest.mark.parametrize(
    "protocol", [ContextLimit, ScoreKind, Preparable, Reproducible, Parametric, NetworkModel]
)
def test_a_neural_model_has_what_callers_ask_for(protocol):
    assert isinstance(NeuralLanguageModel(TinyRNN()), protocol)
