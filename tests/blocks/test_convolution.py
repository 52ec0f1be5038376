"""Convolutions in place of attention: weights that sum to 1, fixed or from the token itself."""

from __future__ import annotations

import pytest
import torch

from nextword.blocks.cache import Reading
from nextword.blocks.convolution import ConvolutionSettings, DynamicConvolution, LightConvolution
from nextword.blocks.positions import NoPosition
from nextword.blocks.shape import Shape

D, T = 8, 12


def made(kind, causal=True, **options):
    shape = Shape(D, 1, 2, 2, 4, 16, T, causal=causal, options=(ConvolutionSettings(widths=(3,), **options),))
    return kind(shape, NoPosition(shape)).eval()


def read(part, x_BTD):
    B, columns = x_BTD.shape[:2]
    reading = Reading([0] * B, [columns] * B, columns, T, x_BTD.device)
    return part(x_BTD, part.start(B), reading)[0]


@pytest.mark.parametrize("kind", [LightConvolution, DynamicConvolution])
@pytest.mark.parametrize("causal", [True, False])
def test_what_is_equal_everywhere_stays_so_away_from_the_edges(kind, causal):
    part = made(kind, causal)
    y_BTD = read(part, torch.randn(1, 1, D).expand(1, T, D))
    torch.testing.assert_close(y_BTD[:, 3:-2], y_BTD[:, 3:4].expand(-1, T - 5, -1))


def test_a_dynamic_one_whose_matrix_is_zero_is_a_moving_average():
    part = made(DynamicConvolution)
    torch.nn.init.zeros_(part.taps.weight)
    x_BTD = torch.randn(2, T, D)
    v_BTC = torch.nn.functional.glu(part.from_x(x_BTD), dim=-1)
    joined = torch.nn.functional.pad(v_BTC, (0, 0, 2, 0))
    mean = (joined[:, :-2] + joined[:, 1:-1] + joined[:, 2:]) / 3
    torch.testing.assert_close(read(part, x_BTD), part.out(mean))


def test_a_light_one_moves_with_its_input():
    part, x_BTD = made(LightConvolution), torch.randn(1, T, D)
    torch.testing.assert_close(read(part, x_BTD[:, 1:])[:, 2:], read(part, x_BTD)[:, 3:])


def test_the_weights_of_a_dynamic_one_come_from_the_token_alone():
    part, x_BTD = made(DynamicConvolution), torch.randn(1, T, D)
    taps = []
    part.taps.register_forward_hook(lambda *call: taps.append(call[2]))
    read(part, x_BTD)
    x_BTD[0, 4] += 1
    read(part, x_BTD)
    same = (taps[0] == taps[1]).all(dim=-1)[0]
    assert same.tolist() == [t != 4 for t in range(T)]


def test_channels_of_a_head_share_their_weights_or_each_has_its_own():
    assert made(LightConvolution).taps_NJ.shape == (2, 3)
    assert made(LightConvolution, heads=D).taps_NJ.shape == (D, 3)
