"""Filtering: the right lines, in order, whatever happens on the way."""

from __future__ import annotations

import gzip
import io
import math
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from event_streams import result_of
from places import ROOT, SUPPORT

from nextword.core.contracts import Block
from nextword.core.errors import DataError
from nextword.core.events import Note, Progress
from nextword.evaluation.lines.filter import FilterSettings, Scorer, filter_lines
from nextword.evaluation.lines.scores import line_batches, score_lines
from nextword.evaluation.lm import streams

SMALL = {"block": 1024, "save_every": 0}


def run(scorer, source, output, **settings):
    return result_of(filter_lines(scorer, source, output, FilterSettings(**{**SMALL, **settings})))


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


def test_short_lines_are_not_punished_by_a_model_of_documents(tmp_path, trained):
    model, tokenizer = trained("bytes")
    path = tmp_path / "t.txt"
    path.write_bytes(b"the cat sat\n\nthe\nthe cat sat the cat sat\n")
    scorer = Scorer(model, tokenizer)
    (found,) = scorer.scores(iter([Block(path.read_bytes(), True)]))
    batch = next(line_batches(model, tokenizer, [Block(path.read_bytes(), True)], end=False))
    expected = -batch.logprob / np.maximum(batch.tokens, 1)
    np.testing.assert_allclose(found[[0, 2, 3]], expected[[0, 2, 3]], rtol=1e-6)
    assert np.isnan(found[1])  # a blank line has no score, and none is kept
    run(scorer, path, tmp_path / "o.txt", keep="below:1e30")
    assert kept_lines(tmp_path / "o.txt") == [b"the cat sat", b"the", b"the cat sat the cat sat"]


def test_lines_of_white_space_are_never_kept(tmp_path, trained):
    path = tmp_path / "t.txt"
    path.write_bytes(b"the cat\n  \t\r\n\n \nthe dog\n   ")
    run(Scorer(*trained("bytes")), path, tmp_path / "o.txt", keep="head:100")
    assert (tmp_path / "o.txt").read_bytes() == b"the cat\nthe dog\n"


def test_the_difference_counts_the_end_only_if_both_models_do(trained):
    words, letters = trained("words"), trained("bytes")
    assert Scorer(*words, against=words).end
    assert not Scorer(*words, against=letters).end
    assert not Scorer(*letters, against=words).end
    data = b"the cat sat\n\nthe\n"
    (found,) = Scorer(*words, against=letters).scores(iter([Block(data, True)]))
    mine, other = (next(line_batches(*pair, [Block(data, True)], end=False)) for pair in (words, letters))
    expected = (other.logprob - mine.logprob) / np.maximum(mine.tokens, 1)
    np.testing.assert_allclose(found[[0, 2]], expected[[0, 2]], rtol=1e-5)
    assert np.isnan(found[1])


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
        import count_models
        from nextword.core.events import Progress
        from nextword.evaluation.lines.filter import FilterSettings, Scorer, filter_lines
        from nextword.evaluation.lm import streams
        streams.GATHER = 100
        settings = FilterSettings(block=1024, save_every=0)
        seen = 0
        for event in filter_lines(Scorer(*count_models.make()), sys.argv[1], sys.argv[2], settings):
            seen += isinstance(event, Progress)
            if seen == 4:
                os.kill(os.getpid(), signal.SIGKILL)
    """)
    command = [sys.executable, "-c", program, str(text), str(tmp_path / "out")]
    path = os.pathsep.join(map(str, (ROOT, SUPPORT)))
    killed = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=False)
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
    with pytest.raises(DataError, match="the file is empty and has no tokens"):
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
