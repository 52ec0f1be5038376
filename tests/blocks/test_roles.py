"""Every weight has a role that its part says, and the optimizers treat it by that."""

from __future__ import annotations

import sys
import types

import pytest
import torch
from torch import nn

from nextword.blocks.roles import Role, linears, roles_of
from nextword.core import catalog
from nextword.models.training import NeuralTrainSettings
from nextword.training.optimizers import SGD, hidden_matrices, make_optimizer, split_weights

V = 40
SETTINGS = {
    "rnn": {"connections": "residual"},
    "lstm": {"connections": "highway", "initial": "learned"},
    "gru": {"head": "adaptive"},
    "gru-torch": {"head": "adaptive", "tied": False},
    "mingru": {"connections": "dense"},
    "window": {"tied": False},
    "transformer": {"position": "learned", "bias": True, "connections": "rezero", "norm": "layernorm"},
}


def network(family: str) -> nn.Module:
    made = catalog.find("model", family)
    return made.build(made.Settings(hidden=8, **SETTINGS[family]), V, False)


def by_role(family: str) -> dict[str, set[str]]:
    """Role -> names of weights, without the numbers of layers."""
    found: dict[str, set[str]] = {}
    for name, role in roles_of(network(family)).items():
        plain = ".".join(part for part in name.split(".") if not part.isdigit())
        found.setdefault(str(role), set()).add(plain)
    return found


def test_roles_of_an_rnn():
    assert by_role("rnn") == {
        "embedding": {"embedding.weight_VE"},
        "matrix": {"layers.x_to_h.weight"},
        "recurrent": {"layers.h_to_h.weight"},
        "bias": {"layers.x_to_h.bias", "head.bias_V"},
    }


def test_roles_of_an_lstm_with_highways_and_a_learned_state():
    assert by_role("lstm") == {
        "embedding": {"embedding.weight_VE"},
        "matrix": {"layers.x_to_gates.weight"},
        "recurrent": {"layers.h_to_gates.weight"},
        "gate": {"joins.gate.weight"},
        "state": {"starts.parts_H"},
        "bias": {"layers.x_to_gates.bias", "joins.gate.bias", "head.bias_V"},
    }


def test_roles_of_a_gru_with_an_adaptive_head():
    assert by_role("gru") == {
        "embedding": {"embedding.weight_VE"},
        "matrix": {"layers.x_to_all.weight"},
        "recurrent": {"layers.h_to_gates.weight", "layers.h_to_new.weight"},
        "head": {"head.cluster_CD"},
        "bias": {"layers.x_to_all.bias", "head.bias_V", "head.tail_bias_V"},
    }


def test_roles_of_an_untied_adaptive_head():
    found = by_role("gru-torch")
    assert found["head"] == {
        "head.cluster_CD",
        "head.words.frequent_VD",
        "head.words.projects",
        "head.words.weights",
    }
    assert "layers.h_to_gates.bias" in found["bias"]


def test_roles_of_a_mingru_and_of_a_window():
    assert by_role("mingru")["matrix"] == {"layers.x_to_all.weight", "fit.weight"}
    assert by_role("window") == {
        "embedding": {"embedding.weight_VE"},
        "matrix": {"words_to_hidden.weight"},
        "head": {"head.weight_VD"},
        "bias": {"words_to_hidden.bias", "head.bias_V"},
    }


def test_roles_of_a_transformer():
    block = "stack.blocks"
    assert by_role("transformer") == {
        "embedding": {"embedding.weight_VE"},
        "position": {"position.table_WD"},
        "matrix": {f"{block}.mixer.from_x.weight", f"{block}.ffn.inner.weight"},
        "out": {f"{block}.mixer.out.weight", f"{block}.ffn.out.weight"},
        "norm": {
            "stack.norm.gain_D",
            f"{block}.around_mixer.norm.gain_D",
            f"{block}.around_ffn.norm.gain_D",
            f"{block}.mixer.norm.query_gain_K",
            f"{block}.mixer.norm.key_gain_K",
        },
        "scale": {f"{block}.around_mixer.join.alpha", f"{block}.around_ffn.join.alpha"},
        "bias": {
            "stack.norm.bias_D",
            f"{block}.around_mixer.norm.bias_D",
            f"{block}.around_ffn.norm.bias_D",
            f"{block}.mixer.from_x.bias",
            f"{block}.mixer.out.bias",
            f"{block}.ffn.inner.bias",
            f"{block}.ffn.out.bias",
            "head.bias_V",
        },
    }


@pytest.mark.parametrize("family", SETTINGS)
def test_matrices_but_embeddings_decay_and_muon_takes_those_outside_the_head(family):
    made = network(family)
    names = {id(weight): name for name, weight in made.named_parameters()}
    matrices, rest = split_weights(made)
    decays = [name for name, each in made.named_parameters() if each.ndim >= 2 and "embed" not in name]
    assert [names[id(weight)] for weight in matrices] == decays
    assert {names[id(weight)] for weight in rest} == set(names.values()) - set(decays)
    hidden = [name for name in decays if not name.startswith("head.")]
    assert [names[id(weight)] for weight in hidden_matrices(made)] == hidden


def test_an_optimizer_registered_from_outside_is_used(monkeypatch):
    mine = types.ModuleType("optimizers_of_mine")
    mine.plain = lambda network, settings: [SGD(list(network.parameters()), 0.0, 0.0)]
    monkeypatch.setitem(sys.modules, "optimizers_of_mine", mine)
    monkeypatch.setitem(catalog.SLOTS["optimizer"], "mine", "optimizers_of_mine:plain")
    made = network("rnn")
    before = made.head.bias_V.detach().clone()
    made.head.bias_V.grad = torch.ones(V)
    make_optimizer(made, NeuralTrainSettings(optimizer="mine")).step(0.5)
    torch.testing.assert_close(made.head.bias_V.detach(), before - 0.5)


def test_a_part_that_says_nothing_has_matrices_biases_and_the_embeddings_of_torch():
    class Silent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.zeros(2, 3))
            self.line = nn.Linear(3, 2)
            self.words = nn.Embedding(4, 3)

    assert roles_of(Silent()) == {
        "table": Role.MATRIX,
        "line.weight": Role.MATRIX,
        "line.bias": Role.BIAS,
        "words.weight": Role.EMBEDDING,
    }


def test_linear_maps_come_in_order_with_what_their_parts_say():
    stack = network("transformer").get_submodule("stack.blocks.0")
    assert [role for _, role in linears(stack)] == [Role.MATRIX, Role.OUT, Role.MATRIX, Role.OUT]
