"""Does a model stop, and when?

[XMU "A language model": END decides the length of a sentence; MAUSAM: decoding continues until END is chosen]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nextword.core.contracts import END, START, LanguageModel
from nextword.core.events import Event, Progress, Stage
from nextword.decode.generate import collect, generate
from nextword.decode.settings import DecodeSettings
from nextword.drawing.page import Table
from nextword.drawing.svg import Axis, Series, histogram, lines
from nextword.experiments.finding import Judge, Verdict
from nextword.experiments.result import Chart, ExperimentResult, finish
from nextword.experiments.texts import QUICK, prepare
from nextword.models.distributions import as_numpy
from nextword.ngram import estimation
from nextword.ngram.settings import NgramSettings

Array = np.ndarray[Any, np.dtype[Any]]
CLAIM = "END is a word with a probability of its own; it decides how long a sentence becomes."
LENGTHS = "END decides the length: sampled texts are as long as real ones"
ENDS = "decoding continues until END is chosen"
CLAIMS = (LENGTHS, ENDS)
OF_END = (
    "The mean probability of END after a number of words of held-out sentences. An n-gram forgets how long "
    "the sentence is already, so its line is nearly flat where the sentences' own rises."
)
SAMPLES = 60
VOCABULARY = 8_000  # words of the embedded corpus; the rest are unknown words, which are generated too
STEP = 6  # words that are drawn as one point
MOST = 200  # tokens of one text
SENTENCES = 2000  # of the held-out text
NEAR, ALIKE = 0.1, 1.5  # shares of texts that ended, and mean lengths, that count as the same
WAYS: dict[str, dict[str, Any]] = {
    "sample": {},
    "sample, temperature 0.7": {"temperature": 0.7},
    "sample, top 10": {"top_k": 10},
    "greedy": {"decode": "greedy"},
}


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Compare lengths of generated and real texts, for a run or for a trigram of the embedded corpus."""
    text = yield from prepare(run, max_vocab=VOCABULARY, most=QUICK if quick else 0)
    if text.run is None:
        model: LanguageModel = estimation.build(text.ids, text.vocab_size, NgramSettings(order=3))
        held = text.held
    else:
        model, tokenizer = text.run.model, text.run.tokenizer
        pieces = [text.tokenizer.decode(part) for part in _sequences(text.held)[:SENTENCES]]
        held = np.concatenate([[START, *tokenizer.encode(piece), END] for piece in pieces])
    whole = np.array([len(part) + 1 for part in _sequences(text.ids)])  # END counts
    real = np.minimum(whole, MOST)
    yield Stage("generate", len(WAYS), "ways to choose")
    rows: list[tuple[str, int, float, float, float]] = [
        ("the training text", len(real), float(np.mean(whole <= MOST)), *_middle(real))
    ]
    sampled = np.empty(0)
    for done, (name, settings) in enumerate(WAYS.items(), start=1):
        lengths, stopped = _lengths(model, settings)
        sampled = lengths if name == "sample" else sampled
        rows.append((name, len(lengths), stopped, *_middle(lengths)))
        yield Progress(done)
    ratio, stopped = float(sampled.mean() / real.mean()), rows[1][2]
    judge = Judge(quick)
    judge.measure(
        LENGTHS,
        abs(stopped - rows[0][2]) < NEAR and 1 / ALIKE < ratio < ALIKE,
        f"{stopped:.0%} of the sampled texts ended within {MOST} tokens, on average after "
        f"{sampled.mean():.0f}; of the training text {rows[0][2]:.0%}, after {real.mean():.0f} (a difference "
        f"of less than {NEAR:.0%} and a factor of less than {ALIKE} are none)",
    )
    judge.measure(
        ENDS,
        stopped > 0.5 and (rows[-1][2] > 0 or Verdict.PARTLY),
        f"sampled texts end by END in {stopped:.0%} of the cases; {_greedy(rows[-1])}",
    )
    yield from finish(
        ExperimentResult(
            "stopping", "Does the model stop?", 'XMU "A language model"', CLAIM,
            f"sampled texts end after {sampled.mean():.0f} tokens, real ones after {real.mean():.0f}; "
            f"{'greedy ends too' if rows[-1][2] else 'greedy never ends'}",
            judge.findings, f"Measured on {text.about}; {SAMPLES} texts were sampled.",
            (_table(rows), _distribution(real, sampled), _along(model, held)),
        ),
        out,
    )  # fmt: skip


