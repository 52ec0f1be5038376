"""Greedy or beam: how often each finds the most likely text, which an exact search knows.

[MAUSAM "Neural Language Model: Greedy Decoding": argmax P(w_1 … w_n) is prohibitive; greedy never begins with
a word of low probability and prefers many common words to one rare word; "Beam Search"]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nextword.core.contracts import END, START, UNKNOWN, Block, LanguageModel, Tokenizer
from nextword.core.events import Event, Progress, Stage
from nextword.decode.generate import collect, generate
from nextword.decode.settings import DecodeSettings
from nextword.drawing.page import Table
from nextword.drawing.svg import Axis, Series, lines
from nextword.experiments import exact, texts
from nextword.experiments.finding import Judge
from nextword.experiments.result import Chart, ExperimentResult, finish
from nextword.experiments.small import Floats
from nextword.ngram import estimation
from nextword.ngram.settings import NgramSettings
from nextword.runs import saved
from nextword.text.settings import TextSettings
from nextword.text.words import WordTokenizer

CLAIM = (
    "Greedy choice is a bad approximation of argmax P(w_1 … w_n): it never begins with a word of low "
    "probability and prefers many common words to one rare word; a beam comes closer."
)
BAD = "greedy choice is a bad approximation of the most likely text"
BEGIN = "it never begins with a word of low probability"
RARE = "it prefers many common words to one rare word"
BEAM = "a beam comes closer"
CLAIMS = (BAD, BEGIN, RARE, BEAM)
BEAMS = (1, 2, 4, 8, 16)
LENGTH = 5  # words to generate
VOCABULARY = 500
MOST = 1_500  # distributions that an exact search may compute
# Two hard cases for greedy choice: a likely beginning with many continuations, and several common words.
CORNERS = (
    ("a beginning of lower probability", ("the cat sat", "the dog ran", "the sun rose", "the rain fell",
     "the bell rang", "Xiamen University", "Xiamen University", "Xiamen University", "Xiamen University")),
    ("many common words or one rare word", ("it was a bit wet", "it was a lot wet", "it was so wet",
     "it is wet", "it rained", "drizzled", "drizzled", "drizzled", "drizzled")),
)  # fmt: skip


@dataclass(frozen=True)
class SearchResults:
    """What the searches found for some prompts."""

    best_P: Floats  # log p of the most likely text
    got_PK: Floats  # log p of what each beam found
    first: float  # share of prompts whose most likely text begins with another word than greedy takes
    looked: float  # distributions that an exact search computed
    unsolved: int  # prompts for which it gave up


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Continue held-out text by a trigram model of the embedded corpus, or by a run."""
    prompts = 8 if quick else 60 if run is None else 24
    if run is None:
        text = yield from texts.prepare(None, max_vocab=VOCABULARY, most=60_000 if quick else 0)
        model: LanguageModel = estimation.build(text.ids, text.vocab_size, NgramSettings(order=3))
        held, name = text.held[text.held != START], "a trigram model of " + text.name
    else:
        trained = saved.load(run)
        model, name = trained.model, run
        held = yield from texts.end_of_text(run, trained, 64)
    found = yield from _search(model, held, prompts)
    gaps_K = (found.best_P[:, None] - found.got_PK).mean(axis=0)
    hits_K = np.isclose(found.got_PK, found.best_P[:, None], atol=1e-6).mean(axis=0)
    corners = [_corner(title, sentences) for title, sentences in CORNERS]
    judge = Judge(quick)
    judge.measure(
        BAD,
        bool(hits_K[0] < 0.5),
        f"it finds the most likely {LENGTH} words for {hits_K[0]:.0%} of {len(found.best_P)} prompts; the "
        f"exact search computed {found.looked:,.0f} distributions per prompt{_unsolved(found.unsolved)}",
    )
    judge.measure(
        BEGIN,
        found.first > 0,
        f"for {found.first:.0%} the most likely text begins with another word than greedy takes",
    )
    best, greedy = corners[1].rows[:2]
    judge.exact(
        RARE,
        best[1] != greedy[1],
        f"of nine sentences '{best[1]}' is the most likely, and greedy takes '{greedy[1]}'",
    )
    judge.measure(
        BEAM,
        bool(hits_K[0] < hits_K[-1]),
        f"a beam of 4 finds it for {hits_K[2]:.0%}, of {BEAMS[-1]} for {hits_K[-1]:.0%}",
    )
    yield from finish(
        ExperimentResult(
            "greedy-or-beam", "Greedy or beam?", 'MAUSAM "Neural Language Model: Greedy Decoding"', CLAIM,
            f"greedy finds the most likely words for {hits_K[0]:.0%}, a beam of {BEAMS[-1]} for "
            f"{hits_K[-1]:.0%}",
            judge.findings,
            f"Measured in {name}: three held-out words are continued by {LENGTH} more.",
            (_picture(hits_K, gaps_K), *corners),
        ),
        out,
    )  # fmt: skip


