"""The table of experiments in the lectures' map: its names and claims are the code's, its verdicts follow."""

from __future__ import annotations

import re

import lab_tables
import pytest

from nextword.core import catalog
from nextword.experiments.finding import Finding, Verdict, overall
from nextword.experiments.result import LONGEST

HOW, RESULTS = lab_tables.parse(lab_tables.PAGE.read_text(encoding="utf-8"))


def test_every_experiment_is_there_in_the_lectures_order():
    assert [each["name"] for each in RESULTS] == catalog.names("lab")


@pytest.mark.parametrize("each", RESULTS, ids=lambda each: each["name"])
def test_claims_are_those_of_the_code_and_the_verdict_follows(each):
    """Run tests/support/lab_tables.py after a change of an experiment."""
    assert tuple(part["claim"] for part in each["findings"]) == lab_tables.claims(each["name"])
    parts = [Finding(part["claim"], Verdict(part["verdict"]), part["measured"]) for part in each["findings"]]
    assert Verdict(each["verdict"]) is overall(parts)
    assert all(part.measured for part in parts)
    assert len(each["sentence"].split()) <= LONGEST


def test_it_says_when_and_how_it_was_measured():
    assert re.match(r"Measured on \d{4}-\d\d-\d\d with nextword [\d.]+\w* by `nextword lab all`", HOW)


def test_the_table_is_as_the_script_writes_it():
    assert lab_tables.block(HOW, RESULTS) in lab_tables.PAGE.read_text(encoding="utf-8")
