"""Verdicts: one for each part of a claim; that of the whole follows, and quick mode never contradicts."""

from __future__ import annotations

import itertools

import pytest

from nextword.experiments.finding import QUICK, Finding, Judge, Verdict, by_all, by_test, overall
from nextword.experiments.result import ExperimentResult

HELD, PARTLY, CORRECTED, FAILED, OPEN = Verdict


def made(*verdicts):
    return tuple(Finding("a claim", verdict, "a number") for verdict in verdicts)


def result(findings, summary="it is so"):
    return ExperimentResult("counts", "Title", "XMU", "Claim.", summary, findings, "Counted.", ())


def test_there_are_exactly_five_verdicts():
    assert list(Verdict) == [
        "held", "partly", "held once corrected", "did not hold", "not measurable here",
    ]  # fmt: skip


@pytest.mark.parametrize(("parts", "whole"), [
    ((HELD, HELD), HELD),
    ((HELD, CORRECTED), CORRECTED),
    ((CORRECTED,), CORRECTED),
    ((HELD, FAILED), PARTLY),
    ((HELD, OPEN), PARTLY),
    ((HELD, PARTLY), PARTLY),
    ((CORRECTED, FAILED), PARTLY),
    ((FAILED, FAILED), FAILED),
    ((FAILED, OPEN), FAILED),
    ((OPEN, OPEN), OPEN),
])  # fmt: skip
def test_the_verdict_of_the_whole_follows_from_its_parts(parts, whole):
    assert overall(made(*parts)) is whole
    assert overall(made(*reversed(parts))) is whole


def test_held_stands_over_nothing_that_contradicts_a_part():
    for parts in itertools.product(Verdict, repeat=3):
        whole = overall(made(*parts))
        assert (whole is HELD) == (set(parts) == {HELD})
        assert (whole in (HELD, CORRECTED)) == (set(parts) <= {HELD, CORRECTED})


def test_a_quick_run_agrees_with_the_full_one_or_leaves_it_open():
    for exact, measured in itertools.product(Verdict, repeat=2):
        both = {}
        for quick in (False, True):
            judge = Judge(quick)
            judge.exact("counted", exact, "3 of 4")
            judge.measure("trained", measured, "2.5 bits")
            both[quick] = judge.findings
        assert all(found.verdict in (full.verdict, OPEN) for full, found in zip(*both.values(), strict=True))
        assert overall(both[True]) in (overall(both[False]), OPEN)
        assert both[True][1].measured == QUICK == "not measurable in quick mode"


def test_a_quick_result_says_that_it_cannot_tell():
    judge = Judge(quick=True)
    judge.measure("trained", True, "2.5 bits")
    found = result(judge.findings)
    assert not found.holds
    assert found.sentence.startswith("not measurable in quick mode")
    assert "it is so" not in str(found)


def test_a_test_without_a_significant_difference_tells_nothing():
    assert by_test(0.3, 0.01) is HELD
    assert by_test(-0.3, 0.01) is FAILED
    assert by_test(0.3, 0.47) is OPEN
    assert by_test(0.3, None) is OPEN


def test_some_of_several_measurements_are_partly():
    assert [by_all(each) for each in ((True, True), (True, False), (False, True), (False, False))] == [
        HELD, PARTLY, PARTLY, FAILED,
    ]  # fmt: skip


def test_a_headline_is_short():
    assert result(made(HELD), "word " * 15).headline
    with pytest.raises(AssertionError, match="more than 15 words"):
        result(made(HELD), "word " * 16)


def test_page_text_and_json_have_the_verdict_of_every_part():
    findings = (Finding("a < b", HELD, "1 & 2"), Finding("c", FAILED, "3"))
    found = result(findings)
    assert found.verdict is PARTLY
    page = found.page().html()
    assert 'class="verdict open">partly: it is so.' in page
    assert "<td>a &lt; b</td><td><b>held</b></td><td>1 &amp; 2</td>" in page
    assert "<td>c</td><td><b>did not hold</b></td>" in page
    assert "did not hold: c" in str(found)
    assert [each["verdict"] for each in found.to_json()["findings"]] == ["held", "did not hold"]
    assert 'class="verdict no">' in result(findings[1:]).page().html()
    assert 'class="verdict">' in result(findings[:1]).page().html()
