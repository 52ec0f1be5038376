"""The next word, whatever the tokens: its probability is a sum over all ways to spell it with tokens.

p(word) = Σ over spellings t1 … tk of p(t1 … tk) · p(whitespace or END comes next), by the chain rule [XMU
"Recap: next token prediction and auto-regressive models"]. The most likely beginnings are spelled out first,
many rows at a time; what is left at the end is reported, so that the numbers and it sum to 1.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from nextword.core.contracts import (
    END,
    START,
    UNKNOWN,
    LanguageModel,
    PieceTokenizer,
    State,
    Tokenizer,
    context_of,
)
from nextword.decode.positions import reading
from nextword.decode.respelling import First, probabilities, spell_again
from nextword.decode.spelling import SPACES, Spelling, Wanted, pieces_of, words_of
from nextword.models.distributions import Floats

EFFORT = 2048  # beginnings of words that are continued, at most
ROUND = 256  # of them at a time: the most likely ones
ENOUGH = 1e-3  # of the probability may be left
_PROMPTS = 2  # prompts whose states are kept: the next one mostly begins like the last one
_HELD = 1 << 17  # tokens that the states of all beginnings hold together, at most
_SMALL = 1e-5  # a beginning less likely than this is left; it would hardly ever be its turn
# Where only the first few words are asked for:
_QUICK = 64  # beginnings at a time, since their order is known sooner
_QUICK_SMALL = 1e-4


@dataclass(frozen=True)
class FoundWord:
    """A word, its probability, and its most likely tokens."""

    text: str
    probability: float
    ids: tuple[int, ...]


@dataclass(frozen=True)
class FoundWords:
    """The next word. Words (the most likely first), ``end``, ``unknown`` and ``left`` sum to 1."""

    words: tuple[FoundWord, ...]
    end: float = 0.0  # the line or document ends
    unknown: float = 0.0  # any word outside the vocabulary
    left: float = 0.0  # not spelled out: no word has more than this in addition
    largest: float = 0.0  # the most likely beginning of a word that was left
    part: str = ""  # the beginning of a word, at the end of the prompt, that is completed
    ended: str = ""  # or the last word of the prompt, taken to be complete
    longer: float = 0.0  # then: the probability that it goes on without a space
    read: tuple[int, ...] = ()  # the tokens that the model had read; those of the words come after them


class Beginning(NamedTuple):
    """The beginning of a word: the state before its last token, and that token."""

    mass: float
    spelling: Spelling
    state: State
    row: int
    ids: tuple[int, ...]


@dataclass
class Tally:
    """What has been found, and what is still to be spelled out."""

    words: dict[bytes, list[tuple[float, tuple[int, ...]]]] = field(default_factory=dict)
    waiting: list[tuple[float, int, Beginning]] = field(default_factory=list)
    end: float = 0.0
    dropped: float = 0.0
    pushed: int = 0
    mass: float = 0.0  # of those that wait, about
    small: float = _SMALL  # what is less likely is dropped

    def add(self, each: Beginning) -> None:
        """Take a beginning; one with whitespace behind it is a word already."""
        if each.spelling.done:
            self.complete(each.spelling.word, each.mass, each.ids)
            return
        self.pushed += 1  # equal ones in the order in which they came
        self.mass += each.mass
        heapq.heappush(self.waiting, (-each.mass, self.pushed, each))

    def complete(self, word: bytes, mass: float, ids: tuple[int, ...]) -> None:
        """Add one way to spell a word."""
        self.words.setdefault(word, []).append((mass, ids))

    def take(self, count: int) -> list[Beginning]:
        """Take the most likely beginnings."""
        taken = [heapq.heappop(self.waiting)[2] for _ in range(min(count, len(self.waiting)))]
        self.mass -= math.fsum(each.mass for each in taken)
        return taken

    def has_first(self, count: int) -> bool:
        """Tell whether no beginning that waits can become a word more likely than the first ``count``."""
        if not self.waiting or len(self.words) < count:
            return not self.waiting
        sums = (math.fsum(mass for mass, _ in ways) for ways in self.words.values())
        return heapq.nlargest(count, sums)[-1] >= -self.waiting[0][0]

    @property
    def left(self) -> float:
        """The probability of all that was not spelled out."""
        return math.fsum([self.dropped, *(-mass for mass, _, _ in self.waiting)])

    def sorted_words(self) -> tuple[FoundWord, ...]:
        """Return the words, the most likely first."""
        found = [
            FoundWord(
                word.decode("utf-8", "backslashreplace"), math.fsum(mass for mass, _ in ways), max(ways)[1]
            )
            for word, ways in self.words.items()
        ]
        return tuple(sorted(found, key=lambda each: (-each.probability, each.text)))


@dataclass(frozen=True)
class Opening:
    """Where the search begins: what the model has read of the prompt, and what must come then."""

    ids: tuple[int, ...]
    owed: bytes = b""  # the end of the prompt, which is read again: " the" may be the beginning of one token
    must_break: bool = False  # whitespace or END comes next, since the last word is taken to be complete
    spelling: Spelling = field(default_factory=Spelling)
    part: str = ""
    ended: str = ""
    longer: float = 0.0


class WordSearch:
    """Spells words with one model; ``batch``: rows that are processed at once, which changes no result.

    Who types asks at every key, and the prompt mostly begins like the one before: its state is kept.
    """

    def __init__(
        self, model: LanguageModel, tokenizer: PieceTokenizer, effort: int = EFFORT, batch: int = ROUND
    ) -> None:
        self.model, self.tokenizer, self.effort, self.batch = model, tokenizer, effort, batch
        self.pieces = pieces_of(tokenizer)
        self._states: dict[tuple[int, ...], State] = {}
        self._firsts: tuple[tuple[int, ...], bytes, list[First], float] | None = None

    def find(
        self,
        text: str,
        part: bool | None = None,
        words: Iterable[str] | None = None,
        top: int | None = None,
    ) -> FoundWords:
        """Return the words that may come after a text; ``words``: only these, spelled out in every way.

        A text that ends inside a word: ``part`` says whether the word is completed (True) or taken to be
        complete (False). None: it is completed where the model goes on with a letter, rather than not.
        ``top``: the search ends once this many words are known to be the most likely.
        """
        wanted = None if words is None else Wanted(word.encode("utf-8", "surrogatepass") for word in words)
        opening = self._open(text, part)
        tally = Tally(small=_SMALL if top is None else _QUICK_SMALL)
        self._begin(tally, opening, wanted)
        self._spell(tally, self._affordable(len(opening.ids)), wanted, top)
        largest = -tally.waiting[0][0] if tally.waiting else 0.0
        return FoundWords(
            tally.sorted_words(), tally.end, 0.0, tally.left, largest,
            opening.part, opening.ended, opening.longer, opening.ids,
        )  # fmt: skip

    def _open(self, text: str, part: bool | None) -> Opening:
        """Decide what is asked, from the end of the prompt."""
        ids = tuple(int(index) for index in self.tokenizer.encode(text))
        data = b"".join(self.pieces.data[index] for index in ids)  # as the model reads it
        if not data:
            return Opening(ids)
        if data[-1:] in SPACES:
            return Opening(ids) if self.pieces.are_single else self._reopened(data, data.rstrip(SPACES))
        last = data.split()[-1]
        shown = last.decode("utf-8", "backslashreplace")
        if not part:  # else it is read again, without its last word
            p_V = self._next(self._read(ids))
            part = part is None and float(p_V[self.pieces.letters_V].sum()) > 0.5
        if not part:
            longer = float(p_V[~self.pieces.breaks_V].sum())
            return Opening(ids, must_break=True, ended=shown, longer=longer)
        if self.pieces.are_single:
            return Opening(ids, spelling=Spelling(last, True), part=shown)
        return replace(self._reopened(data, data.removesuffix(last).removesuffix(b" ")), part=shown)

    def _reopened(self, data: bytes, kept: bytes) -> Opening:
        """Read only the first part of the prompt; tokens must then spell the rest, and may go beyond it."""
        ids = self.tokenizer.encode(kept.decode("utf-8", "replace"))
        return Opening(tuple(int(index) for index in ids), data.removeprefix(kept))

    def _begin(self, tally: Tally, opening: Opening, wanted: Wanted | None) -> None:
        """Put all tokens into the tally that may come first; their probabilities are made to sum to 1."""
        if opening.owed:
            self._begin_owed(tally, *self._first(opening.ids, opening.owed), wanted)
            return
        state = self._read(opening.ids)
        p_V = self._next(state)
        if opening.must_break:
            p_V = np.where(self.pieces.breaks_V, p_V, 0.0)
        root = Beginning(1.0, opening.spelling, state, 0, ())
        self._branch(tally, root, p_V / max(p_V.sum(), 1e-300), wanted)

    def _begin_owed(self, tally: Tally, firsts: list[First], lost: float, wanted: Wanted | None) -> None:
        total = math.fsum([lost, *(float(each.mass_N.sum()) for each in firsts)])
        tally.dropped += lost / total if total else 1.0
        for before, state, tokens_N, mass_N in firsts if total else ():
            mass_N = mass_N / total
            kept = np.flatnonzero(mass_N > 0 if wanted else mass_N >= tally.small)
            tally.dropped += float(mass_N.sum() - mass_N[kept].sum())
            for token, mass in zip(tokens_N[kept].tolist(), mass_N[kept].tolist(), strict=True):
                spelling = self.pieces.read(before.spelling, token)
                if wanted is None or wanted.allows(spelling):
                    tally.add(Beginning(mass, spelling, state, before.row, (*before.ids, token)))

    def _first(self, ids: tuple[int, ...], owed: bytes) -> tuple[list[First], float]:
        """Return the tokens that reach beyond the end of the prompt, and the probability that was left."""
        if self._firsts is None or self._firsts[:2] != (ids, owed):
            self._firsts = ids, owed, *spell_again(self.model, self.pieces, self._read(ids), owed)
        return self._firsts[2:]

    def _affordable(self, read: int) -> int:
        """Return how many beginnings are continued: a state may hold all that was read, and many are kept."""
        context = context_of(self.model)
        held = read if context is None else min(read, context)
        return min(self.effort, max(ROUND, _HELD // (held + 1)))

    def _spell(self, tally: Tally, effort: int, wanted: Wanted | None, top: int | None) -> None:
        """Continue the most likely beginnings, round by round, until little is left or effort is spent."""
        enough = ENOUGH if wanted is None else ENOUGH**3
        spent, most = 0, ROUND if top is None else _QUICK
        while tally.waiting and spent < effort and tally.mass + tally.dropped > enough:
            if top is not None and tally.has_first(top):
                break
            taken = tally.take(min(most, effort - spent))
            spent += len(taken)
            for first in range(0, len(taken), self.batch):
                self._continue(tally, taken[first : first + self.batch], wanted)

    def _continue(self, tally: Tally, rows: Sequence[Beginning], wanted: Wanted | None) -> None:
        """Read the last token of each beginning, whatever step each comes from."""
        groups: dict[int, list[int]] = {}
        for place, each in enumerate(rows):
            groups.setdefault(id(each.state), []).append(place)
        states = [
            self.model.reorder(rows[places[0]].state, np.array([rows[place].row for place in places]))
            for places in groups.values()
        ]
        order = [place for places in groups.values() for place in places]
        state = states[0] if len(states) == 1 else self.model.join(states)
        logp_BV, state = self.model.step(np.array([rows[place].ids[-1] for place in order]), state)
        p_BV = probabilities(logp_BV)
        at = {place: row for row, place in enumerate(order)}
        for place, each in enumerate(rows):
            here = each._replace(state=state, row=at[place])
            self._branch(tally, here, each.mass * p_BV[at[place]], wanted)

    def _branch(self, tally: Tally, here: Beginning, mass_V: Floats, wanted: Wanted | None) -> None:
        """Add what may follow a beginning that the state has read; ``mass_V``: the probability of each."""
        so_far = here.spelling
        if so_far.begun:
            mass = float(mass_V[self.pieces.breaks_V].sum())
            if mass > 0 and (wanted is None or so_far.word in wanted.words):
                tally.complete(so_far.word, mass, here.ids)
            mass_V = np.where(self.pieces.breaks_V, 0.0, mass_V)
        else:
            tally.end += float(mass_V[END])
            mass_V = np.where(np.arange(len(mass_V)) == END, 0.0, mass_V)
        if wanted is None:
            tokens = np.flatnonzero(mass_V >= tally.small)
            tally.dropped += float(mass_V.sum() - mass_V[tokens].sum())
        else:
            found = np.array(self.pieces.spellers(so_far, wanted), dtype=np.int64)
            tokens = found[mass_V[found] > 0]
        for token in tokens.tolist():
            after = self.pieces.read(so_far, token)
            tally.add(Beginning(float(mass_V[token]), after, here.state, here.row, (*here.ids, token)))

    def _read(self, ids: tuple[int, ...]) -> State:
        """Return the state after a prompt; what is new of it is read."""
        known = max((each for each in self._states if each == ids[: len(each)]), key=len, default=None)
        if known is None:
            state = read(self.model, ids)
        else:
            state = self._states[known] = self._states.pop(known)  # used last
            state = read(self.model, ids[len(known) :], state)
        self._states[ids] = state
        while len(self._states) > _PROMPTS:
            del self._states[next(iter(self._states))]
        return state

    def _next(self, state: State) -> Floats:
        p_V: Floats = probabilities(self.model.next(state))[0]
        return p_V


def read(model: LanguageModel, ids: Sequence[int], state: State = None) -> State:
    """Return the state of one row after a prompt, or after more of it."""
    state = model.start(1) if state is None else state
    if len(ids):
        state = reading(model)(np.array([ids], dtype=np.int64), np.array([len(ids)]), state)
    return state


def next_words(
    model: LanguageModel,
    tokenizer: Tokenizer,
    text: str,
    part: bool | None = None,
    words: Iterable[str] | None = None,
    effort: int = EFFORT,
    batch: int = ROUND,
    top: int | None = None,
) -> FoundWords:
    """Return the next word after a text, for every tokenizer; see `WordSearch.find`.

    Where every token is a word, the last word of the text is complete unless ``part`` is True: then the words
    of the vocabulary that begin with it share the probability.
    """
    if isinstance(tokenizer, PieceTokenizer):
        return WordSearch(model, tokenizer, effort, batch).find(text, part, words, top)
    ids = tuple(int(index) for index in tokenizer.encode(text))
    last = text.split()[-1] if text.split() and not text[-1:].isspace() else ""
    completes = bool(part and last)
    ids = ids[:-1] if completes else ids
    p_V = probabilities(model.next(read(model, ids)))[0]
    end, unknown = (0.0, 0.0) if completes else (float(p_V[END]), float(p_V[UNKNOWN]))
    p_V[[UNKNOWN, START, END]] = 0.0
    if completes:
        fits, all_V = words_of(tokenizer).beginning(last), p_V
        p_V = np.zeros_like(all_V)
        p_V[fits] = all_V[fits] / max(float(all_V[fits].sum()), 1e-300)
        unknown = 0.0 if p_V.any() else 1.0
    found = [
        FoundWord(tokenizer.piece(index), float(p_V[index]), (index,))
        for index in _most_likely(p_V, top if words is None else None)
    ]
    if words is not None:
        asked = set(words)
        found = [each for each in found if each.text in asked]
    part_of, ended = (last, "") if completes else ("", last)
    return FoundWords(tuple(found), end, unknown, part=part_of, ended=ended, read=ids)


def _most_likely(p_V: Floats, top: int | None) -> list[int]:
    """Return the ids of a probability above 0, the most likely first; ``top``: only this many."""
    count = len(p_V) if top is None else min(max(0, top), len(p_V))
    likely = np.argpartition(-p_V, count - 1)[:count] if 0 < count < len(p_V) else np.arange(count)
    order = likely[np.lexsort((likely, -p_V[likely]))]
    return [int(index) for index in order if p_V[index] > 0]
