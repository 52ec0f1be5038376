"""Norms, activations, feed-forward parts, positions and attention against their equations."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from torch.nn import functional as F

from nextword.blocks.attention import Attention
from nextword.blocks.cache import Reading
from nextword.blocks.feedforward import FeedForward, GatedFeedForward
from nextword.blocks.norms import LayerNorm, RMSNorm
from nextword.blocks.positions import ALiBi, NoPosition, Rotary, Sinusoidal
from nextword.blocks.rms import rms_norm
from nextword.blocks.shape import Shape
from nextword.core.catalog import find, names

SHAPE = Shape(width=16, layers=2, heads=4, kv_heads=2, head_size=4, inner=32, context=20)
CPU = torch.device("cpu")


def fresh(rows: int, T: int) -> Reading:
    return Reading([0] * rows, [T] * rows, T, 20, CPU)


@pytest.mark.parametrize(
    ("name", "at", "value"),
    [
        ("relu", -1, 0.0),
        ("relu2", 3, 9.0),
        ("relu2", -3, 0.0),
        ("gelu", 1, 0.8413447),
        ("gelu-tanh", 1, 0.8411920),
        ("swish", 1, 0.7310586),
        ("elu", -1, -0.6321206),
        ("selu", -1, -1.1113307),
        ("selu", 1, 1.0507010),
        ("sigmoid", 0, 0.5),
        ("softplus", 0, 0.6931472),
        ("tanh", 1, 0.7615942),
        ("identity", 3, 3.0),
    ],
)
def test_activation_has_the_value_of_its_equation(name, at, value):
    assert float(find("activation", name)(torch.tensor(float(at)))) == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("name", names("activation"))
def test_activation_has_the_derivative_of_its_equation(name):
    u = torch.linspace(-2, 2, 9, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(find("activation", name), [u + 0.05])


@pytest.mark.parametrize(
    ("name", "a", "value"),
    [
        ("glu", 0.0, 1.0),
        ("geglu", 1.0, 1.6826895),
        ("reglu", -1.0, 0.0),
        ("swiglu", 1.0, 1.4621172),
        ("liglu", 3.0, 6.0),
    ],
)
def test_gated_part_activates_its_first_half(name, a, value):
    part: GatedFeedForward = find("ffn", name)(Shape(1, 1, 1, 1, 1, 1, 1))
    with torch.no_grad():
        part.inner.weight.zero_()
        part.inner.bias.copy_(torch.tensor([a, 2.0]))
        part.out.weight.fill_(1.0)
        part.out.bias.zero_()
        assert float(part(torch.ones(1, 1, 1))) == pytest.approx(value, abs=1e-6)


def test_plain_and_gated_parts_have_about_as_many_weights():
    plain, gated = FeedForward(SHAPE), GatedFeedForward(Shape(16, 2, 4, 2, 4, int(32 * 2 / 3), 20))
    count = [sum(p.numel() for p in part.parameters()) for part in (plain, gated)]
    assert count[0] == pytest.approx(count[1], rel=0.05)


@hypothesis_settings(max_examples=20)
@given(st.integers(1, 40), st.integers(1, 5), st.booleans())
def test_rms_norm_and_its_derivative_agree_with_torch(width, rows, is_grouped):
    torch.manual_seed(width)
    gain = torch.randn(3, width) if is_grouped else torch.randn(width)
    x = torch.randn(rows, 3, width, requires_grad=True)
    gain.requires_grad_()
    dy = torch.randn(rows, 3, width)
    ours = torch.autograd.grad(rms_norm(x, gain, 1e-5), [x, gain], dy)
    theirs = torch.autograd.grad(F.rms_norm(x, (width,), None, 1e-5) * gain, [x, gain], dy)
    torch.testing.assert_close(rms_norm(x, gain, 1e-5), F.rms_norm(x, (width,), None, 1e-5) * gain)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)


def test_layernorm_forgets_a_shift_and_rmsnorm_a_scale_only():
    x = torch.randn(3, 16)
    layer, rms = LayerNorm(16), RMSNorm(16)
    torch.testing.assert_close(layer(x + 5), layer(x), atol=1e-4, rtol=0)
    torch.testing.assert_close(rms(7 * x), rms(x), atol=1e-4, rtol=0)
    assert (rms(x + 5) - rms(x)).abs().max() > 0.1


def test_rotary_scores_depend_on_the_distance_only():
    turn = Rotary(SHAPE).turn
    q, k = torch.randn(1, 1, 1, 4), torch.randn(1, 1, 1, 4)
    scores = [
        float((turn(q, slice(m, m + 1)) * turn(k, slice(n, n + 1))).sum())
        for m, n in ((3, 1), (12, 10), (19, 17))
    ]
    assert max(scores) - min(scores) < 1e-5
    torch.testing.assert_close(turn(q, slice(9, 10)).norm(), q.norm())


def test_positions_are_the_same_by_slice_and_by_number():
    for name in names("position"):
        position, places = find("position", name)(SHAPE), torch.tensor([[3, 4, 5]])
        x_BTD, x_BTNK = torch.randn(1, 3, 16), torch.randn(1, 3, 2, 4)
        torch.testing.assert_close(position.embed(x_BTD, slice(3, 6)), position.embed(x_BTD, places))
        torch.testing.assert_close(position.turn(x_BTNK, slice(3, 6)), position.turn(x_BTNK, places))
        pair = [position.bias(slice(3, 6), 6), position.bias(places, 6)]
        if pair[0] is not None:
            torch.testing.assert_close(pair[0].expand(1, -1, -1, -1), pair[1])


def test_sinusoidal_is_the_table_of_the_paper():
    waves = Sinusoidal(SHAPE).table_WD
    assert float(waves[7, 4]) == pytest.approx(math.sin(7 / 10000 ** (4 / 16)), abs=1e-6)
    assert float(waves[7, 5]) == pytest.approx(math.cos(7 / 10000 ** (4 / 16)), abs=1e-6)


def test_alibi_slopes_are_the_published_ones():
    eight = ALiBi(Shape(16, 1, 8, 8, 2, 4, 4)).slopes_N11.flatten()
    torch.testing.assert_close(eight, 2.0 ** -torch.arange(1.0, 9.0))
    twelve = ALiBi(Shape(24, 1, 12, 12, 2, 4, 4)).slopes_N11.flatten()
    torch.testing.assert_close(twelve[8:], 2.0 ** -torch.tensor([0.5, 1.5, 2.5, 3.5]))


def test_attention_is_its_equation():
    """softmax(Q Kᵀ / √K) V head by head and word by word; each key head serves two query heads."""
    torch.manual_seed(0)
    part, x = Attention(SHAPE, NoPosition(SHAPE)), torch.randn(1, 5, 16)
    qkv = part.from_x(x)[0].view(5, 8, 4)
    q, k, v = qkv[:, :4], qkv[:, 4:6], qkv[:, 6:]
    mixed = torch.zeros(5, 4, 4)
    for head in range(4):
        for t in range(5):
            scores = k[: t + 1, head // 2] @ q[t, head] / math.sqrt(4)
            mixed[t, head] = torch.softmax(scores, 0) @ v[: t + 1, head // 2]
    found, _ = part(x, part.start(1), fresh(1, 5))
    torch.testing.assert_close(found[0], part.out(mixed.flatten(1)), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("mixer", names("mixer"))
def test_a_mixer_never_looks_ahead(mixer):
    part = find("mixer", mixer)(SHAPE, NoPosition(SHAPE))
    x = torch.randn(1, 8, 16)
    before, _ = part(x, part.start(1), fresh(1, 8))
    x[:, 5] += 1.0
    after, _ = part(x, part.start(1), fresh(1, 8))
    torch.testing.assert_close(after[:, :5], before[:, :5])
    assert (after[:, 5] - before[:, 5]).abs().max() > 1e-4


def test_buffers_are_written_in_place_only_for_their_newest_owner():
    old = torch.zeros(1, 1, 4, 1)
    new = torch.ones(1, 1, 1, 1)
    assert Reading([2], [1], 1, 8, CPU, in_place=True).append(old, new) is old
    copy = Reading([2], [1], 1, 8, CPU).append(old, new)
    assert copy is not old
    assert copy[0, 0, 2] == 1
