"""The report of an evaluation, shown in notebooks and as JSON."""

from __future__ import annotations

import math

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
