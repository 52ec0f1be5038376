"""`Run.next`: the distribution over the next token."""

import math

import pytest

import nextword
from nextword.core.errors import ContextError


def test_next_is_a_distribution_over_every_word_but_start(run):
    pairs = run.next("the students")
    assert sum(p for _, p in pairs) == pytest.approx(1, abs=1e-6)
    assert len(pairs) == run.tokenizer.vocab_size - 1
    assert "</s>" in dict(pairs)
    assert "<s>" not in dict(pairs)
    assert [p for _, p in pairs] == sorted((p for _, p in pairs), reverse=True)
    assert pairs.is_probability


def test_next_of_nothing_is_the_beginning_of_a_sequence(run):
    assert run.next("", top=1)[0][0] == "the"


@pytest.mark.parametrize("top", [0, 1, 3, 1000])
def test_top_is_the_head_of_the_whole_distribution(run, top):
    whole = run.next("the")
    assert run.next("the", top=top) == whole[:top]


def test_next_probability_is_the_score_s(run):
    token = run.score("the students opened").tokens[2]
    assert dict(run.next("the students"))["opened"] == pytest.approx(math.exp(token.logprob), rel=1e-6)


def test_mle_says_where_it_has_no_distribution(corpus):
    run = nextword.train(corpus, model="ngram-mle")
    with pytest.raises(ContextError, match="no distribution"):
        run.next("books books books")
