"""Translation by sentence length, with and without attention, trained on short and on longer sentences.

[PENN "Experimental Results With vs. Without Attention Mechanism": RNNsearch against RNNenc, trained on
sentences of up to 30 or 50 words; Bahdanau et al. 2015, figure 2]
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from nextword.core.events import Event, Stage
from nextword.drawing.page import Table
from nextword.drawing.svg import Axis, Series, lines
from nextword.evaluation import significance
from nextword.evaluation.pairs.bleu import bleu_of, counts_of_words
from nextword.evaluation.pairs.counted import Floats
from nextword.experiments import fitting, languages
from nextword.experiments.finding import Finding, Judge, by_all, by_test
from nextword.experiments.learners import train_translator, translated
from nextword.experiments.result import Chart, ExperimentResult, finish
from nextword.experiments.small import Count

CLAIM = (
    "An RNN encoder-decoder without attention (RNNenc) translates long sentences badly, since all of a "
    "sentence passes through one vector; with attention (RNNsearch) it does not, even beyond the lengths it "
    "was trained on."
)
BETTER = "with attention translations are better, at every length and trained on either"
FALLS = "without attention they get worse as sentences grow"
STAYS = "with attention they do not, up to the 50 words it was trained on"
FARTHER = "nor beyond 50 words"
BEYOND = "trained up to 30 words, attention is better on longer sentences than no attention trained up to 50"
CLAIMS = (BETTER, FALLS, STAYS, FARTHER, BEYOND)
SEARCH, ENC = "RNNsearch", "RNNenc"
CONTEXTS = {SEARCH: "init+attention", ENC: "init"}
TRAINED = {30: 5, 50: 8}  # words: clauses of the longest sentences
LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)  # clauses
LOST = 5.0  # BLEU: less does not count
SMALL: dict[str, Any] = {"model.hidden": 64, "train.batch": 100}


class Measured(NamedTuple):
    """The counts of BLEU of each sentence, by length, and how many of its words are right."""

    counts: dict[int, Floats]  # ``counts_N10``

    def bleu(self, words: int) -> float:
        """Return BLEU of the sentences of one length."""
        return float(bleu_of(self.counts[words].sum(axis=0, keepdims=True))[0])

    def each(self, words: int) -> Floats:
        """Return for each sentence of one length the share of its n-grams that are right."""
        counts_N10 = self.counts[words]
        share: Floats = counts_N10[:, :4].sum(axis=1) / np.maximum(1, counts_N10[:, 4:8].sum(axis=1))
        return share


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Train RNNsearch and RNNenc on sentences of up to 30 and 50 words; translate up to 59 words."""
    fitting.refuse("attention", run)
    steps, count, tested, clauses = (10, 60, 4, (1, 6)) if quick else (700, 6000, 48, LENGTHS)
    yield Stage("train with and without attention", 4 * steps, "steps")
    found = yield from _measure(steps, count, tested, clauses)
    lengths = sorted(next(iter(found.values())).counts)
    ends = {name: each.bleu(lengths[-1]) for name, each in found.items()}
    yield from finish(
        ExperimentResult(
            "attention", "Attention and the length of sentences",
            'PENN "Experimental Results With vs. Without Attention Mechanism"', CLAIM,
            f"at {lengths[-1]} words BLEU {ends[_name(SEARCH, 50)]:.0f} with attention, "
            f"{ends[_name(ENC, 50)]:.0f} without, trained up to 50",
            _judged(found, lengths, quick),
            "A made language: words spelled backwards, the adjective after its noun, the verb last; "
            f"{count:,} sentences of clauses joined by 'and', up to 29 or 47 words, {tested} others of each "
            f"length. GRUs of {SMALL['model.hidden']} units, the encoder bidirectional in both; {steps} "
            "steps, one seed, p over sentences; greedy decoding. Multi30k, a usual set, has no sentences "
            "this long.",
            (_picture(found, lengths), _examples(found)),
        ),
        out,
    )  # fmt: skip