def _unsolved(count: int) -> str:
    return f", and gave up at {MOST:,} for {count} of them (the best beam counts there)" if count else ""


def _search(model: LanguageModel, held: Floats, count: int) -> Generator[Event, None, SearchResults]:
    """Search exactly, then with every beam, on the same prompts of three words."""
    yield Stage("search", count, "prompts")
    at = np.linspace(8, len(held) - 8, count).astype(int)
    best, got, firsts, looked, unsolved = [], [], [], [], 0
    for done, place in enumerate(at, start=1):
        prompt = [int(word) for word in held[place - 3 : place]]
        found = exact.search(model, prompt, LENGTH, (UNKNOWN, END), MOST)
        yield Progress(done)
        rows = [_beam(model, prompt, size) for size in BEAMS]
        if found is None:  # use the best that is known
            unsolved += 1
            ids, logprob = max(rows, key=lambda row: row[1])
            found = exact.BestSequence(ids, logprob, MOST)
        best.append(found.logprob)
        got.append([logprob for _, logprob in rows])
        firsts.append(found.ids[0] != rows[0][0][0])
        looked.append(found.looked)
    return SearchResults(
        np.array(best), np.array(got).reshape(-1, len(BEAMS)), float(np.mean(firsts)),
        float(np.mean(looked)), unsolved,
    )  # fmt: skip


def _beam(model: LanguageModel, prompt: list[int], size: int) -> tuple[tuple[int, ...], float]:
    """Decode with a beam, greedily if its size is 1; without END, so that all texts have one length."""
    settings = DecodeSettings(max_tokens=LENGTH, min_tokens=LENGTH, **_way(size))
    (text,) = collect(generate(model, [prompt], settings))
    return text.ids, text.logprob


def _way(size: int) -> dict[str, Any]:
    return {"decode": "greedy"} if size == 1 else {"decode": "beam", "beam_size": size, "length_penalty": 0.0}


def _name(size: int) -> str:
    return "greedy" if size == 1 else f"beam of {size}"


def _picture(hits_K: Floats, gaps_K: Floats) -> Chart:
    ticks = tuple((float(size), "greedy" if size == 1 else str(size)) for size in BEAMS)
    points = tuple((float(size), 100 * float(share)) for size, share in zip(BEAMS, hits_K, strict=True))
    drawn = lines([Series("exact best found", points)], "How often the most likely text is found",
                  Axis("beam size", log=True, names=ticks), Axis("prompts, %", zero=True))  # fmt: skip
    rows = tuple(
        (_name(size), f"{share:.0%}", float(gap))
        for size, share, gap in zip(BEAMS, hits_K, gaps_K, strict=True)
    )
    caption = (
        f"Continue three held-out words by {LENGTH} more: for how many prompts the {LENGTH} most likely "
        "words, as found by an exact search, are found."
    )
    return Chart(drawn, caption, Table(("search", "most likely text found", "nats lost, mean"), rows))


def _corner(title: str, sentences: tuple[str, ...]) -> Table:
    """Try every way to search in a small model whose counts can be checked by hand."""
    model, tokenizer = _counted(sentences)
    rows = [("exact", *_shown(tokenizer, *_exactly(model)))]
    for size in (1, 2, 4):
        (text,) = collect(generate(model, [()], DecodeSettings(max_tokens=8, min_tokens=1, **_way(size))))
        rows.append((_name(size), *_shown(tokenizer, text.ids, text.logprob)))
    often = Counter(sentences)
    listed = "; ".join(text if count == 1 else f"{text} ({count} times)" for text, count in often.items())
    of = f"{len(sentences)} sentences, bigrams by relative frequency: {listed}"
    return Table(("search", "text", "p(text)"), tuple(rows), f"{title[0].upper()}{title[1:]} ({of})")


def _exactly(model: LanguageModel) -> tuple[tuple[int, ...], float]:
    found = exact.search(model, (), 8, (UNKNOWN,))
    assert found is not None
    return found.ids, found.logprob


def _shown(tokenizer: Tokenizer, ids: tuple[int, ...], logprob: float) -> tuple[str, float]:
    return tokenizer.decode([word for word in ids if word != END]), float(np.exp(logprob))


def _counted(sentences: tuple[str, ...]) -> tuple[LanguageModel, Tokenizer]:
    data = ("\n".join(sentences) + "\n").encode()
    fitting = WordTokenizer.fit_encode([Block(data, True)], TextSettings())
    ids = np.concatenate([np.asarray(piece.ids) for piece in fitting])
    settings = NgramSettings(order=2, smoothing="mle")
    return estimation.build(ids, fitting.tokenizer.vocab_size, settings), fitting.tokenizer
