"""Scores of lines: each line alone, whatever the tokenizer's unit and however the text is cut."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nextword.core.contracts import Block
from nextword.evaluation.lines.scores import LineCutter, line_batches, score_lines
from nextword.evaluation.lm import streams
from nextword.text import sequences

lines = st.lists(st.text(alphabet="the cat\tzé\r", max_size=30), max_size=12)


def by_hand(model, tokenizer, text, begin=True, end=True):
    ids = [*map(int, tokenizer.encode(text)), 2]
    ids = ids if end else ids[:-1]
    row = np.array([ids], dtype=int).reshape(1, -1)
    logp, _ = model.score(row, np.array([len(ids)]), model.start(1, None, begin))
    return float(logp.sum())


@pytest.mark.parametrize("name", ["words", "bytes"])
@pytest.mark.parametrize(("begin", "end"), [(True, True), (False, True), (True, False), (False, False)])
@settings(max_examples=10, deadline=None)
@given(texts=lines, cuts=st.lists(st.integers(0, 200), max_size=4))
def test_every_line_gets_the_score_it_has_alone(trained, name, begin, end, texts, cuts):
    model, tokenizer = trained(name)
    data = "".join(text + "\n" for text in texts).encode()
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    blocks = [Block(data[a:b], False) for a, b in pairwise(edges)]
    found = list(score_lines(model, tokenizer, blocks, begin=begin, end=end))
    assert [line.text for line in found] == [text.removesuffix("\r") for text in texts]
    assert [line.line for line in found] == list(range(1, len(texts) + 1))
    expected = [by_hand(model, tokenizer, text, begin, end) for text in texts]
    assert np.allclose([line.logprob for line in found], expected, atol=1e-6)


def test_a_last_line_without_an_end_counts_and_documents_end_lines(trained):
    model, tokenizer = trained()
    found = list(score_lines(model, tokenizer, [Block(b"the cat", True), Block(b"sat\non", True)]))
    assert [line.text for line in found] == ["the cat", "sat", "on"]
    assert [line.count for line in found] == [3, 2, 2]


@pytest.mark.parametrize(("name", "counted"), [("words", True), ("bytes", False), ("characters", False)])
def test_the_end_counts_by_default_only_where_it_ends_a_line(trained, name, counted):
    model, tokenizer = trained(name)
    (line,) = score_lines(model, tokenizer, [Block(b"the cat\n", True)], tokens=True)
    assert line.logprob == pytest.approx(by_hand(model, tokenizer, "the cat", end=counted))
    assert line.count == len(line.tokens) == len(tokenizer.encode("the cat")) + counted
    assert (line.tokens[-1].text == "</s>") == counted
    (asked,) = score_lines(model, tokenizer, [Block(b"the cat\n", True)], end=True)
    assert asked.logprob == pytest.approx(by_hand(model, tokenizer, "the cat"))


def test_tokens_sum_to_the_line_and_show_unknown_words(trained):
    model, tokenizer = trained()
    (line,) = score_lines(model, tokenizer, [Block(b"the zebra sat\n", True)], tokens=True)
    assert [token.text for token in line.tokens] == ["the", "<unk>", "sat", "</s>"]
    assert [token.known for token in line.tokens] == [True, False, True, True]
    assert all(type(token.known) is bool for token in line.tokens)  # JSON knows no other
    assert sum(token.logprob for token in line.tokens) == pytest.approx(line.logprob)
    assert line.unknown == 1
    (line,) = score_lines(model, tokenizer, [Block(b"the sat\n", True)], tokens=True, end=False)
    assert [token.text for token in line.tokens] == ["the", "sat"]
    assert line.count == 2


def test_base_ten_changes_the_scale_and_not_the_perplexity(trained):
    model, tokenizer = trained()
    (natural,) = score_lines(model, tokenizer, [Block(b"the cat\n", True)])
    (ten,) = score_lines(model, tokenizer, [Block(b"the cat\n", True)], log10=True, tokens=True)
    assert ten.logprob == pytest.approx(natural.logprob / math.log(10))
    assert ten.perplexity == pytest.approx(natural.perplexity)
    assert ten.perplexity == pytest.approx(math.exp(-natural.logprob / 3))
    assert sum(token.logprob for token in ten.tokens) == pytest.approx(ten.logprob)


def test_a_line_of_probability_zero_is_minus_infinity_alone(trained):
    model, tokenizer = trained(smoothing="mle")
    batch = next(line_batches(model, tokenizer, [Block(b"zebra zebra\nthe\n", True)]))
    assert np.isneginf(batch.logprob[0])
    assert np.isfinite(batch.logprob[1])
    first = next(score_lines(model, tokenizer, [Block(b"zebra zebra\n", True)]))
    assert math.isinf(first.perplexity)


@given(data=st.binary(max_size=60), cuts=st.lists(st.integers(0, 60), max_size=4))
def test_cutting_blocks_into_lines_loses_nothing(data, cuts):
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    cutter, found = LineCutter(), []
    for a, b in pairwise(edges):
        found += cutter.push(Block(data[a:b], False))
    found += cutter.flush()
    whole = data.split(b"\n")
    assert found == (whole if whole[-1] else whole[:-1])


def test_lines_of_one_block_may_come_in_several_batches(trained, text_maker, monkeypatch):
    monkeypatch.setattr(streams, "GATHER", 50)
    model, tokenizer = trained("bytes")
    monkeypatch.setattr(sequences, "GATHER", 60)
    data = text_maker(50, seed=1)
    found = list(score_lines(model, tokenizer, [Block(data, True)]))
    assert [line.text for line in found] == data.decode().split("\n")[:-1]
    assert len(list(line_batches(model, tokenizer, [Block(data, True)]))) > 1
