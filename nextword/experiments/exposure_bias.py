"""Exposure bias: what a model generates once it reads its own words, by how it was trained.

[MAUSAM "How to Train this Model?", "Solutions to Exposure Bias": free-running training is slow and unstable,
teacher forcing is not exposed to mistakes, scheduled sampling feeds more and more own words]
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import numpy as np

from nextword.core.contracts import END, START, LanguageModel
from nextword.core.events import Event, Progress, Stage
from nextword.data.batches.windows import Windows
from nextword.decode.generate import collect, generate
from nextword.decode.settings import DecodeSettings
from nextword.drawing.page import Table
from nextword.drawing.svg import Axis, Series, lines
from nextword.evaluation import significance
from nextword.experiments import texts
from nextword.experiments.finding import Finding, Judge, by_test
from nextword.experiments.result import Chart, ExperimentResult, finish
from nextword.experiments.small import (
    Count,
    Floats,
    Ints,
    Letters,
    build,
    learn,
    nats,
    read_letters,
    rows_of,
    settings_of,
)
from nextword.ngram import estimation
from nextword.ngram.settings import NgramSettings
from nextword.runs import saved

SLIDE = 'MAUSAM "Solutions to Exposure Bias"'
CLAIM = (
    "Teacher forcing learns well but is not exposed to its own mistakes (exposure bias); free-running "
    "training is slow and poor; scheduled sampling is a cure."
)
FORCED = "teacher forcing learns well"
BIAS = "but it is not exposed to its own mistakes, which grow as it generates"
FREE = "free-running training is poor"
CURE = "scheduled sampling is a cure"
CLAIMS = (FORCED, BIAS, FREE, CURE)
TRAININGS = {
    "teacher forcing": "teacher",
    "scheduled sampling": "scheduled(linear, 0.5)",
    "free-running": "free",
}
PROMPT, WRITTEN, STEP = 24, 160, 20  # letters
JUDGE = 6  # order of the n-gram that judges


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Train a small LSTM in three ways, or open a run; an n-gram model judges what it generates."""
    if run is not None:
        yield from _of_run(run, out)
        return
    steps, rows = (10, 8) if quick else (300, 96)
    text = yield from read_letters(40_000 if quick else 400_000, 30_000)
    models, losses = yield from _train(text, steps)
    judge = estimation.build(text.ids, text.vocab_size, NgramSettings(order=JUDGE))
    real_BT = rows_of(text.held, PROMPT + WRITTEN, rows)
    judged = {"real text": nats(judge, real_BT, skip=PROMPT)}
    yield Stage("write", len(models) + 1, "models")
    for done, (name, model) in enumerate(models.items(), start=1):
        judged[name] = nats(judge, _written(model, real_BT), skip=PROMPT)
        yield Progress(done)
    judged["each letter alone"] = nats(judge, _alone(text, real_BT), skip=PROMPT)
    ends = {name: float(found.mean()) for name, found in judged.items()}
    yield from finish(
        ExperimentResult(
            "exposure-bias", "Exposure bias", SLIDE, CLAIM,
            f"generated text costs {ends['teacher forcing']:.2f} (teacher), {ends['scheduled sampling']:.2f} "
            f"(scheduled), {ends['free-running']:.2f} (free-running), real {ends['real text']:.2f} nats",
            _judged(judged, losses, quick),
            f"Measured on {text.about}: an LSTM of 64 units, {steps} steps each, one seed; a {JUDGE}-gram "
            "model judges what each generates, in nats per letter. 'each letter alone' draws every letter "
            "from its frequency, independently of the others.",
            (_picture(judged), _table(judged, losses)),
        ),
        out,
    )  # fmt: skip


def _judged(judged: dict[str, Floats], losses: dict[str, float], quick: bool) -> tuple[Finding, ...]:
    """Judge by the same prompts continued after each training: p is over the prompts."""
    judge = Judge(quick)
    judge.measure(
        FORCED,
        min(losses, key=lambda name: losses[name]) == "teacher forcing",
        ", ".join(f"{value:.2f} ({name})" for name, value in losses.items())
        + " nats per letter of real text",
    )
    drift, p = _drift(judged["teacher forcing"], judged["real text"])
    judge.measure(
        BIAS,
        by_test(drift, p),
        f"its text costs {drift:+.2f} nats more in the last third than in the first (p = {p:.2g})",
    )
    alone = float(judged["each letter alone"].mean())
    worse, p = _behind(judged, "free-running")
    judge.measure(
        FREE,
        by_test(worse, p),
        f"its text costs {worse:+.2f} nats against teacher forcing (p = {p:.2g}), "
        f"{judged['free-running'].mean():.2f} in all; letters drawn one by one cost {alone:.2f}",
    )
    worse, p = _behind(judged, "scheduled sampling")
    judge.measure(
        CURE, by_test(-worse, p), f"its text costs {worse:+.2f} nats against teacher forcing (p = {p:.2g})"
    )
    return judge.findings


def _behind(judged: dict[str, Floats], name: str) -> tuple[float, float]:
    """Return how much more the text costs than after teacher forcing, and its p."""
    more_B = (judged[name] - judged["teacher forcing"]).mean(axis=1)
    return float(more_B.mean()), significance.sign_flips(more_B)


