"""A pass on the way to a picture gives the numbers that scoring uses, and looking changes nothing."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nextword.core import catalog
from nextword.evaluation.lm.streams import ScoreStream
from nextword.probe import passes, selection
from nextword.probe.settings import ProbeSettings

RECURRENT = ["rnn", "lstm", "gru", "gru-torch", "mingru"]


@pytest.mark.parametrize("name", [*RECURRENT, "transformer"])
@pytest.mark.parametrize("connections", ["plain", "residual"])
def test_a_pass_gives_the_features_of_reading(network, ids_of, name, connections):
    made = network(name, connections=connections, **({"init": "gpt2"} if name == "transformer" else {}))
    ids_BT = torch.as_tensor(np.stack([ids_of(12), ids_of(12)[::-1].copy()]))
    expected, _ = made.read(ids_BT, made.start(2))
    found = passes.run(made, ids_BT).features_BTD
    assert torch.allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("direct", [False, True])
def test_a_pass_of_a_window_network_gives_its_last_feature(network, ids_of, direct):
    made = network("window", context=5, direct=direct)
    for length in (3, 9):
        ids_BT = torch.as_tensor(ids_of(length))[None]
        expected, _ = made.read(ids_BT, made.start(1))
        found = passes.run(made, ids_BT).features_BTD
        assert torch.allclose(found[:, -1], expected[:, -1], atol=1e-10)


def test_states_of_a_text_longer_than_the_window_are_read_window_by_window(network, ids_of):
    made = network("transformer", context=6)
    found = dict(passes.states_of(made, [ids_of(15)]))
    assert found["layer 2"].shape == (15, made.width)
    alone = dict(passes.states_of(made, [ids_of(15)[6:12]]))
    assert torch.equal(found["layer 2"][6:12], alone["layer 2"])


@pytest.mark.parametrize("name", ["lstm", "gru", "transformer", "window", "ngram"])
def test_looking_does_not_change_what_a_model_says(subject, name):
    made = subject(name)
    ids = made.rows(40)[0].ids_T

    def score() -> np.ndarray:
        return np.asarray(ScoreStream(made.model, carry=True).push(ids, (0,)))

    before = score()
    weights = [] if made.network is None else [each.detach().clone() for each in made.network.parameters()]
    asked = ProbeSettings(distance=10, places=3, tokens=40, beam_size=2, max_tokens=4)
    names = selection.fitting(made)
    for each in names:
        selection.look(each, made, asked if each != "linear" else ProbeSettings(tokens=100))
    assert set(names) <= set(catalog.names("probe"))
    assert len(names) >= 3
    assert np.array_equal(score(), before)
    if made.network is not None:
        assert all(torch.equal(a, b) for a, b in zip(weights, made.network.parameters(), strict=True))
        assert all(each.grad is None for each in made.network.parameters())
