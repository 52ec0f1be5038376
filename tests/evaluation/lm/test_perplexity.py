"""The numbers of an evaluation mean what the design says."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import pytest

from nextword.core.contracts import START, Block
from nextword.core.errors import DataError
from nextword.evaluation.lm.perplexity import evaluate


def one(data: bytes) -> list[Block]:
    return [Block(data, True)]


def test_perplexity_is_exp_of_the_mean_over_tokens_with_end_and_without_side_costs(trained):
    model, tokenizer = trained()
    report = evaluate(model, tokenizer, one(b"the cat sat\n\nthe zebra ran\n"))
    ids = np.concatenate([e.ids for e in tokenizer.encode_blocks(one(b"the cat sat\n\nthe zebra ran\n"))])
    logp = model.score_packed(ids)[ids != START]
    assert report.tokens == len(logp) == 9
    assert report.words == 9
    assert report.nll == pytest.approx(-logp.mean())
    assert report.perplexity == pytest.approx(math.exp(-logp.mean()))
    assert report.unknown_rate == pytest.approx(1 / 6)


def test_bits_per_byte_counts_every_nat_and_every_byte(trained):
    model, tokenizer = trained()
    data = b"the  cat zebra\n on\n"
    report = evaluate(model, tokenizer, one(data))
    pieces = list(tokenizer.encode_blocks(one(data), costs=True))
    side = sum(piece.side_nats for piece in pieces)
    assert side > 5
    total = report.nll * report.tokens + side
    assert report.bytes == len(data)
    assert report.bits_per_byte == pytest.approx(total / math.log(2) / len(data))
    assert report.word_perplexity == pytest.approx(math.exp(total / report.words))


@pytest.mark.parametrize("tokenizer_name", ["words", "bytes", "characters"])
def test_the_report_is_the_same_however_the_text_is_cut_and_for_any_family(
    trained, plain, text_maker, tokenizer_name
):
    model, tokenizer = trained(tokenizer_name)
    data = text_maker(40, seed=9)
    whole = evaluate(model, tokenizer, one(data))
    cuts = [0, 1, 100, 101, 777, len(data)]
    blocks = [Block(data[a:b], b == len(data)) for a, b in pairwise(cuts)]
    for asked in (model, plain(model)):
        cut = evaluate(asked, tokenizer, blocks)
        assert (cut.tokens, cut.words, cut.bytes) == (whole.tokens, whole.words, whole.bytes)
        assert cut.bits_per_byte == pytest.approx(whole.bits_per_byte, rel=1e-6)
        assert cut.perplexity == pytest.approx(whole.perplexity, rel=1e-6)


@pytest.mark.parametrize("data", [b"", b"\n\n", b"  \t \n"])
@pytest.mark.parametrize("name", ["words", "bytes"])
def test_a_text_without_a_word_is_an_error(trained, data, name):
    model, tokenizer = trained(name)
    with pytest.raises(DataError, match="no word"):
        evaluate(model, tokenizer, one(data))


def test_zero_probability_is_counted_named_and_never_bare_infinity(trained):
    model, tokenizer = trained(smoothing="mle")
    report = evaluate(model, tokenizer, one(b"the cat\nzebra under under under cat\n"))
    assert report.zero_tokens >= 1
    assert report.first_zero.startswith("'<unk>' (line 2, token 1)")
    assert math.isinf(report.perplexity)
    values = report.to_json()
    assert values["perplexity"] is values["bits_per_byte"] is values["nll"] is None
    assert "probability 0" in values["explanation"]
    json.dumps(values, allow_nan=False)
    assert "infinite" in str(report)


def test_json_has_the_fixed_keys(trained):
    model, tokenizer = trained()
    values = evaluate(model, tokenizer, one(b"the cat\n")).to_json()
    counts, rates = {"tokens", "words", "bytes"}, {"unknown_rate", "seconds", "signature"}
    assert counts | rates | {"nll", "perplexity", "word_perplexity", "bits_per_byte"} <= set(values)
    assert "explanation" not in values


def test_scores_that_are_no_probabilities_are_marked(trained):
    model, tokenizer = trained(smoothing="stupid")
    report = evaluate(model, tokenizer, one(b"the cat\n"))
    assert "score:no-probability" in report.signature
    assert "not probabilities" in report.explanation
    assert report.to_json()["is_probability"] is False
