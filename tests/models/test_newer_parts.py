"""Newer parts: read word by word as at once, counted by formula; what each is when its share is nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from nextword.blocks.attention import Attention
from nextword.blocks.cache import Reading
from nextword.blocks.hyper import DynamicHyperConnections, HyperConnections
from nextword.blocks.linear_mixers import RetNet
from nextword.blocks.places import deep
from nextword.blocks.positions import NoPosition, Rotary
from nextword.blocks.rotary import RotarySettings
from nextword.blocks.shape import Shape
from nextword.blocks.state_space import GatedDelta
from nextword.blocks.weighing import Sink, Softmax
from nextword.blocks.window import WindowAttention, WindowedSettings
from nextword.models.counts import count
from nextword.models.transformer import TRANSFORMER, TransformerSettings

V, T = 30, 14
MIXERS = ["window", "differential", "latent", "value-residual", "linear", "retnet", "mamba2", "delta"]
MIXERS += ["lstm", "gru", "mingru", "minlstm", "sru", "qrnn"]
CASES: dict[str, dict[str, Any]] = {name: {"mixer": name} for name in MIXERS}
CASES |= {name: {"weighing": name} for name in ("softcap", "sink", "off-by-one", "talking-heads", "sigmoid")}
CASES |= {name: {"norm_place": name} for name in ("sandwich", "output", "deepnorm")}
CASES |= {"parallel": {"block": "parallel"}}
CASES |= {name: {"connections": name} for name in ("hyper", "hyper-dynamic")}
CASES |= {name: {"position": name} for name in ("t5-content", "shaw")}
CASES |= {
    f"rope-{name}": {"rotary": {"scaling": name, "factor": 2.0}}
    for name in ("linear", "ntk", "yarn", "llama3")
}
CASES["deepnorm"] |= {"init": "deepnorm"}
CASES["shared-experts"] = {"ffn": "experts", "experts": {"count": 3, "shared": 2}}
CASES["window"] |= {"windowed": {"width": 4}, "position": "t5"}
UNCOUNTED = {"lstm", "gru"}  # torch's own layers, whose products are not counted one by one
SHAPE = Shape(16, 1, 2, 2, 8, 32, 16, bias=False)


@pytest.mark.parametrize("name", CASES)
def test_word_by_word_as_at_once_and_as_many_weights_as_the_formula_says(name):
    torch.manual_seed(0)
    values = {"layers": 2, "hidden": 16, "heads": 2, "context": 10, "init": "gpt2"} | CASES[name]
    settings = TransformerSettings(**values)
    network = TRANSFORMER.build(settings, V, False).eval()
    expected = count(settings, V, 2, 9)
    assert sum(weight.numel() for weight in network.parameters()) == expected.weights
    with FlopCounterMode(display=False) as counter, torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        features, _ = network.read(torch.zeros(2, 9, dtype=torch.int64), network.start(2))
        network.head.log_probs(features.flatten(0, 1))
    if name not in UNCOUNTED:
        assert counter.get_total_flops() == 2 * expected.products
    ids_BT = torch.randint(3, V, (2, T))
    with torch.inference_mode():
        ragged, _ = network.read(ids_BT, network.start(2), torch.tensor([T, 7]))
        state = network.start(2)
        for t in range(T):
            one, state = network.read(ids_BT[:, t : t + 1], state)
            torch.testing.assert_close(one[0, 0], ragged[0, t], atol=1e-5, rtol=1e-4)
            if t < 7:
                torch.testing.assert_close(one[1, 0], ragged[1, t], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_nothing_ahead_is_seen_and_every_weight_learns(name):
    torch.manual_seed(0)
    values = {"layers": 2, "hidden": 16, "heads": 2, "context": 10, "init": "gpt2"} | CASES[name]
    network, ids_BT = TRANSFORMER.build(TransformerSettings(**values), V, False), torch.randint(3, V, (2, 8))
    features, _ = network.read(ids_BT, network.start(2))
    changed_BT = ids_BT.clone()
    changed_BT[:, 5] = 3 + (ids_BT[:, 5] - 2) % (V - 3)
    others, _ = network.read(changed_BT, network.start(2))
    torch.testing.assert_close(others[:, :5], features[:, :5], atol=1e-6, rtol=1e-5)
    assert not torch.allclose(others[:, 5], features[:, 5])
    network.head.loss(features[:, :-1].flatten(0, 1), ids_BT[:, 1:].flatten()).backward()
    idle = [key for key, weight in network.named_parameters() if weight.grad is None or not weight.grad.any()]
    assert not idle


def reading(columns: int) -> Reading:
    return Reading([0], [columns], columns, 16, torch.device("cpu"))


def test_a_window_as_wide_as_the_text_is_plain_attention_and_a_narrow_one_forgets():
    shape = Shape(16, 1, 2, 2, 8, 32, 16, bias=False, options=(WindowedSettings(width=4),))
    narrow, plain = WindowAttention(shape, NoPosition(shape)), Attention(shape, NoPosition(shape))
    plain.load_state_dict(narrow.state_dict())
    x_BTD = torch.randn(1, 12, 16)
    found, state = narrow(x_BTD, narrow.start(1), reading(12))
    expected, _ = plain(x_BTD[:, :4], plain.start(1), reading(4))
    torch.testing.assert_close(found[:, :4], expected)
    alone, _ = plain(x_BTD[:, 8:], plain.start(1), reading(4))
    torch.testing.assert_close(found[:, -1], alone[:, -1])
    assert state.keys.last_BSC.shape[1] == 3  # whatever the length


def test_a_sink_that_nobody_looks_at_is_a_softmax():
    scores = torch.randn(1, 2, 5, 5)
    sink = Sink(SHAPE)
    assert (sink(scores, None).sum(dim=-1) < 1).all()
    torch.nn.init.constant_(sink.sink_N, -torch.inf)
    torch.testing.assert_close(sink(scores, None), Softmax(SHAPE)(scores, None))


def test_retention_is_attention_without_a_softmax_whose_weights_fall_with_distance():
    part = RetNet(SHAPE, NoPosition(SHAPE))
    q, k, v = (torch.randn(1, 2, 6, 8) for _ in range(3))
    decay_BNT = part.log_gamma_N[None, :, None].expand(1, 2, 6)
    found, _ = part.chunk(q, k, v, decay_BNT, torch.ones(1, 2, 6), torch.zeros(1, 2, 8, 8))
    distance = torch.arange(6)[:, None] - torch.arange(6)
    weights = torch.where(distance >= 0, part.log_gamma_N[:, None, None].exp() ** distance.clamp(min=0), 0.0)
    torch.testing.assert_close(found, ((q @ k.transpose(-2, -1)) * weights) @ v)


def test_the_delta_rule_recalls_exactly_what_was_written_at_a_key():
    part = GatedDelta(SHAPE, NoPosition(SHAPE))
    keys = torch.eye(8)[None, None].expand(1, 2, 8, 8)
    v, none, ones = torch.randn(1, 2, 8, 8), torch.zeros(1, 2, 8), torch.ones(1, 2, 8)
    _, state = part.chunk(keys, keys, v, none, ones, torch.zeros(1, 2, 8, 8))
    torch.testing.assert_close(state, v)
    _, same = part.chunk(keys, keys, v + 1, none, none, state)  # nothing is written
    torch.testing.assert_close(same, v)


def test_the_delta_rule_for_a_chunk_is_the_rule_token_by_token():
    part = GatedDelta(SHAPE, NoPosition(SHAPE))
    q, k, v = (torch.randn(1, 2, 9, 8) for _ in range(3))
    decay, share, before = -torch.rand(1, 2, 9), torch.rand(1, 2, 9), torch.randn(1, 2, 8, 8)
    found, after = part.chunk(q, k, v, decay, share, before)
    for t in range(9):
        before = before * decay[..., t, None, None].exp()
        old = (k[:, :, t, :, None] * before).sum(dim=2)
        before = before + k[:, :, t, :, None] * (share[..., t, None] * (v[:, :, t] - old))[:, :, None]
        one = (q[:, :, t, :, None] * before).sum(dim=2)
        torch.testing.assert_close(found[:, :, t], one, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(after, before, atol=1e-4, rtol=1e-4)


def test_rotary_scores_see_distances_only_also_when_stretched():
    for scaling in ("linear", "ntk", "yarn", "llama3"):
        own = RotarySettings(scaling=scaling, factor=4.0)
        part = Rotary(Shape(16, 1, 1, 1, 16, 32, 64, options=(own,)))
        q, k = torch.randn(1, 1, 1, 16), torch.randn(1, 1, 1, 16)
        near = (part.turn(q, slice(9, 10)) * part.turn(k, slice(4, 5))).sum()
        far = (part.turn(q, slice(50, 51)) * part.turn(k, slice(45, 46))).sum()
        torch.testing.assert_close(near, far, atol=1e-4, rtol=1e-4)


def test_deepnorm_has_the_constants_of_its_paper():
    layers = Shape(16, 12, 2, 2, 8, 32, 16)
    assert deep(layers) == pytest.approx((2.2134, 0.3195), abs=1e-4)
    assert deep(replace(layers, readers=12)) == pytest.approx((1.7609, 0.4002), abs=1e-4)
    assert deep(replace(layers, source_width=16)) == pytest.approx((2.4495, 0.2887), abs=1e-4)


def test_dynamic_shares_of_nothing_are_the_static_ones():
    part, stream, y = DynamicHyperConnections(16, 16), torch.randn(1, 3, 64), torch.randn(1, 3, 16)
    torch.nn.init.zeros_(part.scale_3)
    torch.testing.assert_close(part.look(stream), HyperConnections.look(part, stream))
    torch.testing.assert_close(part(stream, y), HyperConnections.forward(part, stream, y))