def _name(model: str, words: int) -> str:
    return f"{model}-{words}"


def _measure(
    steps: int, count: int, tested: int, clauses: Sequence[int]
) -> Generator[Event, None, dict[str, Measured]]:
    """Train the four models, and translate sentences of every length."""
    tests = {languages.CLAUSE * n - 1: languages.of_length(tested, n, 1) for n in clauses}
    done = Count()
    found = {}
    for model, context in CONTEXTS.items():
        for words, most in TRAINED.items():
            sets = {**SMALL, "model.context": context, "train.steps": steps}
            pairs = languages.sentences(count, most, 0)
            translator = yield from train_translator("gru-torch", pairs, 0, sets, done)
            counts = {}
            for length, held in tests.items():
                texts = translated(translator, [each.source for each in held])
                rows = [
                    counts_of_words(text.split(), each.target.split())
                    for text, each in zip(texts, held, strict=True)
                ]
                counts[length] = np.array(rows)
            found[_name(model, words)] = Measured(counts)
    return found


def _judged(found: dict[str, Measured], lengths: list[int], quick: bool) -> tuple[Finding, ...]:
    judge = Judge(quick)
    ahead = {
        (words, at): found[_name(SEARCH, words)].bleu(at) - found[_name(ENC, words)].bleu(at)
        for words in TRAINED for at in lengths
    }  # fmt: skip
    least = min(ahead, key=lambda at: ahead[at])
    judge.measure(
        BETTER,
        by_all([more >= 0 for more in ahead.values()]),
        f"BLEU is {ahead[least]:+.1f} at the least ({least[1]} words, trained up to {least[0]}) and "
        f"{max(ahead.values()):+.1f} at the most",
    )
    enc, search = found[_name(ENC, 50)], found[_name(SEARCH, 50)]
    judge.measure(
        FALLS,
        enc.bleu(lengths[0]) - enc.bleu(lengths[-1]) > LOST,
        f"BLEU falls from {enc.bleu(lengths[0]):.1f} at {lengths[0]} words to {enc.bleu(lengths[-1]):.1f} at "
        f"{lengths[-1]} (trained up to 50)",
    )
    for claim, at in ((STAYS, max(length for length in lengths if length <= 50)), (FARTHER, lengths[-1])):
        judge.measure(
            claim,
            search.bleu(lengths[0]) - search.bleu(at) < LOST,
            f"BLEU is {search.bleu(lengths[0]):.1f} at {lengths[0]} words and {search.bleu(at):.1f} at {at}; "
            f"a loss of less than {LOST:.0f} is none",
        )
    long = [length for length in lengths if length > 30]
    apart = np.concatenate(
        [found[_name(SEARCH, 30)].each(length) - found[_name(ENC, 50)].each(length) for length in long]
    )
    p = significance.sign_flips(apart)
    judge.measure(
        BEYOND,
        by_test(float(apart.mean()), p),
        f"of {long[0]} to {long[-1]} words, {float(apart.mean()):+.1%} of the n-grams are right "
        f"(p = {p:.2g})",
    )
    return judge.findings


def _picture(found: dict[str, Measured], lengths: list[int]) -> Chart:
    series = [
        Series(name, tuple((float(at), each.bleu(at)) for at in lengths)) for name, each in found.items()
    ]
    drawn = lines(
        series, "BLEU by the length of the sentence", Axis("words of the sentence"), Axis("BLEU", zero=True)
    )
    rows = tuple((at, *(round(each.bleu(at), 1) for each in found.values())) for at in lengths)
    caption = (
        "The number after a name is the length up to which it was trained. RNNenc has the last states of its "
        "encoder only; RNNsearch looks at all of them before each word."
    )
    return Chart(drawn, caption, Table(("words", *found), rows))


def _examples(found: dict[str, Measured]) -> Table:
    rows = tuple(
        (each.source, each.target) for each in (languages.of_length(1, n, 1)[0] for n in LENGTHS[:2])
    )
    return Table(("sentence", "translation"), rows, "The made language")
