"""Batches for training: each word of the text is learned exactly once in an epoch."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nextword.core import catalog
from nextword.core.contracts import END, START
from nextword.core.errors import ConfigError
from nextword.data.batches.batch import Columns, Stream, choose_kind, make_batches
from nextword.models.training import NeuralTrainSettings

KINDS = ("columns", "windows", "sentences")


def text(documents):
    """Packed ids of documents of lines of words; and where the documents begin."""
    ids, begins = [], []
    for lines in documents:
        begins.append(len(ids))
        for line in lines:
            ids += [START, *line, END]
    return np.array(ids, np.int32), np.array(begins)


def plain_stream(documents, carry):
    """The stream by the rule, word for word."""
    found = []
    for lines in documents:
        for number, line in enumerate(lines):
            found += [*([START] if number == 0 or not carry else []), *line, END]
    return found


def pairs_of(stream):
    """All predictions of a stream: (word before, word)."""
    return Counter((a, b) for a, b in pairwise(stream) if b != START)


words = st.lists(st.integers(3, 40), max_size=9)
texts = st.lists(st.lists(words, min_size=1, max_size=4), min_size=1, max_size=8)


@given(texts, st.booleans())
def test_stream_leaves_out_the_starts_inside_documents(documents, carry):
    ids, begins = text(documents)
    stream = Stream(ids, begins, carry)
    expected = plain_stream(documents, carry)
    assert stream.at(np.arange(len(stream))).tolist() == expected
    assert stream.tokens == len(expected) - expected.count(START)
    assert stream.places(stream.starts).tolist() == [i for i, word in enumerate(expected) if word == START]


@settings(deadline=None, max_examples=60)
@given(texts, st.booleans(), st.integers(1, 5), st.integers(1, 7), st.integers(0, 3), st.sampled_from(KINDS))
def test_every_word_is_learned_exactly_once_in_an_epoch(documents, carry, batch, length, epoch, kind):
    ids, begins = text(documents)
    expected = plain_stream(documents, carry)
    length = min(length, len(expected) - 1)
    source = make_batches(kind, ids, begins, carry, batch, length, seed=4)
    found = Counter()
    batches = list(source.batches(epoch))
    for each in batches:
        real = each.targets_BT >= 0
        assert each.inputs_BT.shape == each.targets_BT.shape
        assert each.inputs_BT.size <= max(batch * length, length)
        found += Counter(zip(each.inputs_BT[real].tolist(), each.targets_BT[real].tolist(), strict=True))
    assert found == pairs_of(expected)
    assert len(batches) == source.per_epoch
    assert source.tokens == sum(found.values()) == sum(each.tokens for each in batches)


@settings(deadline=None, max_examples=60)
@given(texts, st.integers(1, 5), st.integers(0, 2), st.sampled_from(KINDS), st.integers(0, 9))
def test_batches_can_go_on_from_any_index(documents, batch, epoch, kind, start):
    ids, begins = text(documents)
    whole = list(make_batches(kind, ids, begins, True, batch, 1, seed=1).batches(epoch))
    rest = list(make_batches(kind, ids, begins, True, batch, 1, seed=1).batches(epoch, start))
    assert len(rest) == max(0, len(whole) - start)
    for left, right in zip(whole[start:], rest, strict=True):
        assert np.array_equal(left.inputs_BT, right.inputs_BT)
        assert np.array_equal(left.targets_BT, right.targets_BT)
        assert np.array_equal(left.resets_BT, right.resets_BT)


@settings(deadline=None, max_examples=60)
@given(texts, st.integers(1, 4), st.integers(1, 5), st.integers(0, 2))
def test_columns_go_on_where_the_batch_before_ended(documents, batch, length, epoch):
    ids, begins = text(documents)
    expected = plain_stream(documents, True)
    source = Columns(ids, begins, True, batch, min(length, len(expected) - 1), seed=2)
    batches = list(source.batches(epoch))
    rows = np.concatenate([each.inputs_BT for each in batches], axis=1)
    targets = np.concatenate([each.targets_BT for each in batches], axis=1)
    resets = np.concatenate([each.resets_BT for each in batches], axis=1)
    assert resets[:, 0].all()
    for b, t in np.argwhere(targets[:, :-1] >= 0):
        if (
            targets[b, t + 1] >= 0
        ):  # the next word read is the one that was to be predicted, or a new document
            assert rows[b, t + 1] in (targets[b, t], START)
    inside = resets[:, 1:]
    assert (rows[:, 1:][inside] == START).all()


@settings(deadline=None, max_examples=60)
@given(texts, st.integers(1, 6))
def test_rows_of_sentences_begin_with_their_start_and_reset_once(documents, batch):
    ids, begins = text(documents)
    for each in make_batches("sentences", ids, begins, True, batch, 50, seed=0).batches(0):
        assert (each.inputs_BT[:, 0] == START).all()
        assert each.resets_BT[:, 0].all()
        assert not each.resets_BT[:, 1:].any()


def test_epochs_and_seeds_have_other_orders():
    ids, begins = text([[list(range(3, 40))] * 20])
    for kind in KINDS:
        firsts = {
            next(make_batches(kind, ids, begins, False, 4, 8, seed).batches(epoch)).inputs_BT.tobytes()
            for seed in (0, 1)
            for epoch in (1, 2)
        }
        assert len(firsts) == 4, kind


def test_mapped_ids_give_the_same_batches(tmp_path):
    ids, begins = text([[[5, 6, 7], [8, 9]], [[10] * 30]])
    path = tmp_path / "ids"
    ids.tofile(path)
    mapped = np.memmap(path, np.int32, "r")
    for kind in KINDS:
        both = [list(make_batches(kind, each, begins, True, 2, 4, 0).batches(1)) for each in (ids, mapped)]
        for left, right in zip(*both, strict=True):
            assert np.array_equal(left.inputs_BT, right.inputs_BT)
            assert type(right.inputs_BT) is np.ndarray


def test_more_context_than_data_is_one_sentence():
    ids, begins = text([[[5, 6, 7]]])
    for kind in ("columns", "windows"):
        with pytest.raises(ConfigError, match=r"'train.length' is 100 .* has only 4; set at most 4"):
            make_batches(kind, ids, begins, True, 2, 100)


def test_kind_follows_the_model_and_the_documents():
    ids, begins = text([[[5, 6, 7]]] * 50)
    assert choose_kind(ids, begins, True, 35, recurrent=True) == "sentences"
    assert choose_kind(ids, begins[:1], True, 35, recurrent=True) == "columns"
    assert choose_kind(ids, begins[:1], False, 35, recurrent=True) == "sentences"
    assert choose_kind(ids, begins, True, 35, recurrent=False) == "windows"


def test_batches_registered_from_outside_are_used(monkeypatch):
    monkeypatch.setitem(catalog.SLOTS["batches"], "mine", "nextword.data.batches.batch:Columns")
    ids, begins = text([[[5, 6, 7, 8]]])
    made = make_batches("mine", ids, begins, True, 1, 2, 0)
    assert isinstance(made, Columns)
    assert NeuralTrainSettings(batches="mine").batches == "mine"
