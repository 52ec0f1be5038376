"""Filtering: the right lines, in order, whatever happens on the way."""

from __future__ import annotations

import gzip
import io
import json
import math
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nextword.core.contracts import Block
from nextword.core.errors import ConfigError, DataError
from nextword.core.events import Done, Note, Progress
from nextword.evaluation.lines.filter import FilterSettings, Scorer, filter_lines
from nextword.evaluation.lines.progress import ScoreLog, count_lines, kept_bytes, whole_lines
from nextword.evaluation.lines.rules import KeepRule
from nextword.evaluation.lines.scores import score_lines
from nextword.evaluation.lm import streams

SMALL = {"block": 1024, "save_every": 0}


def run(scorer, source, output, **settings):
    events = list(filter_lines(scorer, source, output, FilterSettings(**{**SMALL, **settings})))
    assert isinstance(events[-1], Done)
    return events[-1].result


@pytest.fixture(autouse=True)
def small_steps(monkeypatch):
    monkeypatch.setattr(streams, "GATHER", 100)


@pytest.fixture
def text(tmp_path, text_maker) -> Path:
    path = tmp_path / "text.txt"
    path.write_bytes(text_maker(400, seed=3) + b"zebra zebra zebra\nthe last line has no end")
    return path


@pytest.fixture
def scorer(trained) -> Scorer:
    return Scorer(*trained())


def nats(scorer, path):
    lines = score_lines(scorer.model, scorer.tokenizer, [Block(path.read_bytes(), True)])
    return np.array([-line.logprob / line.count for line in lines])


def kept_lines(path):
    return path.read_bytes().removesuffix(b"\n").split(b"\n")


@pytest.mark.parametrize(
    ("keep", "low", "high"),
    [("best", 0, 50), ("worst", 50, 100), ("head:10", 0, 10), ("tail:25", 75, 100), ("middle:40", 30, 70)],
)
def test_percentiles_keep_their_lines_in_the_order_of_the_text(tmp_path, text, scorer, keep, low, high):
    done = run(scorer, text, tmp_path / "out", keep=keep)
    lines = text.read_bytes().split(b"\n")
    full = [line for line in lines if line.strip()]  # a line without a word is never kept
    scores = nats(scorer, text).astype(np.float32)[[bool(line.strip()) for line in lines]]
    rank = np.empty(len(scores), int)
    rank[np.argsort(scores, kind="stable")] = np.arange(len(scores))
    edges = [math.floor(len(scores) * percent / 100 + 0.5) for percent in (low, high)]
    expected = [line for line, place in zip(full, rank, strict=True) if edges[0] <= place < edges[1]]
    assert kept_lines(tmp_path / "out") == expected
    assert (done.lines, done.kept) == (len(lines), len(expected))


def test_best_and_worst_part_the_text(tmp_path, text, scorer):
    best, worst = (run(scorer, text, tmp_path / keep, keep=keep) for keep in ("best", "worst"))
    assert best.kept + worst.kept == sum(1 for line in text.read_bytes().split(b"\n") if line.strip())
    assert best.highest <= worst.lowest


def test_below_keeps_lines_of_lower_perplexity(tmp_path, text, scorer):
    limit = float(np.median(np.exp(nats(scorer, text))))
    run(scorer, text, tmp_path / "out", keep=f"below:{limit}")
    lines = text.read_bytes().split(b"\n")
    below = nats(scorer, text).astype(np.float32) < np.float32(math.log(limit))
    kept = [line for line, keep in zip(lines, below, strict=True) if keep]
    assert kept_lines(tmp_path / "out") == kept


def test_difference_of_two_models_prefers_lines_like_the_first(tmp_path, trained):
    ours, theirs = trained(), trained(smoothing="add", order=1)
    text = tmp_path / "t"
    text.write_bytes(b"the cat sat on\nmat mat mat mat\n" * 40)
    done = run(Scorer(*ours, theirs), text, tmp_path / "out", keep="best")
    mine, other = (list(score_lines(*pair, [Block(text.read_bytes(), True)]))[:2] for pair in (ours, theirs))
    differences = [(b.logprob - a.logprob) / 5 for a, b in zip(mine, other, strict=True)]
    assert kept_lines(tmp_path / "out") == [mine[int(np.argmin(differences))].text.encode()] * 40
    assert done.lowest == pytest.approx(min(differences), rel=1e-6)
    assert run(Scorer(*ours, ours), text, tmp_path / "out", keep="below:0.5").kept == 80  # no difference


