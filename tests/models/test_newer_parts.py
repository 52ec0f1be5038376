"""Newer parts: read word by word as at once, counted by formula; what each is when its share is nothing."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from nextword.blocks.attention import Attention
from nextword.blocks.cache import Reading
from nextword.blocks.linear_mixers import GatedDelta, RetNet
from nextword.blocks.positions import NoPosition
from nextword.blocks.shape import Shape
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
CASES |= {"parallel": {"block": "parallel"}, "hyper": {"connections": "hyper"}}
CASES["window"] |= {"windowed": {"width": 4}, "position": "t5"}
SHAPE = Shape(16, 1, 2, 2, 8, 32, 16, bias=False)


@pytest.mark.parametrize("name", CASES)
def test_word_by_word_as_at_once_and_as_many_weights_as_the_formula_says(name):
    torch.manual_seed(0)
    values = {"layers": 2, "hidden": 16, "heads": 2, "context": 10, "init": "gpt2"} | CASES[name]
    settings = TransformerSettings(**values)
    network = TRANSFORMER.build(settings, V, False).eval()
    assert sum(weight.numel() for weight in network.parameters()) == count(settings, V).weights
    ids_BT = torch.randint(3, V, (2, T))
    with torch.inference_mode():
        ragged, _ = network.read(ids_BT, network.start(2), torch.tensor([T, 7]))
        state = network.start(2)
        for t in range(T):
            one, state = network.read(ids_BT[:, t : t + 1], state)
            torch.testing.assert_close(one[0, 0], ragged[0, t], atol=1e-5, rtol=1e-4)
            if t < 7:
                torch.testing.assert_close(one[1, 0], ragged[1, t], atol=1e-5, rtol=1e-4)


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
