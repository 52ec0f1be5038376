"""`Run.next`: the distribution over the next token."""

import math

import pytest

import nextword
from nextword.core.errors import ConfigError, ContextError


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


@pytest.mark.parametrize(
    ("model", "sets"),
    [
        ("ngram", {"text.tokenizer": "words"}),
        ("ngram", {"text.tokenizer": "characters"}),
        ("ngram", {"text.tokenizer": "bytes"}),
        ("ngram", {"text.tokenizer": "bpe"}),
        ("unbounded", {"text.tokenizer": "characters"}),
    ],
)
def test_whole_words_of_every_tokenizer_are_a_distribution(corpus, model, sets):
    run = nextword.train(corpus, model=model, set=sets)
    found = run.next("the students opened their", top=None, words=True)
    assert {"books", "minds"} <= {word for word, _ in found[:3]}
    facts = found.found
    assert sum(p for _, p in found) + facts.unknown + facts.left == pytest.approx(1, abs=1e-5)
    assert not facts.part


def test_next_of_the_package_gives_words_and_that_of_a_run_tokens(corpus):
    run = nextword.train(corpus, model="ngram", tokenizer="characters")
    assert nextword.next(run, "the students opened their ", top=1)[0][0] in ("books", "minds")
    assert run.next("the students opened their ", top=1)[0][0] in "bm"
    assert nextword.next(run, "the students ope", top=1, words=False) == run.next("the students ope", top=1)


def test_words_of_a_run_of_words_are_its_tokens(run):
    tokens = [pair for pair in run.next("the students") if pair[0] != "<unk>"]
    assert run.next("the students", words=True) == tokens


def test_beginning_of_a_word_is_completed(corpus):
    run = nextword.train(corpus, model="ngram", tokenizer="characters")
    found = run.next("the students ope", top=3, words=True)
    assert found.found.part == "ope"
    assert "opened" in dict(found)


def test_scores_are_not_summed_over_pieces(corpus):
    run = nextword.train(corpus, model="ngram-stupid", tokenizer="characters")
    with pytest.raises(ConfigError, match="words=False"):
        run.next("the", words=True)