def _train(
    text: Letters, steps: int
) -> Generator[Event, None, tuple[dict[str, LanguageModel], dict[str, float]]]:
    """Train the models, and measure the loss of each on new text."""
    yield Stage("train in three ways", steps * len(TRAININGS), "steps")
    count = Count()
    models: dict[str, LanguageModel] = {}
    losses: dict[str, float] = {}
    for name, forcing in TRAININGS.items():
        sets: dict[str, Any] = {"model.layers": 1, "model.hidden": 64, "train.forcing": forcing}
        settings = settings_of("lstm", 0, {**sets, "train.steps": steps})
        source = Windows(text.ids, batch=32, length=32, seed=0)
        learned = yield from learn(settings, build(settings, text.vocab_size, text.counts), source, count)
        models[name] = learned.model
        losses[name] = float(nats(learned.model, rows_of(text.held, 64, 300), skip=16).mean())
    return models, losses


def _written(model: LanguageModel, real_BT: Ints) -> Ints:
    """Return each prompt, and what the model samples after it."""
    prompts = [[int(word) for word in row[:PROMPT]] for row in real_BT]
    length = real_BT.shape[1] - PROMPT
    settings = DecodeSettings(max_tokens=length, min_tokens=length, seed=1)
    found = collect(generate(model, prompts, settings))
    return np.concatenate([real_BT[:, :PROMPT], np.array([text.ids for text in found])], axis=1)


def _alone(text: Letters, real_BT: Ints) -> Ints:
    """Draw letters by their frequency, independently."""
    counts = text.counts.astype(np.float64)
    counts[[START, END]] = 0.0
    rng = np.random.default_rng(0)
    drawn = rng.choice(len(counts), (len(real_BT), real_BT.shape[1] - PROMPT), p=counts / counts.sum())
    return np.concatenate([real_BT[:, :PROMPT], drawn], axis=1)


def _drift(written_BT: Floats, real_BT: Floats) -> tuple[float, float]:
    """Return how much worse the last third is than the first, beyond what real text does, and its p."""
    third = written_BT.shape[1] // 3
    rise_B = [part[:, -third:].mean(axis=1) - part[:, :third].mean(axis=1) for part in (written_BT, real_BT)]
    return float(np.mean(rise_B[0] - rise_B[1])), significance.sign_flips(rise_B[0] - rise_B[1])


def _curve(nats_BT: Floats) -> tuple[tuple[float, float], ...]:
    places = range(0, nats_BT.shape[1] - STEP + 1, STEP)
    return tuple((at + STEP / 2, float(nats_BT[:, at : at + STEP].mean())) for at in places)


def _picture(judged: dict[str, Floats]) -> Chart:
    series = [Series(name, _curve(found)) for name, found in judged.items()]
    across, up = Axis("letters generated after the prompt"), Axis("nats per letter, by the judge")
    drawn = lines(series, "What the generated text costs, place by place", across, up)
    caption = (
        f"Continuations of {PROMPT} real letters, judged by a {JUDGE}-gram model of the same text: the "
        "higher, the less like real text; a rising line is a model that is misled by its own words."
    )
    heads = ("letters written", *judged)
    curves = {name: _curve(found) for name, found in judged.items()}
    first = next(iter(curves.values()))
    rows = tuple((at, *(curves[name][i][1] for name in curves)) for i, (at, _) in enumerate(first))
    return Chart(drawn, caption, Table(heads, rows))


def _table(judged: dict[str, Floats], losses: dict[str, float]) -> Table:
    rows = tuple(
        (name, losses.get(name), float(found.mean()), _drift(found, judged["real text"])[0])
        for name, found in judged.items()
    )
    heads = ("text of", "nats when it reads real text", "nats of what it generates", "more in the last third")
    return Table(heads, rows, "Reading the true words, and reading its own")


def _of_run(run: str, out: str | None) -> Iterator[Event]:
    """Do the same for a run: its own sampled words against the end of its text."""
    trained = saved.load(run)
    held = yield from texts.end_of_text(run, trained, 4 * (PROMPT + WRITTEN))
    yield Stage("generate and judge")
    half = len(held) // 2
    judge = estimation.build(_packed(held[half:]), trained.tokenizer.vocab_size, NgramSettings(order=3))
    real_BT = rows_of(held[:half], PROMPT + WRITTEN, 64)
    judged = {"real text": nats(judge, real_BT, skip=PROMPT)}
    judged[trained.settings.family] = nats(judge, _written(trained.model, real_BT), skip=PROMPT)
    drift, p = _drift(judged[trained.settings.family], judged["real text"])
    reads = float(nats(trained.model, real_BT, skip=PROMPT).mean())
    found = Judge()
    found.measure(
        "its mistakes grow as it generates",
        by_test(drift, p),
        f"{drift:+.2f} nats in the last third against the first (p = {p:.2g})",
    )
    yield from finish(
        ExperimentResult(
            "exposure-bias", f"Exposure bias of {run}", SLIDE, CLAIM,
            f"text of this {trained.settings.family}: {drift:+.2f} nats in its last third (p = {p:.2g})",
            found.findings,
            "The end of the run's own text is continued; a trigram model of the other half of it judges.",
            (_picture(judged), _table(judged, {trained.settings.family: reads})),
        ),
        out,
    )  # fmt: skip


def _packed(ids: Ints) -> Ints:
    """Put START before every sequence again."""
    ends = np.flatnonzero(ids[:-1] == END) + 1
    return np.insert(ids, np.concatenate([[0], ends]), START)
