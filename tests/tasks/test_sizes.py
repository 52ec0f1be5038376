"""Sizes that follow from text and time."""

import pytest

from nextword.tasks import sizes


@pytest.mark.parametrize(
    ("size", "seconds", "names"),
    [(1_000_000, 60, ("characters", "bpe")), (10_000_000, 60, ()), (1_000_000, 10, ()), (None, 60, ())],
)
def test_only_small_texts_and_enough_time_open_the_choice(size, seconds, names):
    assert sizes.tokenizers(size, seconds) == names


def test_more_time_allows_more_subwords_and_more_text():
    seconds = (20, 60, 300, 3600)
    assert sorted(sizes.vocabulary(10_000_000, each) for each in seconds) == [
        sizes.vocabulary(10_000_000, each) for each in seconds
    ]
    assert sizes.vocabulary(20_000, 3600) == 512
    assert sizes.readable(600, "bpe") > sizes.readable(60, "bpe") >= 1_000_000
    assert sizes.readable(60, "words") > sizes.readable(60, "bpe")


def test_batches_are_small_where_there_are_few_words():
    few, many = sizes.batch_shape(1e5, 64), sizes.batch_shape(1e8, 64)
    assert few.batch < many.batch <= 128
    assert few.batch >= 4


def test_dropout_grows_with_the_passes_over_the_text():
    shares = [sizes.dropout(epochs) for epochs in (0.1, 2, 5, 12, 50)]
    assert shares == sorted(shares)
    assert shares[0] == 0


def test_large_vocabularies_get_the_adaptive_head():
    assert sizes.head(33_000) == "adaptive"
    assert sizes.head(4_096) == "softmax"


def test_few_labelled_examples_are_read_often_in_small_batches():
    few, many = sizes.LABELLED.batch(80, 64), sizes.LABELLED.batch(20_000, 64)
    assert (few, many) == (4, 64)
    assert sizes.LABELLED.epochs(15, steps=200) == 15
    assert 15 < sizes.LABELLED.epochs(15, steps=50) < sizes.LABELLED.epochs(15, steps=20)
    assert sizes.LABELLED.epochs(15, steps=1) == sizes.LABELLED.epochs(15, steps=2)
