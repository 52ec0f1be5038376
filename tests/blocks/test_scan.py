"""The scan is its plain twin, in pieces or not."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nextword.blocks import scan as scanning
from nextword.blocks.scan import scan, scan_plain


@given(st.integers(1, 300), st.integers(1, 3), st.booleans())
@settings(max_examples=25, deadline=None)
def test_scan_is_its_plain_twin_in_pieces_or_not(positions, rows, backwards):
    a_TBH, b_TBH = torch.rand(positions, rows, 2).double(), torch.randn(positions, rows, 2).double()
    start_BH = torch.randn(rows, 2).double()
    plain = scan_plain(*((x.flip(0) if backwards else x) for x in (a_TBH, b_TBH)), start_BH)
    ours = scanning.run(a_TBH, b_TBH, start_BH, backwards)
    torch.testing.assert_close(ours, plain.flip(0) if backwards else plain, atol=1e-10, rtol=0)


@pytest.mark.parametrize("positions", [5, 130])
def test_gradients_of_the_scan_hold(positions):
    shape = (positions, 2, 3)
    leaves = [torch.rand(shape).double(), torch.randn(shape).double(), torch.randn(2, 3).double()]
    leaves = [leaf.requires_grad_() for leaf in leaves]
    weights = torch.randn(shape).double()
    ours = torch.autograd.grad((scan(*leaves) * weights).sum(), leaves)
    plain = torch.autograd.grad((scan_plain(*leaves) * weights).sum(), leaves)
    for one, other in zip(ours, plain, strict=True):
        torch.testing.assert_close(one, other, atol=1e-10, rtol=0)


def test_scan_does_not_overflow_where_nothing_is_kept_or_all_is():
    for kept in (0.0, 1e-30, 1.0):
        a_TBH = torch.full((500, 1, 1), kept)
        assert torch.isfinite(scan(a_TBH, torch.ones(500, 1, 1), torch.ones(1, 1))).all()
