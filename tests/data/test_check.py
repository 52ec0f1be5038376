"""`data check`: what a text is like, and what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from written_files import write

from nextword.core.events import Done, Progress, Stage
from nextword.data import check as module
from nextword.data.check import check, checking, unseen_curve


def test_lines_words_types_and_repeats_are_counted(tmp_path: Path) -> None:
    report = check(write(tmp_path / "a.txt", "the cat\nthe dog\n\nthe cat\nthe  cat"))
    assert (report.lines, report.blank_lines, report.words, report.types) == (5, 1, 8, 3)
    assert (report.duplicate_lines, report.documents) == (1, 1)
    assert (report.longest_line.bytes, report.longest_line.line) == (8, 5)
    assert report.bytes == 33
    assert report.problems == ()


def test_problems_are_collected_with_their_places(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", b"ok\nb\xffd\n")
    write(tmp_path / "b.txt", b"x\0y\n")
    write(tmp_path / "c.jsonl", b'{"text": "fine"}\n{\n')
    write(tmp_path / "d.txt", b"")
    report = check(tmp_path)
    places = [problem.split(": ")[0].rsplit("/", 1)[1] for problem in report.problems]
    assert places == ["a.txt:2:2", "b.txt:1:2", "c.jsonl:2:2", "d.txt"]
    assert report.advice[0].startswith("fix the problems first")
    assert report.words == 4


def test_only_so_many_problems_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_PROBLEMS", 2)
    for name in "abcd":
        write(tmp_path / f"{name}.txt", b"\xff\n")
    assert check(tmp_path).problems[2] == "and 2 more"


def test_odd_characters_are_counted_and_get_advice(tmp_path: Path) -> None:
    text = "a\u00a0b\u3000c\u2028d\u200be\u00ad\u202ef\ufffd\x1b[0m\n"
    report = check(write(tmp_path / "a.txt", text))
    assert report.odd_characters == {
        "odd spaces": 2,
        "line separators": 1,
        "zero-width characters": 2,
        "direction marks": 1,
        "control characters": 1,
        "replacement characters": 1,
    }
    assert len(report.advice) == 4
    assert "\x1b" not in str(report)
    assert json.loads(json.dumps(report.to_json()))["odd_characters"]["odd spaces"] == 2


def test_the_curve_of_unseen_words_falls_to_zero_where_words_repeat() -> None:
    once = np.arange(3, 103, dtype=np.int32)
    assert unseen_curve(once) == (1.0,) * 9
    assert unseen_curve(np.tile(once, 2))[5:] == (0.0,) * 4
    assert unseen_curve(np.zeros(0, np.int32)) == ()


def test_many_repeats_long_lines_and_new_words_get_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nextword.data.report._LONG_LINE", 50)
    lines = ["the same line"] * 20 + [" ".join(f"w{i}{j}" for j in range(20)) for i in range(20)]
    advice = " ".join(check(write(tmp_path / "a.txt", "\n".join(lines))).advice)
    for part in ("48% of the lines repeat", "the longest line has", "--tokenizer bpe"):
        assert part in advice


def test_a_million_types_get_advice() -> None:
    from nextword.data.report import Longest, advise

    counts = {"lines": 1, "blank_lines": 0, "duplicate_lines": 0, "words": 3_000_000, "types": 2_000_000}
    assert "text.max_vocab" in advise(counts, (), Longest(0, "", 0), {}, False)[0]


def test_repeats_of_very_many_lines_are_estimated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SAMPLE", 200)
    lines = [f"line {i % 1000}" for i in range(2000)]
    assert check(write(tmp_path / "a.txt", "\n".join(lines))).duplicate_lines == pytest.approx(1000, rel=0.3)


def test_a_long_line_over_several_blocks_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nextword.data.plain.BLOCK", 64)
    monkeypatch.setattr("nextword.data.paths.PIECE", 32)
    report = check(write(tmp_path / "a.txt", "word " * 100 + "\nshort\n"))
    assert (report.lines, report.longest_line.bytes, report.longest_line.line) == (2, 500, 1)


def test_progress_is_told_on_the_way(tmp_path: Path) -> None:
    events = list(checking(write(tmp_path / "a.txt", "a b\n")))
    assert isinstance(events[0], Stage)
    assert events[0].total == 4
    assert isinstance(events[1], Progress)
    assert isinstance(events[-1], Done)
    assert "1 lines" in str(events[-1].result)


def test_a_text_without_words_is_reported_not_refused(tmp_path: Path) -> None:
    report = check(write(tmp_path / "a.txt", "\n\n"))
    assert (report.words, report.types, report.unknown_curve) == (0, 0, ())
    assert "is blank" in report.problems[0]
