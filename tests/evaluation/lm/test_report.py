"""The report of an evaluation, shown in notebooks and as JSON."""

from __future__ import annotations

import math

import pytest

import nextword
from nextword.evaluation.lm.report import Report


def test_a_report_escapes_what_it_shows_in_notebooks():
    report = Report(1, 1, 1, 1.0, 2.0, 2.0, 1.0, 0.0, 0.1, "<script>", zero_tokens=1, first_zero="<b>")
    assert "<script>" not in report._repr_html_()
    assert "&lt;script&gt;" in report._repr_html_()
    assert "&lt;b&gt;" in report._repr_html_()


def test_too_large_a_perplexity_is_null_with_a_reason():
    report = Report(1, 1, 1, 800.0, math.inf, math.inf, 1.0, 0.0, 0.1, "x")
    assert report.to_json()["perplexity"] is None
    assert "nll" in report.to_json()["explanation"]


def test_text_of_another_kind_is_explained(tmp_path):
    english, other = tmp_path / "english.txt", tmp_path / "other.txt"
    english.write_text("the cat sat on the mat and the dog ran to the door\n" * 30)
    other.write_text("Das Wetter war gestern überraschend fürchterlich geworden the\n" * 3)
    report = nextword.train(english, model="ngram").evaluate(other)
    assert report.unknown_rate > 0.8
    assert f"{report.unknown_rate:.0%} of the words are unknown to the model and were spelled" in str(report)
    assert "train on text like this one" in report.explanation
    assert 0 < report.side_bits_per_byte < report.bits_per_byte
    assert "(with spelling and layout)" in str(report)


def test_more_bits_than_the_file_has_and_large_numbers_are_shown_as_such():
    report = Report(
        tokens=10, words=10, bytes=60, nll=9.0, perplexity=8103.08, word_perplexity=6.6158e18,
        bits_per_byte=10.4, unknown_rate=0.97, seconds=0.1, signature="bits|tok:words",
        side_bits_per_byte=8.0,
    )  # fmt: skip
    assert "6.6e+18" in str(report)
    assert "10.4 bits per byte are more than the 8 of a file" in report.explanation
    assert "97% of the words" in report.explanation


def test_unk_in_the_text_is_no_new_word(tmp_path):
    text, new = tmp_path / "a.txt", tmp_path / "b.txt"
    text.write_text("the <unk> sat on the mat\n" * 5)
    new.write_text("the <unk> sat on the <unk> house\n")
    report = nextword.train(text, model="ngram", set={"text.unknown": "literal"}).evaluate(new)
    assert report.unknown_rate == pytest.approx(3 / 7)
    assert report.literal_rate == pytest.approx(2 / 7)
    assert report.unseen_rate == pytest.approx(1 / 7)
    assert "42.86% (28.57% are <unk> in the text)" in str(report)
    plain = nextword.train(text, model="ngram").evaluate(new)
    assert plain.unknown_rate == plain.unseen_rate == pytest.approx(1 / 7)
