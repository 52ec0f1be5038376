"""``next``: what comes next after a text, as whole words or as tokens, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from nextword.api.arguments import checked
from nextword.api.inspect import subject_of
from nextword.api.opened import Name, Opened, language_model
from nextword.api.prompts import notes_on
from nextword.api.results import Next
from nextword.core.contracts import END, SPECIALS, START, PieceTokenizer
from nextword.core.errors import ConfigError
from nextword.decode.words import FoundWord, FoundWords, next_words, read
from nextword.evaluation.lm.evidence import TokenEvidence, evidence_after
from nextword.models.distributions import as_numpy, without_nan
from nextword.ngram.model import NgramModel
from nextword.probe.evidence import EvidenceSource, sources_after

_ENDS = SPECIALS[END]


class NextWords(Next):
    """Pairs (word, probability), END as ``</s>``; ``found`` has what is left, unknown words and the rest."""

    def __init__(self, pairs: Iterable[tuple[str, float]], found: FoundWords) -> None:
        super().__init__(pairs)
        self.found = found


@checked
def next(  # noqa: A001 - the verb
    run: Opened | Name, text: str = "", top: int | None = 10, words: bool = True
) -> Next:
    """Predict the next word after a text: pairs (word, probability), the most likely first.

    A word at the end of the text, without a space after it, is taken to be complete, unless the model would
    rather go on with a letter: then it is completed. ``words=False``: tokens. ``top=None``: all that was
    found.

    >>> [word for word, p in nextword.next("runs/tiny", "the cat sat on the", top=2)]
    ['mat', 'rug']
    """
    if not words:
        return next_tokens(run, text, top)
    opened = language_model(run, forward=True)
    check_words(opened)
    found = next_words(opened.model, opened.tokenizer, text)
    return NextWords([(each.text, each.probability) for each in with_end(found)][:top], found)


def next_tokens(run: Opened | Name, context: str = "", top: int | None = None) -> Next:
    """Predict the next token: pairs (text, probability), END as ``</s>``; ``top=None`` gives every token."""
    opened = language_model(run)
    found = likely_tokens(opened, context, top)
    pairs = [(opened.tokenizer.piece(each.ids[0]), each.probability) for each in found]
    return Next(pairs, opened.is_probability)


@dataclass(frozen=True)
class Row:
    """One thing that may come next."""

    text: str
    probability: float
    tokens: tuple[str, ...]
    other: float | None = None  # its probability by the run of ``--against``; None: it has no such token
    why: tuple[EvidenceSource | TokenEvidence, ...] = ()  # for each of its tokens

    @property
    def ratio(self) -> float | None:
        """Return how many times more likely it is than by the other run."""
        return self.probability / self.other if self.other else None


@dataclass(frozen=True)
class Answer:
    """What comes next after a text, ready to be shown."""

    run: str
    text: str
    asks: str  # word, completion or token
    rows: tuple[Row, ...]
    found: FoundWords
    is_probability: bool
    unit: str  # what END ends: line or document
    against: str | None = None
    model: str = ""  # what gave the evidence, in a phrase
    notes: tuple[str, ...] = field(default=())

    @property
    def others(self) -> float:
        """Return the probability of all other words or tokens that were found."""
        shown = sum(row.probability for row in self.rows)
        return max(0.0, 1.0 - shown - self.found.unknown - self.found.left)

    def to_json(self) -> dict[str, Any]:
        """Collect what ``--json`` prints."""
        rows = []
        for row in self.rows:
            values: dict[str, Any] = {
                "text": row.text, "probability": row.probability, "tokens": list(row.tokens),
            }  # fmt: skip
            if self.against is not None:
                values |= {"against": row.other, "ratio": row.ratio}
            rows.append(values | ({"why": [asdict(each) for each in row.why]} if row.why else {}))
        return {
            "run": self.run, "against": self.against, "text": self.text, "asks": self.asks, "next": rows,
            "end": self.found.end, "unknown": self.found.unknown, "left": self.found.left,
            "others": self.others, "longer": self.found.longer, "is_probability": self.is_probability,
        }  # fmt: skip


def answer(
    run: Opened | Name,
    text: str,
    top: int = 10,
    tokens: bool = False,
    why: bool = False,
    against: Opened | Name | None = None,
) -> Answer:
    """Answer the question of `nextword next`."""
    if top < 1:
        raise ConfigError(f"'--top' is {top}; it must be 1 or more")
    opened = language_model(run, forward=True)
    other = None if against is None else language_model(against, forward=True)
    for each in (opened, other):
        if not tokens and each is not None:
            check_words(each)
    shown, found = _tokens_beside(opened, other, text, top) if tokens else _beside(opened, other, text, top)
    prompt = found.read
    rows = tuple(
        Row(
            each.text,
            each.probability,
            tuple(opened.tokenizer.piece(index) for index in each.ids),
            p,
            tuple(_why(opened, prompt, each)) if why else (),
        )
        for each, p in shown
    )
    notes = [
        note for each in (opened, other) if each is not None for note in notes_on(each, text, "the text")
    ]
    asks = "token" if tokens else "completion" if found.part else "word"
    return Answer(
        _name(opened), text, asks, rows, found, opened.is_probability, opened.tokenizer.unit,
        None if other is None else _name(other), subject_of(opened).described,
        tuple(dict.fromkeys(notes)),
    )  # fmt: skip


Shown = list[tuple[FoundWord, float | None]]


def _beside(opened: Opened, other: Opened | None, text: str, top: int) -> tuple[Shown, FoundWords]:
    """Return the most likely words, with their probability by the other run if there is one."""
    if other is None:
        found = next_words(opened.model, opened.tokenizer, text)
        return [(each, None) for each in with_end(found)[:top]], found
    has_pieces = all(isinstance(each.tokenizer, PieceTokenizer) for each in (opened, other))
    found = next_words(opened.model, opened.tokenizer, text, None if has_pieces else False)
    part = bool(found.part)
    found2 = next_words(other.model, other.tokenizer, text, part)
    tried = [each.text for each in (*found.words[:top], *found2.words[:top])]
    first, second = (
        {each.text: each for each in next_words(run.model, run.tokenizer, text, part, tried).words}
        for run in (opened, other)
    )
    unseen = 0.0 if isinstance(other.tokenizer, PieceTokenizer) else None
    shown: Shown = [(FoundWord(_ENDS, found.end, (END,)), found2.end)]
    for word in dict.fromkeys(tried):
        p = second[word].probability if word in second else unseen
        shown.append((first.get(word, FoundWord(word, 0.0, ())), p))
    shown.sort(key=lambda pair: (-pair[0].probability - (pair[1] or 0.0), pair[0].text))
    return shown[:top], found


def _tokens_beside(opened: Opened, other: Opened | None, text: str, top: int) -> tuple[Shown, FoundWords]:
    """Return the most likely tokens, with their probability by the other run if it has the same ones."""
    found = likely_tokens(opened, text, top)
    ids = tuple(int(index) for index in opened.tokenizer.encode(text))
    facts = FoundWords((), read=ids)
    if other is None:
        return [(each, None) for each in found], facts
    p_of = dict(next_tokens(other, text))
    return [(each, p_of.get(opened.tokenizer.piece(each.ids[0]))) for each in found], facts


def likely_tokens(opened: Opened, context: str, top: int | None) -> list[FoundWord]:
    """Return the most likely tokens after a text; START never comes next."""
    ids = [int(index) for index in opened.tokenizer.encode(context)]
    p_V = np.exp(without_nan(as_numpy(opened.model.next(read(opened.model, ids)), np.float64)[0]))
    p_V[START] = -1.0  # sorts last
    count = len(p_V) - 1 if top is None else min(max(0, top), len(p_V) - 1)
    likely = np.argpartition(-p_V, count - 1)[:count] if 0 < count < len(p_V) - 1 else np.arange(len(p_V))
    order = likely[np.lexsort((likely, -p_V[likely]))][:count]
    return [FoundWord(opened.tokenizer.piece(i), float(p_V[i]), (i,)) for i in order.tolist()]


def with_end(found: FoundWords) -> list[FoundWord]:
    """Return the words, and END where it belongs among them."""
    listed = list(found.words)
    if found.end > 0:
        listed.append(FoundWord(_ENDS, found.end, (END,)))
    return sorted(listed, key=lambda each: -each.probability)


def _why(opened: Opened, prompt: tuple[int, ...], word: FoundWord) -> list[Any]:
    """Return where the probability of each token of a word comes from."""
    if isinstance(opened.model, NgramModel):
        return list(sources_after(subject_of(opened), prompt, word.ids))
    return list(evidence_after(opened.model, opened.tokenizer, prompt, word.ids, 2, opened.members))


def check_words(run: Opened) -> None:
    """Refuse to sum scores, which are not probabilities, over the pieces of a word."""
    if not run.is_probability and isinstance(run.tokenizer, PieceTokenizer):
        raise ConfigError(
            f"'{_name(run)}' gives scores, which do not add up to probabilities of whole words; use --tokens "
            "(in Python words=False)"
        )


def _name(run: Opened) -> str:
    return run.settings.name if run.path is None else run.path.name
