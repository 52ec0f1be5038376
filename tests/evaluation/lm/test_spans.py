"""What lines and words cost is the same sum, however the text is cut into tokens."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nextword.core.contracts import Block
from nextword.evaluation.lm.spans import LineCosts, cut
from nextword.evaluation.lm.streams import ScoreStream
from nextword.evaluation.lm.surprise import by_word, units
from nextword.ngram import estimation
from nextword.ngram.settings import NgramSettings
from nextword.text.settings import TextSettings
from nextword.text.tokenizers import fit_tokenizer

TEXT = "the cat sat on the mat .\n\na dog saw the cat !\nमेरा नाम क्या है\n中文 字 text with ünknown\nlast"
TOKENIZERS = ("words", "characters", "bytes", "bpe", "unigram")


def trained(name, text=TEXT):
    blocks = [Block((text.replace("dog", "cow") * 5).encode(), True)]
    tokenizer = fit_tokenizer(name, blocks, TextSettings(tokenizer=name), None)
    ids = np.concatenate([piece.ids for piece in tokenizer.encode_blocks(blocks)])
    return estimation.build(ids, tokenizer.vocab_size, NgramSettings(order=2, smoothing="add")), tokenizer


@pytest.mark.parametrize("name", TOKENIZERS)
def test_the_lines_of_a_text_add_up_to_its_bits(name):
    model, tokenizer = trained(name)
    costs, stream, nats = LineCosts(tokenizer), ScoreStream(model), 0.0
    blocks = [Block(TEXT[:30].encode(), False), Block(TEXT[30:].encode(), True), Block(b"one more\n", True)]
    for piece in tokenizer.encode_blocks(blocks, costs=True):
        logp = stream.push(piece.ids)
        costs.add(piece, logp)
        nats += piece.side_nats - float(logp.sum())
    lines = costs.lines(7)
    assert lines.sum() == pytest.approx(nats / math.log(2))
    assert costs._lines == 7
    assert np.argmin(lines) == 1  # the empty one
    assert (np.delete(lines, 1) > 0).all()


@pytest.mark.parametrize("name", TOKENIZERS)
def test_words_cost_the_same_sum_as_their_tokens(name):
    model, tokenizer = trained(name)
    line = "the dog saw 中文 ünknown नाम"
    found = by_word(model, tokenizer, line)
    assert [word for word, _ in found] == line.split()
    side = sum(
        piece.side_nats
        for word in line.split()
        for piece in tokenizer.encode_blocks([Block(word.encode(), True)], costs=True)
        if piece.unknown
    )
    stream = ScoreStream(model)
    nats = 0.0
    for piece in tokenizer.encode_blocks([Block(line.encode(), True)]):
        nats -= float(stream.push(piece.ids)[:-1].sum())  # without END
    assert sum(bits for _, bits in found) == pytest.approx((nats + side) / math.log(2))
    assert all(bits > 0 for _, bits in found)


def test_a_word_gets_its_own_letters():
    model, tokenizer = trained("characters")
    found = dict(by_word(model, tokenizer, "cat mat"))
    ids = tokenizer.encode("cat mat")
    logp = model.score(ids[None], np.array([len(ids)]))[0][0]
    assert found["cat"] == pytest.approx(-float(logp[:3].sum()) / math.log(2))
    assert found["mat"] == pytest.approx(-float(logp[3:].sum()) / math.log(2))  # the space before it, too


@pytest.mark.parametrize("name", TOKENIZERS)
def test_what_stands_before_is_read_and_not_shown(name):
    model, tokenizer = trained(name)
    before, text = "a cow saw the\nünknown 中文 cat !\n", "the cat sat"
    found = by_word(model, tokenizer, text, before)
    whole = by_word(model, tokenizer, before + text)
    assert [word for word, _ in found] == ["the", "cat", "sat"]
    assert [bits for _, bits in found] == pytest.approx([bits for _, bits in whole[-3:]])


@pytest.mark.parametrize("name", TOKENIZERS)
def test_scripts_without_spaces_are_shown_by_character(name):
    text = "我们必须一起努力建设更加美好的未来世界"
    model, tokenizer = trained(name, text + "\n")
    found = by_word(model, tokenizer, text)
    assert "".join(word for word, _ in found) == text
    assert len(found) == len(text)
    assert all(bits > 0 for _, bits in found)


def test_accents_stay_with_their_letters():
    thai = "เราต้องทำงานร่วมกันเพื่ออนาคต"
    assert "".join(units(thai)) == thai
    assert "ต้" in units(thai)
    assert units("two  words ") == ["two", "words"]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 5000), min_size=1, max_size=300))
def test_blocks_keep_lines_whole_and_in_order(sizes):
    blocks = cut(np.array(sizes))
    assert len(blocks) == len(sizes)
    assert blocks[0] == 0
    assert set(np.diff(blocks)) <= {0, 1}
    assert blocks[-1] < 200


def test_blocks_are_about_equal():
    blocks = cut(np.full(10_000, 50))
    sums = np.bincount(blocks, weights=np.full(10_000, 50.0))
    assert len(sums) == 200
    assert sums.max() < 1.05 * sums.min()
