"""The slide's corpus, counted by hand and by nextword.

[XMU "Word Frequency", "Estimate based on frequencies", "Laplace smoothing"]
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from nextword.core.contracts import END, Block
from nextword.core.events import Event, Stage
from nextword.drawing.page import Table
from nextword.experiments import fitting, slide
from nextword.experiments.finding import Judge, Verdict
from nextword.experiments.result import ExperimentResult, finish
from nextword.ngram import estimation
from nextword.ngram.model import NgramModel
from nextword.ngram.settings import NgramSettings
from nextword.text.settings import TextSettings
from nextword.text.words import WordTokenizer

CLAIM = "p(I as the first word) = 3/4, p(you | love) = 2/3, and p(love) = 2/15."
FIRST, AFTER, LOVE = "p(I as the first word) = 3/4", "p(you | love) = 2/3", "p(love) = 2/15"
CLAIMS = (FIRST, AFTER, LOVE)
WHY = (
    "Why whitespace words give other numbers: the full stop stays with its word, so that 'tons.' and "
    "'Man.' are words of their own, and nextword also predicts the end of every line: END is counted like "
    "a word, which makes 19 predictions out of 15 words. p(you | love) and p(I | START) do not change, "
    "since neither a full stop nor an end is involved."
)
ENDS = (
    "The slide's own counts leave a gap at the end of a sentence: n(me) = 1, but no word follows 'me', so "
    "p(. | me) sums to 0. With END it sums to 1, because END follows."
)
_EPS = ((1, 1, 1), (1, 1, 2), (1, 2, 0.5))


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Count by hand and by nextword; it is always small enough to be fast."""
    fitting.refuse("counts", run)
    yield Stage("count the slide's corpus")
    tables = (by_hand(), by_nextword(), laplace())
    love, first, after = slide.p_word("love"), slide.p_first("I"), slide.p_after("you", "love")
    judge = Judge(quick)
    judge.exact(FIRST, first == Fraction(3, 4), f"{first}: 3 of 4 sentences begin with I")
    judge.exact(AFTER, after == Fraction(2, 3), f"{after}: you follows 2 of 3 times")
    judge.exact(
        LOVE,
        love == Fraction(2, 15) or (Verdict.CORRECTED if love == Fraction(3, 15) else Verdict.FAILED),
        "3/15: love occurs three times, as the slide's own p(you | love) = 2/3 says",
    )
    yield from finish(
        ExperimentResult(
            "counts", "Counting the slide's corpus", 'XMU "Estimate based on frequencies"', CLAIM,
            f"p(I first) = {first} and p(you | love) = {after}; p(love) is 3/15, not 2/15", judge.findings,
            "The slide's four sentences, counted by hand and by nextword.",
            (*tables[:1], WHY, tables[1], ENDS, tables[2]),
        ),
        out,
    )  # fmt: skip


def by_hand() -> Table:
    """Return the slide's numbers and ours, from the same counts."""
    n, N = slide.counts(1), slide.total()
    rows = (
        ("n(love)", "2 (slip)", f"{n[('love',)]}", float(n[("love",)])),
        ("n(love, you)", "2", f"{slide.counts(2)[('love', 'you')]}", float(slide.counts(2)[("love", "you")])),
        ("p(love)", "2/15 (slip)", f"{n[('love',)]}/{N}", float(slide.p_word("love"))),
        ("p(I)", "3/15", f"{n[('I',)]}/{N}", float(slide.p_word("I"))),
        ("p(I as first word)", "3/4", str(slide.p_first("I")), float(slide.p_first("I"))),
        ("p(you | love)", "2/3", str(slide.p_after("you", "love")), float(slide.p_after("you", "love"))),
    )
    return Table(
        ("what", "slide", "counted", "value"), rows, "As the slide counts: words without full stops, no END"
    )


def by_nextword() -> Table:
    """Get the same from `ngram-mle`, on whitespace words and on words with the full stop apart."""
    rows = []
    for asked, (context, word) in {
        "p(love), order 1": ((), "love"),
        "p(I | START)": ((), "I"),
        "p(you | love)": (("love",), "you"),
        "p(END | tons.)": (("tons.",), ""),
    }.items():
        order = 1 if "order 1" in asked else 2
        plain, apart = (_mle(text, order) for text in (slide.TEXT, slide.TEXT.replace(".", " .")))
        spaced = ("." if context == ("tons.",) else context[0],) if context else ()
        rows.append((asked, plain.p(word, context), apart.p(word, spaced)))
    title = "As nextword counts: whitespace words, END counted (relative frequencies, ngram-mle)"
    return Table(("what", "text as it is", "with the full stop as a word"), tuple(rows), title)


def laplace() -> Table:
    """Return the slide's formula with its slip corrected, and its sums as printed."""
    context = ("love", "you")
    rows = tuple(
        (
            f"{eps[0]}, {eps[1]}, {eps[2]}",
            slide.laplace("love", (), eps),
            slide.laplace("you", ("love",), eps),
            slide.laplace("tons", context, eps),
            slide.laplace_sum(context, eps),
            slide.laplace_sum(context, eps, as_printed=True),
        )
        for eps in _EPS
    )
    heads = (
        "eps1, eps2, eps3",
        "p(love)",
        "p(you | love)",
        "p(tons | love you)",
        "sum after 'love you'",
        "sum as printed",
    )
    return Table(heads, rows, "The Laplace formula, eps3 in the denominator where the slide prints eps2")


class _Probabilities:
    """A model and its vocabulary, for single probabilities."""

    def __init__(self, model: NgramModel, tokenizer: Any) -> None:
        self.model, self.tokenizer = model, tokenizer

    def p(self, word: str, context: tuple[str, ...] = ()) -> float:
        """Return p(word | context); no word means END, and no context the beginning of a sentence."""
        state = self.model.start(1, begin=not context)
        if context:
            ids = self.tokenizer.encode(" ".join(context))
            state = self.model.score(ids[None], np.array([len(ids)]), state)[1]
        index = int(self.tokenizer.encode(word)[0]) if word else END
        return float(np.exp(self.model.next(state)[0, index]))


def _mle(text: str, order: int) -> _Probabilities:
    fitted = WordTokenizer.fit_encode([Block(text.encode(), True)], TextSettings())
    ids = np.concatenate([np.asarray(piece.ids) for piece in fitted])
    settings = NgramSettings(order=order, smoothing="mle")
    return _Probabilities(estimation.build(ids, fitted.tokenizer.vocab_size, settings), fitted.tokenizer)
