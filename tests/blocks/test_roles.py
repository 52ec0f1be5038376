"""Every weight has a role that its part says, in every family."""

from __future__ import annotations

import torch
from families import network_of
from torch import nn

from nextword.blocks.roles import Role, linears, roles_of


def by_role(family: str) -> dict[str, set[str]]:
    """Role -> names of weights, without the numbers of layers."""
    found: dict[str, set[str]] = {}
    for name, role in roles_of(network_of(family)).items():
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
        },
    }


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
    stack = network_of("transformer").get_submodule("stack.blocks.0")
    assert [role for _, role in linears(stack)] == [Role.MATRIX, Role.OUT, Role.MATRIX, Role.OUT]
