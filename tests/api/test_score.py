"""`Run.score`: the log-probability of a text and of its tokens."""

import math

import pytest

from nextword.core.errors import DataError


def test_score_adds_up_and_names_its_tokens(run):
    score = run.score("the students opened their books")
    assert [token.text for token in score.tokens] == ["the", "students", "opened", "their", "books", "</s>"]
    assert score.nll == pytest.approx(-sum(token.logprob for token in score.tokens) / 6)
    assert score.perplexity == pytest.approx(math.exp(score.nll))
    assert score.bits_per_byte > 0
    assert score.logprob == pytest.approx(-6 * score.nll)
    assert "perplexity=" in repr(score)


def test_unknown_word_is_marked_and_costs_its_spelling(run):
    known, unknown = run.score("the students"), run.score("the zebras")
    assert [token.known for token in unknown.tokens] == [True, False, True]
    assert unknown.bits_per_byte > known.bits_per_byte


def test_empty_text_has_no_score(run):
    with pytest.raises(DataError, match="the text is empty"):
        run.score("")


def test_score_is_what_evaluate_measures(run, tmp_path):
    text = "the students read their books"
    (tmp_path / "t.txt").write_text(text)
    report, score = run.evaluate(tmp_path / "t.txt"), run.score(text)
    assert report.nll == pytest.approx(score.nll)
    assert report.bits_per_byte == pytest.approx(score.bits_per_byte)