def _lengths(model: LanguageModel, settings: dict[str, Any]) -> tuple[Array, float]:
    """Count the tokens of each text, END included, and the share that END ended."""
    greedy = settings.get("decode") == "greedy"
    chosen = DecodeSettings(
        max_tokens=MOST, min_tokens=1, unknown=True, samples=1 if greedy else SAMPLES, seed=1, **settings
    )
    texts = collect(generate(model, [()], chosen))
    ended = [bool(text.ids) and text.ids[-1] == END for text in texts]
    return np.array([len(text.ids) for text in texts]), float(np.mean(ended))


def _middle(lengths: Array) -> tuple[float, float]:
    return float(lengths.mean()), float(np.median(lengths))


def _greedy(row: tuple[str, int, float, float, float]) -> str:
    if row[2]:
        return f"greedy choice stops after {row[3]:.0f}"
    return f"greedy choice never stops (cut at {MOST}): END is never the most likely word there"


def _sequences(ids: Array) -> list[Array]:
    """Return the words of each sequence, without START and END; blank lines are left out."""
    starts = np.flatnonzero(ids == START)
    return [part[1:-1] for part in np.split(ids, starts[1:]) if len(part) > 2 and part[-1] == END]


def _table(rows: list[tuple[str, int, float, float, float]]) -> Table:
    summary = tuple(
        (name, count, f"{stopped:.0%}", mean, median) for name, count, stopped, mean, median in rows
    )
    return Table(
        ("chosen by", "texts", f"ended within {MOST}", "mean tokens", "median tokens"),
        summary,
        "Lengths, END counted, blank lines left out",
    )


def _distribution(real: Array, sampled: Array) -> Chart:
    width = max(1.0, round(float(np.percentile(real, 95)) / 7))
    both = {"the training text": real, "sampled": sampled}
    series = [
        Series(name, tuple((x, 100 * y) for x, y in histogram(map(float, lengths), width)))
        for name, lengths in both.items()
    ]
    svg = lines(
        series,
        "Lengths of texts",
        Axis("tokens, END counted"),
        Axis(f"texts, % in {width:.0f} tokens", zero=True),
    )
    return Chart(svg, f"How long texts are: real ones and sampled ones, in steps of {width:.0f} tokens.")


def _along(model: LanguageModel, held: Array, most: int = 60) -> Chart:
    """Return p(END) after t words of real sentences, beside the share of sentences that do end there."""
    parts = _sequences(held)[:SENTENCES]
    sure, ends, alive = np.zeros(most), np.zeros(most), np.zeros(most)
    state, rows = model.start(len(parts)), np.arange(len(parts))
    for t in range(most):
        one = np.ones(len(rows), np.int64)
        alive[t] = len(rows)
        if not len(rows):
            break
        sure[t] = np.exp(as_numpy(model.score(np.full((len(rows), 1), END), one, state)[0])).sum()
        ends[t] = sum(len(parts[row]) == t for row in rows)
        keep = np.array([i for i, row in enumerate(rows) if len(parts[row]) > t], dtype=np.int64)
        rows, state = rows[keep], model.reorder(state, keep)
        words = np.array([[parts[row][t]] for row in rows]).reshape(-1, 1)
        state = model.score(words, np.ones(len(rows), np.int64), state)[1]
    steps = [(t, slice(t, t + STEP)) for t in range(1, most - STEP, STEP) if alive[t + STEP - 1] >= 20]
    named = {"the model's p(END)": sure, "sentences that end": ends}
    series = [
        Series(name, tuple((t + STEP / 2, 100 * _share(v, alive, part)) for t, part in steps))
        for name, v in named.items()
    ]
    svg = lines(series, "p(END) along the sentence", Axis("words read"), Axis("ends here, %", zero=True))
    rows_of = tuple(
        (f"{t} to {t + STEP - 1}", _share(sure, alive, part), _share(ends, alive, part)) for t, part in steps
    )
    table = Table(("words read", "mean p(END)", "share that ends"), rows_of)
    return Chart(svg, OF_END, table)


def _share(part: Array, whole: Array, steps: slice) -> float:
    return float(part[steps].sum() / whole[steps].sum())