@pytest.mark.parametrize("keep", ["best", "below:30", "middle:33"])
@pytest.mark.parametrize("after", [2, 4, 6])
def test_a_job_that_stopped_goes_on_and_gives_the_same_bytes(tmp_path, text, scorer, keep, after):
    run(scorer, text, tmp_path / "whole", keep=keep)
    events = filter_lines(scorer, text, tmp_path / "out", FilterSettings(keep=keep, **SMALL))
    for event in events:
        after -= isinstance(event, Progress)
        if not after:
            events.close()
            break
    assert not (tmp_path / "out").exists()
    done = run(scorer, text, tmp_path / "out", keep=keep)
    assert done.resumed > 0
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "text.txt", "whole"]


@pytest.mark.slow
def test_a_killed_process_leaves_a_job_that_goes_on(tmp_path, text, scorer):
    program = textwrap.dedent("""
        import os, signal, sys
        sys.path.insert(0, os.path.dirname(sys.argv[3]))
        from importlib.util import module_from_spec, spec_from_file_location
        spec = spec_from_file_location("shared", sys.argv[3]); shared = module_from_spec(spec)
        spec.loader.exec_module(shared)
        from nextword.core.events import Progress
        from nextword.evaluate.filter import FilterSettings, Scorer, filter_lines
        from nextword.evaluate import streams
        streams.GATHER = 100
        settings = FilterSettings(block=1024, save_every=0)
        seen = 0
        for event in filter_lines(Scorer(*shared.make()), sys.argv[1], sys.argv[2], settings):
            seen += isinstance(event, Progress)
            if seen == 4:
                os.kill(os.getpid(), signal.SIGKILL)
    """)
    root = str(Path(__file__).parents[2])
    conftest = str(Path(__file__).with_name("conftest.py"))
    command = [sys.executable, "-c", program, str(text), str(tmp_path / "out"), conftest]
    killed = subprocess.run(command, env={**os.environ, "PYTHONPATH": root}, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / "out.progress").exists()
    done = run(scorer, text, tmp_path / "out")
    assert done.resumed > 0
    run(scorer, text, tmp_path / "whole")
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()


def test_another_input_or_run_starts_anew(tmp_path, text, scorer, trained):
    def stopped():
        events = filter_lines(scorer, text, tmp_path / "out", FilterSettings(**SMALL))
        next(event for event in events if isinstance(event, Progress))
        next(event for event in events if isinstance(event, Progress))
        events.close()

    stopped()
    assert run(Scorer(*trained(), identity="another"), text, tmp_path / "out").resumed == 0
    stopped()
    text.write_bytes(b"the cat\n" + text.read_bytes())
    assert run(scorer, text, tmp_path / "out").resumed == 0


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"offset": 1, "lines": -5, "task": {}}', b"\xff\xfe"])
def test_a_damaged_state_only_costs_time(tmp_path, damage):
    state = tmp_path / "s"
    state.write_bytes(damage)
    assert ScoreLog(state, {"a": 1}).lines == 0


def test_scores_after_the_last_whole_step_are_cut_off(tmp_path):
    log = ScoreLog(tmp_path / "s", {"a": 1})
    log.append(np.array([1, 2], np.float32), 10)
    with open(tmp_path / "s.scores", "ab") as file:
        file.write(b"half a step")
    again = ScoreLog(tmp_path / "s", {"a": 1})
    assert again.scores.tolist() == [1, 2]
    again.append(np.array([3], np.float32), 20)
    assert ScoreLog(tmp_path / "s", {"a": 1}).scores.tolist() == [1, 2, 3]
    assert json.loads((tmp_path / "s").read_text())["offset"] == 20


@pytest.mark.parametrize("keep", ["best", "below:30"])
def test_streams_and_gzip_give_what_a_file_gives(tmp_path, text, scorer, monkeypatch, keep):
    run(scorer, text, tmp_path / "whole", keep=keep)
    expected = (tmp_path / "whole").read_bytes()
    packed = tmp_path / "text.gz"
    packed.write_bytes(gzip.compress(text.read_bytes()))
    out = io.BytesIO()
    run(scorer, packed, out, keep=keep)
    assert out.getvalue() == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.read_bytes())))
    out = io.BytesIO()
    run(scorer, "-", out, keep=keep)
    assert out.getvalue() == expected


