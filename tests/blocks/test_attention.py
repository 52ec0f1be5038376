"""Attention that is causal or not, and attention to a source, agree with torch's own."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from nextword.blocks.attention import Attention
from nextword.blocks.cache import Memory, Reading
from nextword.blocks.cross import CrossAttention
from nextword.blocks.positions import ALiBi, NoPosition, Rotary
from nextword.blocks.shape import Shape
from nextword.blocks.states import join_rows, take_rows
from nextword.core.catalog import find, names
from nextword.core.errors import ConfigError

SHAPE = Shape(width=16, layers=1, heads=4, kv_heads=2, head_size=4, inner=32, context=20)
WHOLE = replace(SHAPE, causal=False)
LENGTHS = [7, 3, 5]
B, T = len(LENGTHS), max(LENGTHS)


def heads(x_BTD: Tensor, count: int) -> Tensor:
    return x_BTD.unflatten(-1, (count, 4)).transpose(1, 2)


def real(lengths: list[int], size: int) -> Tensor:
    return torch.arange(size) < torch.tensor(lengths)[:, None]


def fresh(lengths: list[int], size: int) -> Reading:
    return Reading([0] * len(lengths), lengths, size, SHAPE.context, torch.device("cpu"))


def test_without_causality_every_token_sees_all_of_its_row_and_no_padding():
    part, x_BTD = Attention(WHOLE, NoPosition(WHOLE)), torch.randn(B, T, 16)
    q, k, v = (
        heads(x, n) for x, n in zip(part.from_x(x_BTD).split((16, 8, 8), dim=-1), (4, 2, 2), strict=True)
    )
    mask = real(LENGTHS, T)[:, None, None]
    expected = F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True)
    found, _ = part(x_BTD, part.start(B), fresh(LENGTHS, T))
    torch.testing.assert_close(found, part.out(expected.transpose(1, 2).flatten(2)))


@pytest.mark.parametrize("position", [NoPosition, Rotary, ALiBi])
@pytest.mark.parametrize("shape", [SHAPE, WHOLE])
def test_padding_changes_nothing(shape, position):
    part, x_BTD = Attention(shape, position(shape)), torch.randn(B, T, 16)
    found, _ = part(x_BTD, part.start(B), fresh(LENGTHS, T))
    for row, length in enumerate(LENGTHS):
        alone, _ = part(x_BTD[row : row + 1, :length], part.start(1), fresh([length], length))
        torch.testing.assert_close(found[row, :length], alone[0])


@pytest.mark.parametrize("position", [NoPosition, Rotary, ALiBi])
@pytest.mark.parametrize("shape", [SHAPE, WHOLE])
def test_the_plain_twin_gives_the_same_and_its_weights_sum_to_one(shape, position):
    part, x_BTD, reading = Attention(shape, position(shape)), torch.randn(2, 5, 16), fresh([5, 5], 5)
    weights, given = part.explain(x_BTD, reading)
    torch.testing.assert_close(part(x_BTD, part.start(2), reading)[0], given)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 4, 5))
    assert bool((weights.triu(1) > 0).any()) is not shape.causal


def test_a_later_token_matters_only_without_causality():
    for shape in (SHAPE, WHOLE):
        part, x_BTD = Attention(shape, NoPosition(shape)), torch.randn(1, 5, 16)
        other_BTD = x_BTD.clone()
        other_BTD[:, 4] += 1.0
        before, after = (part(x, part.start(1), fresh([5], 5))[0][:, :4] for x in (x_BTD, other_BTD))
        assert torch.equal(before, after) is shape.causal


def source(lengths: list[int], width: int = 6) -> Memory:
    return Memory(torch.randn(len(lengths), max(lengths), width), torch.tensor(lengths))


def test_cross_attention_looks_at_the_real_part_of_its_source():
    shape = replace(SHAPE, source_width=6, bias=False)
    part, x_BTD, own = CrossAttention(shape, NoPosition(shape)), torch.randn(B, T, 16), source([4, 1, 6])
    k, v = (heads(x, 2) for x in part.from_source(own.features_BSD).split((8, 8), dim=-1))
    mask = real([4, 1, 6], 6)[:, None, None]
    expected = F.scaled_dot_product_attention(heads(part.from_x(x_BTD), 4), k, v, mask, enable_gqa=True)
    found, _ = part(x_BTD, part.start(B, own), fresh([T] * B, T))
    torch.testing.assert_close(found, part.out(expected.transpose(1, 2).flatten(2)))


def test_cross_attention_word_by_word_and_by_rows_gives_the_same():
    shape = replace(SHAPE, source_width=6)
    part, x_BTD = CrossAttention(shape, NoPosition(shape)), torch.randn(2, 3, 16)
    first, second = source([4]), source([2])
    states = [part.start(1, first), part.start(1, second)]
    joined = join_rows(states)
    at_once, _ = part(x_BTD, joined, fresh([3, 3], 3))
    for row, state in enumerate((states[0], take_rows(joined, torch.tensor([1])))):
        for t in range(3):
            y_BTD, state = part(x_BTD[row : row + 1, t : t + 1], state, fresh([1], 1))
            torch.testing.assert_close(y_BTD[0, 0], at_once[row, t])


def test_cross_attention_without_a_source_says_so():
    with pytest.raises(ConfigError, match="looks at a source, but this model reads none"):
        CrossAttention(SHAPE, NoPosition(SHAPE)).start(2)


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
    found, _ = part(x, part.start(1), fresh([5], 5))
    torch.testing.assert_close(found[0], part.out(mixed.flatten(1)), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("mixer", names("mixer"))
def test_a_mixer_never_looks_ahead(mixer):
    shape = replace(SHAPE, kv_heads=SHAPE.heads) if mixer == "differential" else SHAPE  # it pairs heads
    part = find("mixer", mixer)(shape, NoPosition(shape))
    x = torch.randn(1, 8, 16)
    before, _ = part(x, part.start(1), fresh([8], 8))
    x[:, 5] += 1.0
    after, _ = part(x, part.start(1), fresh([8], 8))
    torch.testing.assert_close(after[:, :5], before[:, :5])
    assert (after[:, 5] - before[:, 5]).abs().max() > 1e-4
