"""Next words sum to one in every context, and so do all texts together.

[XMU "Recap: next token prediction and auto-regressive models", "Laplace smoothing", "A language model"]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nextword.core import catalog
from nextword.core.contracts import END, START, UNKNOWN, Block, LanguageModel, is_probability
from nextword.core.errors import ContextError
from nextword.core.events import Event, Progress, Stage
from nextword.drawing.page import Table
from nextword.drawing.svg import Axis, Series, lines
from nextword.experiments import slide
from nextword.experiments.finding import Finding, Judge, Verdict
from nextword.experiments.result import Chart, ExperimentResult, finish
from nextword.models.distributions import as_numpy
from nextword.ngram import estimation
from nextword.ngram.model import NgramState
from nextword.ngram.settings import NgramSettings
from nextword.runs import saved
from nextword.text.settings import TextSettings
from nextword.text.words import WordTokenizer

Array = np.ndarray[Any, np.dtype[Any]]
CLAIM = "The next words' probabilities sum to 1 in every context, and those of all texts sum to 1."
NEXT = "every distribution over the next word sums to 1"
TRIGRAM = "so do those of the Laplace trigram, as printed"
TEXTS = "all texts together sum to 1, since END has some probability"
CLAIMS = (NEXT, TRIGRAM, TEXTS)
CONTEXTS = 300
LENGTH = 12
STORED = 1e-6  # the numbers are stored in single precision
LEAK = (
    "That END has some probability everywhere is not enough: with p(END at t) = 1/(t+1)^2 the chance never "
    "to stop is the product of 1 - 1/(t+1)^2, which tends to 1/2, so half of the mass stays on texts "
    "without an end."
)


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Sum every smoothing on a random text, or the model of a run; then whole texts."""
    models = _smoothings() if run is None else {run: saved.load(run).model}
    yield Stage("sum next words", len(models), "models")
    rows = []
    for done, (name, model) in enumerate(models.items(), start=1):
        rows.append((name, *sums(model, np.random.default_rng(0))))
        yield Progress(done)
    scores = {name for name, model in models.items() if not is_probability(model)}
    worst = max(
        (abs(value - 1) for name, _, low, high, _ in rows if name not in scores for value in (low, high)),
        default=0.0,
    )
    ended, alive = strings(_tiny(), LENGTH)
    yield from finish(
        ExperimentResult(
            "sums-to-one", "Do the probabilities sum to one?", 'XMU "A language model"', CLAIM,
            f"next words sum to 1 within {worst:.0e}, all texts to {ended[-1] + alive[-1]:.6f}",
            _judged(worst, _exceptions(scores, rows), ended, alive),
            f"Next words are summed in {CONTEXTS} seen, unseen and unknown contexts; texts of up to {LENGTH} "
            "words are enumerated in a bigram model of the slide's corpus.",
            (_next_words(rows), slips(), _texts(ended, alive), LEAK),
        ),
        out,
    )  # fmt: skip


def _judged(worst: float, exceptions: str, ended: list[float], alive: list[float]) -> tuple[Finding, ...]:
    """Judge the sums: of next words, of the slide's formula, and of all texts."""
    judge = Judge()
    judge.exact(NEXT, worst < STORED, f"within {worst:.0e}{exceptions}")
    context, eps = ("love", "you"), (1.0, 1.0, 2.0)
    printed, right = slide.laplace_sum(context, eps, as_printed=True), slide.laplace_sum(context, eps)
    judge.exact(
        TRIGRAM,
        Verdict.CORRECTED if abs(right - 1) < STORED < abs(printed - 1) else Verdict.FAILED,
        f"after 'love you' {printed:.3f} as printed, {right:.3f} with eps3 in the denominator",
    )
    left = 1 - leaking(10**6)[-1]
    judge.exact(
        TEXTS,
        Verdict.CORRECTED if abs(ended[-1] + alive[-1] - 1) < STORED else Verdict.FAILED,
        f"{ended[-1]:.4f} up to {LENGTH} words and {alive[-1]:.4f} beyond; but p(END) must not fall too "
        f"fast: with 1/(t+1)² at place t {left:.2f} of the mass never ends",
    )
    return judge.findings


def sums(model: LanguageModel, rng: np.random.Generator) -> tuple[int, float, float, int]:
    """Count the contexts asked and those without a distribution, with the smallest and largest sum."""
    words = [index for index in range(model.vocab_size) if index not in (START, END)]
    found, without = [1.0] * 0, 0
    for number in range(CONTEXTS):
        length = number % 5
        ids: Array = rng.choice(words[: max(4, 4 ** (number % 6 + 1))], length)
        if number % 7 == 0 and length:
            ids[-1] = UNKNOWN
        state = model.start(1)
        if length:
            state = model.score(ids[None], np.array([length]), state)[1]
        try:
            found.append(float(np.exp(as_numpy(model.next(state), np.float64)[0]).sum()))
        except ContextError:
            without += 1
    return len(found), min(found, default=1.0), max(found, default=1.0), without


