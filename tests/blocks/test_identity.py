"""ReZero, Fixup and norms of their own: what a new stack does, and what learns first."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from nextword.blocks.cache import Reading
from nextword.blocks.link import Transparent
from nextword.blocks.norms import PartialRMSNorm
from nextword.blocks.positions import NoPosition
from nextword.blocks.shape import Shape
from nextword.blocks.stack import Stack
from nextword.blocks.weights import fixup

D, T = 16, 6


class Holder(nn.Module):
    def __init__(self, **more):
        super().__init__()
        shape = Shape(D, more.pop("layers", 2), 2, 2, 8, 32, 10, **more)
        self.stack = Stack(shape, NoPosition(shape))

    def run(self, x_BTD):
        reading = Reading([0] * len(x_BTD), [T] * len(x_BTD), T, 10, x_BTD.device)
        return self.stack(x_BTD, self.stack.start(len(x_BTD)), reading)[0]


def test_rezero_begins_as_the_identity_and_only_its_numbers_learn_at_first():
    holder, x_BTD = Holder(join="rezero", norm="none"), torch.randn(2, T, D)
    assert torch.equal(holder.run(x_BTD), x_BTD)
    rule = torch.optim.SGD(holder.parameters(), 0.1)
    for step in range(2):
        rule.zero_grad()
        holder.run(x_BTD).cos().sum().backward()
        moved = {name for name, weight in holder.named_parameters() if weight.grad.abs().sum() > 0}
        alphas = {name for name, _ in holder.named_parameters() if name.endswith("alpha")}
        assert alphas <= moved
        assert (moved == alphas) == (step == 0)
        rule.step()


def test_fixup_begins_as_the_identity_however_deep():
    holder = Holder(join="fixup", norm="none", ffn="fixup", bias=False, layers=50)
    fixup(holder)
    x_BTD = torch.randn(2, T, D)
    assert torch.equal(holder.run(x_BTD), x_BTD)


def test_fixup_scales_first_matrices_by_the_number_of_parts():
    holder = Holder(join="fixup", norm="none", ffn="fixup", bias=False, layers=30)
    fixup(holder)
    inner = torch.cat([block.ffn.inner.weight.detach().flatten() for block in holder.stack.blocks])
    attention = torch.cat([block.mixer.from_x.weight.detach().flatten() for block in holder.stack.blocks])
    he = math.sqrt(2 / D)
    assert float(inner.std()) == pytest.approx(he * 60**-0.5, rel=0.05)
    assert float(attention.std()) == pytest.approx(he * 60 ** (-1 / 6), rel=0.05)


def test_a_partial_norm_looks_at_the_first_features_only():
    norm = PartialRMSNorm(768)
    assert norm.first == 52
    x_BTD = torch.randn(1, 1, 768)
    before = norm(x_BTD)
    x_BTD[..., 700] += 3
    after = norm(x_BTD)
    torch.testing.assert_close(after[..., :700], before[..., :700])
    x_BTD[..., 3] += 3
    assert not torch.allclose(norm(x_BTD)[..., 4:52], after[..., 4:52])


def test_a_decoder_layer_sees_the_layer_that_its_share_names():
    link, outputs = Transparent(3, 2), [torch.randn(2, 5, D) for _ in range(4)]
    with torch.no_grad():
        link.shares_UL.zero_()
        link.shares_UL[1, 0] = link.shares_UL[3, 1] = 100.0
    first, second = link(outputs, torch.tensor([5, 4]))
    torch.testing.assert_close(first.features_BSD, outputs[1])
    torch.testing.assert_close(second.features_BSD, outputs[3])


def test_the_branch_of_an_evolved_encoder_leaves_half_of_the_features_alone():
    from nextword.blocks.evolved import EncoderBranch

    shape = Shape(D, 1, 2, 2, 8, 32, 10, causal=False)
    reading = Reading([0], [T], T, 10, torch.device("cpu"))
    y_BTD, _ = EncoderBranch(shape)(torch.randn(1, T, D), (), reading)
    assert not y_BTD[..., D // 2 :].any()
    assert y_BTD[..., : D // 2].any()


def test_the_shares_of_a_decoder_layer_sum_to_one_and_the_last_alone_is_plain_attention():
    link, outputs = Transparent(3, 2), [torch.ones(1, 4, D) * 2 for _ in range(4)]
    for memory in link(outputs, torch.tensor([4])):
        torch.testing.assert_close(memory.features_BSD, outputs[0])
    with torch.no_grad():
        link.shares_UL[-1] = 100.0
    outputs = [torch.randn(1, 4, D) for _ in range(4)]
    for memory in link(outputs, torch.tensor([4])):
        torch.testing.assert_close(memory.features_BSD, outputs[-1])
