"""One model of a comparison: trained, saved, opened again and measured as a user would."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nextword.bench.contest import Contest
from nextword.bench.rows import Row, finite
from nextword.core.contracts import START, UNKNOWN, Block
from nextword.core.errors import ContextError
from nextword.core.events import Done, Event, Note, Stage
from nextword.core.newrun import new_run
from nextword.decode.generate import collect, generate
from nextword.decode.settings import DecodeSettings
from nextword.evaluate.lines import LineCutter, score_lines
from nextword.evaluate.perplexity import evaluate
from nextword.evaluate.report import Report
from nextword.evaluate.streams import Stream
from nextword.train import saved
from nextword.train.fit import fit
from nextword.train.saved import Trained
from nextword.train.settings import RunSettings

Array = np.ndarray[Any, np.dtype[Any]]
SENTENCES = 3
LONGEST = 30  # words of a generated sentence
MOST = 2_000_000  # ids of the held-out text that are scored for speed and for known words
_COMPILED = "compiled"  # a note with this word says that the time is not the model's own
SCORE = "a score, no probability: not ranked"


def run_one(contest: Contest, settings: RunSettings, key: str) -> Generator[Event, None, Row]:
    """Train one model and measure it; its run stays in the output folder."""
    folder = contest.out / settings.name
    seconds, cold = yield from _train(contest, settings, folder)
    if seconds is not None and cold:
        yield Note(f"{settings.name} is trained a second time, since its time held that of compiling")
        again, _ = yield from _train(contest, settings, folder)
        seconds = min(seconds, again or seconds)
    if seconds is None:
        return Row(settings.name, key, note=f"stopped after {contest.minutes:g} minutes")
    yield Stage(f"{settings.name}: measure")
    row = Row(settings.name, key, train_seconds=round(seconds, 3), run=settings.name)
    return measured(contest, saved.load(folder), row)


def _train(
    contest: Contest, settings: RunSettings, folder: Path
) -> Generator[Event, None, tuple[float | None, bool]]:
    """Seconds from the text to the saved run (None: time over), and whether something was compiled."""
    began, cold = time.perf_counter(), False
    limit = math.inf if contest.minutes is None else contest.minutes * 60
    try:
        with new_run(folder, overwrite=True) as new:
            for event in fit(settings, contest.train, None, new):
                if time.perf_counter() - began > limit:
                    raise _TimeOver
                if isinstance(event, Done):
                    saved.write(event.result, new)
                elif isinstance(event, Stage):
                    yield Stage(f"{settings.name}: {event.name}", event.total, event.unit)
                else:
                    cold = cold or (isinstance(event, Note) and _COMPILED in event.message)
                    yield event
    except _TimeOver:
        return None, cold
    return time.perf_counter() - began, cold


class _TimeOver(Exception):  # noqa: N818 - no mistake: the minutes for one model are over
    pass


def measured(contest: Contest, trained: Trained, row: Row) -> Row:
    """Everything that is shown of a trained model."""
    report = evaluate(trained.model, trained.tokenizer, contest.held.blocks())
    known, speed = _scored(trained, contest)
    return replace(
        row,
        bits_per_byte=finite(report.bits_per_byte),
        perplexity=finite(report.perplexity),
        known_perplexity=finite(known),
        word_perplexity=finite(report.word_perplexity),
        unknown_rate=report.unknown_rate,
        tokens=report.tokens,
        bytes=report.bytes,
        zero_tokens=report.zero_tokens,
        tokens_per_second=speed,
        size=sum(file.stat().st_size for file in (contest.out / row.run).rglob("*") if file.is_file()),
        is_probability=report.is_probability,
        note=_note(report),
        signature=report.signature,
        sentences=_sentences(trained),
        surprise=_surprise(trained, sentence(contest)),
    )


def _note(report: Report) -> str:
    told = [SCORE] if not report.is_probability else []
    if report.zero_tokens:
        told.append(f"probability 0 for {report.zero_tokens / report.tokens:.1%} of the tokens")
    return "; ".join(told)


def _scored(trained: Trained, contest: Contest) -> tuple[float, float]:
    """The perplexity of known words, and tokens scored in a second (the better of two passes)."""
    ids = _ids(trained, contest)
    seconds = math.inf
    for _ in range(2):
        began = time.perf_counter()
        logp = np.asarray(Stream(trained.model).push(ids))
        seconds = min(seconds, time.perf_counter() - began)
    real = ids != START
    known = logp[real & (ids != UNKNOWN)]
    nats = -float(np.mean(known, dtype=np.float64)) if len(known) else math.inf
    return math.exp(nats) if nats < 700 else math.inf, float(real.sum()) / max(seconds, 1e-9)


def _ids(trained: Trained, contest: Contest) -> Array:
    """The held-out text as ids, up to a bound."""
    found: list[Array] = []
    for piece in trained.tokenizer.encode_blocks(contest.held.blocks()):
        found.append(np.asarray(piece.ids))
        if sum(map(len, found)) > MOST:
            break
    return np.concatenate(found)


def _sentences(trained: Trained) -> list[str]:
    """What the model writes by itself."""
    settings = DecodeSettings(samples=SENTENCES, max_tokens=LONGEST, min_tokens=4, seed=1)
    try:
        texts = collect(generate(trained.model, [()], settings, trained.tokenizer))
    except ContextError:
        return []
    return [text.text + (" …" if text.reason == "length" else "") for text in texts]


def sentence(contest: Contest) -> str:
    """The first held-out sentence of a good length; all models are asked about it."""
    first = ""
    for line in _lines(contest):
        words = line.split()
        ends = [
            place for place, word in enumerate(words, start=1) if word.endswith((".", "!", "?", "。", "।"))
        ]
        if ends and 8 <= ends[0] <= 14:
            return " ".join(words[: ends[0]])
        first = first or " ".join(words[:12])
    return first


def _lines(contest: Contest) -> Iterator[str]:
    cutter = LineCutter()
    for block in contest.held.blocks():
        for line in cutter.push(block):
            yield line.decode("utf-8", "replace")
    yield from (line.decode("utf-8", "replace") for line in cutter.flush())


def _surprise(trained: Trained, text: str) -> list[tuple[str, float | None]]:
    """-log2 p of every token of one sentence; None where the model calls it impossible."""
    block = Block(text.encode() + b"\n", True)
    words = text.split()
    for score in score_lines(trained.model, trained.tokenizer, [block], tokens=True, end=False):
        bits = [finite(-token.logprob / math.log(2)) for token in score.tokens]
        heads = words if len(words) == len(bits) else [token.text for token in score.tokens]
        return list(zip(heads, bits, strict=True))
    return []
