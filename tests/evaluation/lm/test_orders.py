"""Unseen n-grams and bytes by order, as counted by hand."""

from __future__ import annotations

import pytest
from packed_texts import pack

from nextword.evaluation.lm import orders
from nextword.ngram import estimation
from nextword.ngram.settings import NgramSettings


def test_unseen_shares_are_counted_as_by_hand():
    model = estimation.build(pack([[3, 4, 5]]), 7, NgramSettings(order=3, smoothing="backoff"))
    held = pack([[3, 4, 4]])  # words 3 4 4 END; bigrams <s>3 34 44 4</s>; trigrams <s>34 344 44</s>
    assert orders.unseen_shares(model, held) == pytest.approx([0, 2 / 4, 2 / 3])
    assert orders.unseen_shares(model, pack([[6]])) == pytest.approx([1 / 2, 1, 1])


def test_bytes_by_order_are_those_of_the_saved_arrays():
    ids = pack([[3, 4, 5, 3, 4], [4, 4], [5]])
    facts = list(orders.look(ids, ids, 6, 4))
    for each in facts:
        model = estimation.build(ids, 6, NgramSettings(order=each.n, smoothing="backoff"))
        assert each.bytes == model.trie.nbytes
    assert [each.unseen for each in facts] == [0, 0, 0, 0]


def test_a_sample_ends_at_the_end_of_a_sequence():
    ids = pack([[3] * 5, [4] * 5, [5] * 5])
    assert list(orders.sample(ids, 16)) == list(pack([[3] * 5, [4] * 5]))
    assert len(orders.sample(ids, 100)) == len(ids)
