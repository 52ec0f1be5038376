"""Relative positions by buckets: the golden values of T5, one table for a stack or one for each layer."""

from __future__ import annotations

import pytest
import torch

from nextword.blocks.relative import Buckets, BucketSettings, LayerBuckets, bucket
from nextword.blocks.shape import Shape

BOTH = {0: 0, -1: 1, -7: 7, -8: 8, -12: 9, -16: 10, -32: 12, -64: 14, -128: 15, 1: 17, 8: 24, 64: 30}
BOTH |= {1000: 31}
BEFORE = {-15: 15, -16: 16, -32: 21, -64: 26, -128: 31, 1: 0, 500: 0, 0: 0}


@pytest.mark.parametrize(("golden", "causal"), [(BOTH, False), (BEFORE, True)])
def test_a_distance_has_the_bucket_of_t5(golden, causal):
    found = bucket(torch.tensor(list(golden)), BucketSettings(), causal)
    assert found.tolist() == list(golden.values())


def test_rows_at_different_places_get_the_numbers_of_their_own_distances():
    position = Buckets(Shape(16, 2, 2, 2, 8, 32, 20))
    even_NTS = position.bias(slice(5, 7), 9)
    rows_BNTS = position.bias(torch.tensor([[5, 6], [3, 4]]), 9)
    torch.testing.assert_close(rows_BNTS[0], even_NTS, atol=0, rtol=0)
    torch.testing.assert_close(rows_BNTS[1], position.bias(slice(3, 5), 9), atol=0, rtol=0)


def test_layers_share_a_table_or_have_their_own_and_another_number_of_heads_has_another():
    shape = Shape(16, 2, 2, 2, 8, 32, 20)
    shared, own = Buckets(shape), LayerBuckets(shape)
    assert shared.of_layer(shape) is shared
    wide = Shape(16, 2, 4, 4, 8, 32, 20)
    assert shared.of_layer(wide) is shared.of_layer(wide)
    assert shared.of_layer(wide) is not shared
    assert own.of_layer(shape) is not own.of_layer(shape)
