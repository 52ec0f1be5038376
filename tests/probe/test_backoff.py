"""The chain of contexts: weights times the last probability are what the model says."""

from __future__ import annotations

import math

import pytest
from small_texts import MEETING

import nextword
from nextword.api.inspect import subject_of
from nextword.probe.backoff import levels

MODELS = ["ngram", "ngram-kneser-ney", "ngram-witten-bell", "ngram-laplace", "ngram-katz"]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("prompt", ["the cat", "the dog sat on the", "met", ""])
def test_product_of_the_chain_is_the_probability(model, prompt, tmp_path):
    path = tmp_path / "t.txt"
    path.write_text(MEETING * 4)
    run = nextword.train(path, model=model, set={"model.order": 4})
    subject, read = subject_of(run), tuple(int(index) for index in run.tokenizer.encode(prompt))
    p_of = dict(run.next(prompt))
    for index in range(2, run.tokenizer.vocab_size):
        chain = levels(subject, read, index)
        assert [each.probability is not None for each in chain] == [False] * (len(chain) - 1) + [True]
        weights = [each.weight for each in chain if each.weight is not None]
        p = math.prod(weights) * chain[-1].probability
        assert p == pytest.approx(p_of[run.tokenizer.piece(index)], rel=1e-5, abs=1e-9)


def test_counts_of_the_longest_context_are_those_of_the_text(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text(MEETING * 4)
    run = nextword.train(path, model="ngram-witten-bell", set={"model.order": 3})
    read, (word,) = ([int(index) for index in run.tokenizer.encode(text)] for text in ("sat on the", "mat"))
    (found,) = levels(subject_of(run), read, word)
    assert (found.context, found.order, found.kinds, found.count, found.total) == ("on the", 3, 2, 4, 8)
    missing = levels(subject_of(run), read, int(run.tokenizer.encode("dog")[0]))
    assert [(each.context, each.is_seen, each.count) for each in missing] == [
        ("on the", True, 0),
        ("the", True, 4),
    ]