@pytest.mark.parametrize("keep", ["best", "below:30"])
def test_bad_input_is_named_with_its_line_and_nothing_is_written(tmp_path, scorer, keep):
    text = tmp_path / "latin.txt"
    text.write_bytes(b"the cat\nthe caf\xe9\n")
    with pytest.raises(DataError, match=r"latin\.txt:2"):
        run(scorer, text, tmp_path / "out", keep=keep)
    with pytest.raises(DataError, match=r"missing\.txt"):
        run(scorer, tmp_path / "missing.txt", tmp_path / "out", keep=keep)
    (tmp_path / "empty.txt").write_bytes(b"")
    with pytest.raises(DataError, match="no lines"):
        run(scorer, tmp_path / "empty.txt", tmp_path / "out", keep=keep)
    assert not [
        path
        for path in tmp_path.iterdir()
        if path.name.startswith((".out.tmp-", "out.part")) or path.name == "out"
    ]


def test_a_line_that_is_too_long_is_refused_with_the_limit(tmp_path, scorer):
    text = tmp_path / "long.txt"
    text.write_bytes(b"the cat\n" + b"the " * 1000 + b"\n")
    with pytest.raises(DataError, match="1,024"):
        run(scorer, text, tmp_path / "out", block=1024, longest_line=1024)


def test_crlf_lines_are_kept_as_they_are(tmp_path, scorer):
    text = tmp_path / "dos.txt"
    text.write_bytes(b"the cat\r\nthe dog\r\n")
    run(scorer, text, tmp_path / "out", keep="head:100")
    assert (tmp_path / "out").read_bytes() == text.read_bytes()


def test_going_on_is_noted(tmp_path, text, scorer):
    events = filter_lines(scorer, text, tmp_path / "out", FilterSettings(**SMALL))
    next(event for event in events if isinstance(event, Progress))
    next(event for event in events if isinstance(event, Progress))
    events.close()
    notes = [
        event
        for event in filter_lines(scorer, text, tmp_path / "out", FilterSettings(**SMALL))
        if isinstance(event, Note)
    ]
    assert "resuming after" in notes[0].message


WRONG = ["", "bes", "head", "head:0", "head:101", "head:x", "below:0", "below:-1", "below:1.2.3"]


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_rules_are_refused_with_the_allowed_ones(wrong):
    with pytest.raises(ConfigError, match="--keep"):
        KeepRule.parse(wrong)


def test_a_difference_may_be_limited_by_any_number():
    assert KeepRule.parse("below:-0.5", difference=True).limit == -0.5


few = st.lists(st.sampled_from([0.5, 1.0, 1.5, np.inf]), min_size=1, max_size=40)


@given(scores=few, percent=st.floats(1, 100))
def test_rules_keep_exact_counts_and_the_best_first(scores, percent):
    scores = np.array(scores, np.float32)
    mask = KeepRule.parse(f"head:{percent:.3f}").mask(scores)
    count = math.floor(len(scores) * float(f"{percent:.3f}") / 100 + 0.5)
    assert mask.sum() == count
    order = np.argsort(scores, kind="stable")
    assert np.array_equal(np.flatnonzero(mask), np.sort(order[:count]))


@given(data=st.binary(max_size=50), size=st.integers(1, 20), step=st.integers(1, 7))
def test_whole_lines_lose_no_byte_and_cut_no_line(data, size, step):
    pieces = iter([data[i : i + step] for i in range(0, len(data), step)])
    blocks = list(whole_lines(pieces, size))
    assert b"".join(blocks) == data
    assert all(block.endswith(b"\n") for block in blocks[:-1])
    assert sum(count_lines(block) for block in blocks) == count_lines(data)
    keep = np.arange(count_lines(data)) % 2 == 0
    lines = data.split(b"\n")
    expected = b"".join(line + b"\n" for line in lines[:-1:2]) + (lines[-1] if len(lines) % 2 else b"")
    assert kept_bytes(data, keep) == expected