def strings(model: LanguageModel, length: int) -> tuple[list[float], list[float]]:
    """Return for L = 0 … length p of all texts of at most L words, and of all that continue.

    All texts are enumerated word by word as a tree; texts of probability 0 are left out.
    """
    ended, alive = [], []
    state, mass = model.start(1), np.ones(1)
    done = 0.0
    for _ in range(length + 1):
        p_BV = np.exp(as_numpy(model.next(state), np.float64)) * mass[:, None]
        done += float(p_BV[:, END].sum())
        p_BV[:, END] = 0.0
        ended.append(done)
        alive.append(float(p_BV.sum()))
        rows, words = np.nonzero(p_BV)
        mass = p_BV[rows, words]
        state = model.score(words[:, None], np.ones(len(words), np.int64), model.reorder(state, rows))[1]
        state, mass = _merged(model, state, mass)
    return ended, alive


def _merged(model: LanguageModel, state: Any, mass: Array) -> tuple[Any, Array]:
    """Add up the mass of texts that left the model in the same state: they continue alike."""
    if not isinstance(state, NgramState):
        return state, mass
    _, first, group = np.unique(state.nodes_BN, axis=0, return_index=True, return_inverse=True)
    return model.reorder(state, first), np.bincount(group.reshape(-1), weights=mass)


def leaking(length: int) -> list[float]:
    """Return the mass that has ended after t = 1 … length words, with p(END at t) = 1/(t+1)^2."""
    resumes = np.cumprod(1 - 1 / (np.arange(1, length + 1) + 1.0) ** 2)
    return [float(value) for value in 1 - resumes]


def slips() -> Table:
    """Return the slide's trigram formula as it is printed, and with eps3 in the denominator."""
    context = ("love", "you")
    rows = tuple(
        (
            f"{a:g}, {b:g}",
            slide.laplace_sum(context, (1, a, b), as_printed=True),
            slide.laplace_sum(context, (1, a, b)),
        )
        for a, b in ((1.0, 1.0), (1.0, 2.0), (2.0, 0.5))
    )
    title = "The slide's Laplace trigram after 'love you', summed over all words of its corpus"
    return Table(("eps2, eps3", "as printed (eps2 below)", "corrected (eps3 below)"), rows, title)


def _smoothings() -> dict[str, LanguageModel]:
    """Return every smoothing at order 3, on a random text with frequent and rare words."""
    rng = np.random.default_rng(1)
    words = 3 + np.minimum(rng.zipf(1.3, 20_000), 900)
    ids: list[int] = []
    for sentence in np.split(words, np.sort(rng.choice(np.arange(1, len(words)), 2000, replace=False))):
        ids += [START, *sentence.tolist(), END]
    return {
        name: estimation.build(np.array(ids), 904, NgramSettings(order=3, smoothing=name))
        for name in catalog.names("smoothing")
    }


def _tiny() -> LanguageModel:
    """Return a bigram model of the slide's corpus that allows every text."""
    fitting = WordTokenizer.fit_encode([Block(slide.TEXT.encode(), True)], TextSettings())
    ids = np.concatenate([np.asarray(piece.ids) for piece in fitting])
    settings = NgramSettings(order=2, smoothing="witten-bell")
    return estimation.build(ids, fitting.tokenizer.vocab_size, settings)


def _exceptions(scores: set[str], rows: list[tuple[str, int, float, float, int]]) -> str:
    found = [f"{name} gives a score up to {high:.2f}" for name, _, _, high, _ in rows if name in scores]
    found += [f"{name} has no distribution in {no} unseen contexts" for name, _, _, _, no in rows if no]
    return f" ({'; '.join(found)})" if found else ""


def _next_words(rows: list[tuple[str, int, float, float, int]]) -> Table:
    summary = tuple((n, asked, f"{low:.9f}", f"{high:.9f}", no) for n, asked, low, high, no in rows)
    heads = ("model", "contexts", "smallest sum", "largest sum", "without a distribution")
    return Table(
        heads,
        summary,
        "Next words summed in seen, unseen and unknown contexts (START excluded, END included)",
    )


def _texts(ended: list[float], alive: list[float]) -> Chart:
    leak = [0.0, *leaking(len(ended) - 1)]
    rows = tuple((L, ended[L], alive[L], ended[L] + alive[L], leak[L]) for L in range(len(ended)))
    series = [
        Series("a bigram model", tuple((float(L), value) for L, value in enumerate(ended))),
        Series("1/(t+1)² at t", tuple((float(L), value) for L, value in enumerate(leak))),
    ]
    svg = lines(
        series,
        "Mass of finished texts",
        Axis("words at most"),
        Axis("probability of all such texts", zero=True),
    )
    heads = ("words at most", "finished", "continues", "sum", "finished with 1/(t+1)²")
    caption = (
        "The mass of all finished texts of the slide's corpus as a bigram model tends to 1, the other to 1/2."
    )
    return Chart(svg, caption, Table(heads, rows))
