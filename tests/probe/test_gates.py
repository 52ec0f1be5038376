"""Gates over time are the cells' own; gates set by hand do what the slides say; others are refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nextword.core.errors import ConfigError, DataError
from nextword.probe import gate_values, selection
from nextword.probe.settings import ProbeSettings

NAMES = {
    "lstm": {"forget", "input", "output"}, "gru": {"update", "reset"}, "gru-torch": {"keep", "reset"},
    "mingru": {"update"},
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(NAMES))
def test_openness_is_the_share_that_the_equations_give(network, ids_of, name):
    made = network(name)
    ids_T = ids_of(9)
    found = gate_values.openness(made, ids_T)
    assert set(found) == NAMES[name]
    assert all(values.shape == (2, 9, 8) for values in found.values())
    assert all(((values > 0) & (values < 1)).all() for values in found.values())
    x_BE = made.embedding(torch.as_tensor(ids_T[:1])) * made.scale_words
    first = made.layers[0].gates(x_BE, made.start(1)[0])
    for gate, values in found.items():
        assert values[0, 0] == pytest.approx(first[gate][0].detach().numpy(), rel=1e-12)


@pytest.mark.parametrize(
    ("name", "text"),
    [("lstm", "forget=1,input=0"), ("gru", "update=0"), ("gru-torch", "keep=1"), ("mingru", "update=0")],
)
def test_memory_is_preserved_exactly_where_the_slide_says_so(subject, name, text):
    """IITD-2 "LSTM": forget = 1 and input = 0 preserve a cell indefinitely."""
    found = selection.look("gates", subject(name), ProbeSettings(set_gate=text, tokens=21))
    free, fixed = found.arrays["change_LT"], found.arrays["held_change_LT"]
    since = 10
    assert np.array_equal(free[:, :since], fixed[:, :since])
    assert (free[:, since:] > 0).all()
    assert (fixed[:, since:] == 0).all()
    assert "stays exactly as it was" in found.sentence
    assert np.array_equal(found.arrays["nats_T"][:since], found.arrays["held_T"][:since])
    assert not np.allclose(found.arrays["nats_T"][since:], found.arrays["held_T"][since:])


def test_reading_freely_by_hand_is_scoring(subject):
    made = subject("lstm")
    found = selection.look("gates", made, ProbeSettings(set_gate="forget=1", tokens=21))
    ids = made.row(21).ids_T
    expected, _ = made.model.score(ids[None, 1:], np.array([20]))
    assert -found.arrays["nats_T"] == pytest.approx(np.asarray(expected)[0], abs=1e-5)


def test_one_layer_alone_can_be_held(subject):
    found = selection.look(
        "gates", subject("lstm"), ProbeSettings(set_gate="forget=1,input=0", tokens=21, layer=2)
    )
    assert (found.arrays["held_change_LT"][0, 10:] > 0).all()
    assert (found.arrays["held_change_LT"][1, 10:] == 0).all()


def test_the_network_keeps_its_gates(subject):
    made = subject("gru")
    selection.look("gates", made, ProbeSettings(set_gate="update=0", tokens=21))
    assert all("gates" not in vars(layer) for layer in made.network.layers)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("forgit=1", "unknown gate 'forgit' in '--set-gate'; did you mean 'forget'?"),
        ("forget=2", "'--set-gate' sets 'forget' to '2'; a gate is a number from 0 to 1"),
        ("forget", "a gate is a number from 0 to 1"),
        ("forget=nan", "a gate is a number from 0 to 1"),
    ],
)
def test_a_wrong_gate_is_one_sentence(subject, text, message):
    with pytest.raises(ConfigError) as caught:
        selection.look("gates", subject("lstm"), ProbeSettings(set_gate=text))
    assert message in str(caught.value)


def test_a_text_too_short_to_hold_anything_is_refused(subject):
    made = subject("lstm")
    made.given = "cat"
    with pytest.raises(DataError, match="fewer than three words"):
        selection.look("gates", made, ProbeSettings(set_gate="forget=1"))


def test_units_of_a_layer_are_drawn(subject):
    found = selection.look("gates", subject("lstm"), ProbeSettings(layer=1, tokens=20))
    assert [part.title for part in found.parts if hasattr(part, "svg")][1:] == [
        f"Layer 1, {gate} gate: the 8 units that move most" for gate in ("forget", "input", "output")
    ]
    with pytest.raises(ConfigError, match="'layer' is 3, and the model has 2"):
        selection.look("gates", subject("lstm"), ProbeSettings(layer=3))
