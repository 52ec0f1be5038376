"""The design that fails: every word of an output by itself, given the input.

[MAUSAM "Can you think of a fundamental problem in this design?", then "Auto-regressive models"]. A sentence
has two good translations; words that are drawn independently of each other belong now to one, now to the
other."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any, NamedTuple

from nextword.core.events import Event, Stage
from nextword.drawing.page import Table
from nextword.drawing.svg import bars
from nextword.experiments import fitting, languages
from nextword.experiments.finding import Judge
from nextword.experiments.languages import Words
from nextword.experiments.learners import train_translator, translated
from nextword.experiments.result import Chart, ExperimentResult, cells, finish
from nextword.experiments.small import Count

CLAIM = (
    "A network that gives a distribution for every position of the output, independently of the words at the "
    "others, has a fundamental problem; an auto-regressive model, which reads what it has written, has not."
)
PLACES = "each word fits its place: it belongs to one of the two right translations there"
MIXED = "but together they babble: words of both translations are mixed in most sentences"
READS = "a model that reads its own words writes one translation or the other"
CLAIMS = (PLACES, MIXED, READS)
BABBLE, OWN = "every word by itself", "auto-regressive"
MODELS = {BABBLE: "babble", OWN: "lstm"}
MOST = 0.9  # of the words or sentences: enough
SMALL: dict[str, Any] = {"model.hidden": 64, "model.context": "init+attention", "train.batch": 80}


class Judged(NamedTuple):
    """What became of the sentences of one model."""

    places: float  # words that one of the translations has at this place
    whole: float  # sentences that are one of the translations
    mixed: float  # sentences with words of both
    texts: list[str]


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Train a model that reads its own words, and one that does not; sample translations from both."""
    fitting.refuse("babble", run)
    steps, count, tested = (10, 60, 8) if quick else (500, 2000, 200)
    yield Stage("train with and without reading its own words", 2 * steps, "steps")
    found, held = yield from _measure(steps, count, tested)
    judge = Judge(quick)
    babble, own = found[BABBLE], found[OWN]
    words = len(held[0].target.split())
    judge.measure(PLACES, babble.places > MOST, f"{babble.places:.1%} of the words, each drawn by itself")
    judge.measure(
        MIXED,
        babble.mixed > 0.5,
        f"{babble.mixed:.0%} of the sentences mix both translations, {babble.whole:.0%} are right; of "
        f"{words} fair coins all fall alike in {2 * 0.5**words:.0%}",
    )
    judge.measure(
        READS, own.whole > MOST, f"{own.whole:.0%} of its sentences are right, {own.mixed:.0%} mix both"
    )
    yield from finish(
        ExperimentResult(
            "babble", "Words that do not know of each other", 'MAUSAM "Neural Language Models: LSTMs"', CLAIM,
            f"{babble.whole:.0%} of sentences right without reading its own words, {own.whole:.0%} with",
            judge.findings,
            f"A made language of two dialects: a sentence of {words} words has one translation with words "
            "spelled backwards, and one that is written in capitals from the end; each is the target as "
            f"often. LSTMs of {SMALL['model.hidden']} units with attention, {count:,} sentences, {steps} "
            f"steps, one seed; {tested} other sentences, words sampled.",
            (_picture(found), _examples(found, held)),
        ),
        out,
    )  # fmt: skip


def _measure(
    steps: int, count: int, tested: int
) -> Generator[Event, None, tuple[dict[str, Judged], list[Words]]]:
    """Train both models, and judge what each writes."""
    learned = languages.of_length(count, 1, 0)
    pairs = [(each.source, dialect) for each in learned for dialect in languages.dialects(each)]
    held = languages.of_length(tested, 1, 1)
    done = Count()
    found = {}
    for name, family in MODELS.items():
        model = yield from train_translator(family, pairs, 0, {**SMALL, "train.steps": steps}, done)
        texts = translated(model, [each.source for each in held], decode="sample", seed=1)
        found[name] = judged(texts, held)
    return found, held


def judged(texts: Sequence[str], held: Sequence[Words]) -> Judged:
    """Compare sampled sentences with both of their translations."""
    places = words = whole = mixed = 0
    for text, each in zip(texts, held, strict=True):
        both = [dialect.split() for dialect in languages.dialects(each)]
        written = text.split()
        fits = [[at < len(right) and word == right[at] for at, word in enumerate(written)] for right in both]
        places += sum(one or two for one, two in zip(*fits, strict=True))
        words += len(written)
        whole += written in both
        mixed += any(word.isupper() for word in written) and any(word.islower() for word in written)
    return Judged(places / max(1, words), whole / len(held), mixed / len(held), list(texts))


def _picture(found: dict[str, Judged]) -> Chart:
    values = [(name, 100 * each.whole) for name, each in found.items()]
    drawn = bars(values, "Sentences that are one of the two translations", "% of the sentences")
    rows = tuple(
        cells(name, (round(share, 3) for share in (each.places, each.whole, each.mixed)))
        for name, each in found.items()
    )
    caption = "A distribution for every place is not a distribution over sentences."
    return Chart(drawn, caption, Table(("model", "words that fit their place", "right", "mixed"), rows))


def _examples(found: dict[str, Judged], held: Sequence[Words]) -> Table:
    rows = tuple(
        (each.source, *(judged.texts[at] for judged in found.values())) for at, each in enumerate(held[:6])
    )
    return Table(("sentence", *found), rows, "What each writes")
