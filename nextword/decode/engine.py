"""Continuous batching: requests enter a running batch and leave it between two steps.

One engine runs one model. A step reads a piece of the prompts that are new, then chooses one token in every
running row and reads it; a finished row leaves at once, so that no request waits for the longest of a batch
(Yu et al. 2022, "Orca"). Which requests share the batch does not change what each gets: its random numbers
follow from its own seed, and the rows of a model do not see each other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from nextword.core.contracts import LanguageModel, Preparable, State, Tokenizer
from nextword.core.errors import NextwordError
from nextword.decode.limits import Limit, Written, limits_of, stops_of
from nextword.decode.positions import Alternatives, Found, best_of, score_positions
from nextword.decode.sampling import Ints, draw, shape, uniforms
from nextword.decode.settings import DecodeSettings
from nextword.models.distributions import Floats, as_numpy, without_nan

ROWS = 64  # rows that are stepped together
WAITING = 256  # requests that wait for rows
CHUNK = 1024  # prompt tokens that are read between two steps, over all rows
SHORTEST = 16  # and of each row at least
AHEAD = 64  # random numbers of a row that are drawn at a time

Compute = Callable[[Ints, State], tuple[Any, State]]  # places of rows and their state -> logp_RV, new state


class Full(Exception):  # noqa: N818 - a state of the engine, not an error of the request
    """The queue is full: try again later."""


class Scored(NamedTuple):
    """A token, its log-probability by the model, and the most likely tokens at its place if asked for."""

    id: int
    logprob: float
    top: Alternatives = ()


@dataclass(eq=False)
class Row:
    """One text of a request: its tokens so far, and why it ended (``end``, ``length`` or ``stop``)."""

    request: Request
    sample: int
    written: Written
    tokens: list[Scored] = field(default_factory=list)
    reason: str = ""
    _numbers: list[float] = field(default_factory=list)

    def number(self, seed: int) -> float:
        """Return the random number for the next token: it follows from seed, text and position alone."""
        at = len(self.written.ids)
        if at >= len(self._numbers):
            self._numbers += uniforms(seed, self.sample, len(self._numbers), AHEAD)
        return self._numbers[at]


@dataclass(eq=False)
class Request:
    """A prompt to read and to continue; what comes out is collected here, step by step."""

    prompt: tuple[int, ...]  # without START, which every text begins with
    settings: DecodeSettings | None = None  # None: the prompt is read and nothing generated
    texts: int = 1  # how many continuations
    scored: bool = False  # whether the prompt's tokens are scored too
    top: int = 0  # this many alternatives for every token
    limits: tuple[Limit, ...] = ()  # beside those of the settings
    read: list[Scored] = field(default_factory=list)  # the prompt's tokens, where they are scored
    rows: list[Row] = field(default_factory=list)
    error: NextwordError | None = None  # why it failed; the others go on
    is_done: bool = False
    has_left: bool = False

    @property
    def needed(self) -> int:
        """Return how many rows of the batch it takes."""
        return 1 if self.settings is None else self.texts


@dataclass
class Progress:
    """What a step did: the rows that got a token (their last), and the requests that are done."""

    rows: list[Row] = field(default_factory=list)
    done: list[Request] = field(default_factory=list)


@dataclass(eq=False)
class _Prompt:
    """A prompt that is being read, and how many of its tokens have been."""

    request: Request
    at: int = 0

    @property
    def left(self) -> int:
        return len(self.request.prompt) - self.at


class Engine:
    """A model, the prompts being read and the texts being continued. One thread calls it."""

    def __init__(
        self,
        model: LanguageModel,
        tokenizer: Tokenizer | None = None,
        rows: int = ROWS,
        waiting: int = WAITING,
        chunk: int = CHUNK,
    ) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.size, self.most_waiting, self.chunk = rows, waiting, chunk
        self.waiting: deque[Request] = deque()
        self._prompts: list[_Prompt] = []
        self._read_state: State = None  # of the prompts
        self._rows: list[Row] = []
        self._state: State = None  # of the rows
        self._logp_RV: Floats = np.zeros((0, model.vocab_size))  # what comes next in each row
        self._ways: dict[Request, Way] = {}
        if isinstance(model, Preparable):
            model.ready()

    @property
    def running(self) -> int:
        """Return how many rows are taken by prompts being read and texts being continued."""
        return sum(prompt.request.needed for prompt in self._prompts) + len(self._rows)

    @property
    def is_idle(self) -> bool:
        """Tell whether there is nothing to do."""
        return not (self.waiting or self._prompts or self._rows)

    def admit(self, request: Request) -> None:
        """Queue a request; it enters the batch when there are rows for it. Raise `Full` at the limit."""
        if request.needed > self.size:
            raise ValueError(f"a request for {request.needed} texts needs more than {self.size} rows")
        if len(self.waiting) >= self.most_waiting:
            raise Full
        self.waiting.append(request)

    def leave(self, request: Request) -> None:
        """Take a request out, wherever it is: its rows are free before the next step."""
        request.has_left = True

    def step(self) -> Progress:
        """Read a piece of the new prompts, then choose and read a token in every row."""
        progress = Progress()
        self._drop()
        self._let_in()
        self._read(progress)
        self._continue(progress)
        return progress

    # -- entering and leaving -----------------------------------------------------------------

    def _drop(self) -> None:
        """Forget the requests that have left."""
        if any(request.has_left for request in self.waiting):
            self.waiting = deque(request for request in self.waiting if not request.has_left)
        self._keep_prompts([i for i, each in enumerate(self._prompts) if not each.request.has_left])
        going = [i for i, row in enumerate(self._rows) if not row.request.has_left]
        if len(going) < len(self._rows):
            self._rows, self._logp_RV = [self._rows[i] for i in going], self._logp_RV[going]
            self._state = self._take(self._state, going)
            self._ways = {request: way for request, way in self._ways.items() if not request.has_left}

    def _let_in(self) -> None:
        """Move requests from the queue to the prompts, in their order, while there are rows."""
        new: list[_Prompt] = []
        free = self.size - self.running
        while self.waiting and self.waiting[0].needed <= free:
            new.append(_Prompt(self.waiting.popleft()))
            free -= new[-1].request.needed
        if new:
            self._read_state = self._join(self._read_state, self.model.start(len(new)))
            self._prompts += new

    def _keep_prompts(self, kept: Sequence[int]) -> None:
        if len(kept) < len(self._prompts):
            self._prompts = [self._prompts[i] for i in kept]
            self._read_state = self._take(self._read_state, kept)

    def _take(self, state: State, rows: Iterable[int]) -> State:
        rows_B = np.fromiter(rows, dtype=np.int64)
        return self.model.reorder(state, rows_B) if len(rows_B) else None

    def _join(self, first: State, second: State) -> State:
        return second if first is None else self.model.join([first, second])

    def _fail(self, request: Request, error: NextwordError, progress: Progress) -> None:
        """End one request with an error."""
        if not request.is_done:
            request.error, request.is_done, request.has_left = error, True, True
            progress.done.append(request)

    # -- reading prompts ----------------------------------------------------------------------

    def _read(self, progress: Progress) -> None:
        """Read the next piece of every prompt; those that are read become rows, or are done."""
        if not self._prompts:
            return
        longest = max(each.left for each in self._prompts)
        if T := min(max(self.chunk // len(self._prompts), SHORTEST), longest):
            self._read_piece(T, progress)
        read = [i for i, each in enumerate(self._prompts) if not each.left]
        self._start_rows([i for i in read if self._prompts[i].request.settings is not None], progress)
        for request in [self._prompts[i].request for i in read]:
            if request.settings is None:
                request.is_done = True
                progress.done.append(request)
        self._keep_prompts([i for i, each in enumerate(self._prompts) if each.left])

    def _read_piece(self, T: int, progress: Progress) -> None:
        """Read up to T tokens of every prompt with one parallel `score`."""
        lengths_B = np.array([min(T, each.left) for each in self._prompts], dtype=np.int64)
        ids_BT = np.zeros((len(self._prompts), T), dtype=np.int64)
        for ids_T, each, length in zip(ids_BT, self._prompts, lengths_B, strict=True):
            ids_T[:length] = each.request.prompt[each.at : each.at + length]
        tops = [each.request.top if each.request.scored else 0 for each in self._prompts]

        def score(rows: slice, state: State) -> tuple[list[Found], State]:
            return score_positions(self.model, ids_BT[rows], lengths_B[rows], state, tops[rows])

        try:
            found, self._read_state = score(slice(None), self._read_state)
        except NextwordError:  # row by row, so that only the request that caused it fails
            found, states, kept = [], list[State](), list[_Prompt]()
            for row, each in enumerate(self._prompts):
                try:
                    one, state = score(slice(row, row + 1), self._take(self._read_state, [row]))
                except NextwordError as error:
                    self._fail(each.request, error, progress)
                    continue
                found, states, kept = found + one, [*states, state], [*kept, each]
            self._prompts, self._read_state = kept, self.model.join(states) if states else None
        for each, scores in zip(self._prompts, found, strict=True):
            ids = each.request.prompt[each.at : each.at + len(scores)]
            if each.request.scored:
                each.request.read += [Scored(i, p, top) for i, (p, top) in zip(ids, scores, strict=True)]
            each.at += len(ids)

    def _start_rows(self, places: Sequence[int], progress: Progress) -> None:
        """Make rows of prompts that are read, as many of each as it has texts."""
        new: list[Row] = []
        for place in places:
            request = self._prompts[place].request
            try:
                self._ways[request] = Way(request, self.tokenizer)
            except NextwordError as error:
                self._fail(request, error, progress)
                continue
            request.rows = [Row(request, i, Written(request.prompt)) for i in range(request.texts)]
            new += request.rows
        if new:
            where = {self._prompts[place].request: place for place in places}
            state = self._take(self._read_state, [where[row.request] for row in new])
            logp_RV, state, new = self._compute(self._next, state, new, progress)
        if new:
            self._state = self._join(self._state, state)
            self._logp_RV = np.concatenate([self._logp_RV, logp_RV])
            self._rows += new

    def _next(self, places_R: Ints, state: State) -> tuple[Any, State]:
        return self.model.next(state), state

    # -- continuing texts ---------------------------------------------------------------------

    def _continue(self, progress: Progress) -> None:
        """Choose a token in every row, let the rows that end leave, and read the tokens of the others."""
        if not self._rows:
            return
        words_R = choose([self._ways[row.request] for row in self._rows], self._rows, self._logp_RV)
        tops = best_of(self._logp_RV, [row.request.top for row in self._rows])
        logp_R = self._logp_RV[np.arange(len(words_R)), words_R].tolist()
        for row, word, logp, top in zip(self._rows, words_R.tolist(), logp_R, tops, strict=True):
            row.written.ids.append(word)
            row.tokens.append(Scored(word, logp, top))
            row.reason = self._ways[row.request].stop(row.written)
        progress.rows += self._rows
        going = [place for place, row in enumerate(self._rows) if not row.reason]
        if len(going) < len(self._rows):
            for request in dict.fromkeys(row.request for row in self._rows if row.reason):
                if all(row.reason for row in request.rows):
                    request.is_done = True
                    progress.done.append(request)
                    del self._ways[request]
            self._state = self._take(self._state, going)
        rows, words_R = [self._rows[i] for i in going], words_R[going]
        if rows:
            self._logp_RV, self._state, self._rows = self._compute(
                lambda places_R, state: self.model.step(words_R[places_R], state), self._state, rows, progress
            )
        else:
            self._rows, self._logp_RV = [], self._logp_RV[:0]

    def _compute(
        self, compute: Compute, state: State, rows: list[Row], progress: Progress
    ) -> tuple[Floats, State, list[Row]]:
        """Compute what comes next in rows; after an error row by row, so that only its request fails."""
        try:
            logp_RV, after = compute(np.arange(len(rows)), state)
            return without_nan(as_numpy(logp_RV, np.float64)), after, rows
        except NextwordError:
            pass
        found, states, kept = [], [], []
        for place, row in enumerate(rows):
            try:
                logp_1V, after = compute(np.array([place]), self._take(state, [place]))
                found.append(without_nan(as_numpy(logp_1V, np.float64)))
            except NextwordError as error:
                self._fail(row.request, error, progress)
                continue
            states.append(after)
            kept.append(row)
        if not kept:
            return self._logp_RV[:0], None, []
        return np.concatenate(found), self.model.join(states), kept


# Settings that say when to stop and what is forbidden, not how the distribution is reshaped.
_NOT_OF_SHAPE = {
    "decode",
    "max_tokens",
    "min_tokens",
    "stop",
    "ban",
    "no_repeat",
    "unknown",
    "repetition_penalty",
}
_NOT_OF_SHAPE |= {"seed", "samples", "beam_size", "length_penalty", "n_best", "batch"}
_PLAIN = DecodeSettings().model_dump(exclude=_NOT_OF_SHAPE)


class Way:
    """How the rows of a request choose and when they stop; requests of the same way choose together."""

    def __init__(self, request: Request, tokenizer: Tokenizer | None) -> None:
        settings = request.settings or DecodeSettings()
        self.settings = settings
        self.is_greedy = settings.decode == "greedy" or settings.temperature == 0
        asked = settings.model_dump(exclude=_NOT_OF_SHAPE)
        self.is_plain = asked == _PLAIN  # drawn from the model's own distribution
        self.limits, self.stop = limits_of(settings, tokenizer), stops_of(settings, tokenizer)
        self.own = request.limits
        shared = settings.model_copy(update={"seed": 0, "stop": (), "max_tokens": 1_000_000})
        self.key = shared.model_dump_json()


def choose(ways: Sequence[Way], rows: Sequence[Row], logp_RV: Floats) -> Ints:
    """Choose a token in every row: the most likely one, or one drawn with the row's own random number."""
    groups: dict[str, list[int]] = {}
    for place, way in enumerate(ways):
        groups.setdefault(way.key, []).append(place)
    words_R: Ints = np.zeros(len(rows), dtype=np.int64)
    for places in groups.values():
        way = ways[places[0]]
        allowed_GV = logp_RV[places]
        for place, allowed_V in zip(places, allowed_GV, strict=True):
            for limit in ways[place].own:
                limit(allowed_V[None], [rows[place].written])
        way.limits(allowed_GV, [rows[place].written for place in places])
        if way.is_greedy:
            words_R[places] = np.argmax(allowed_GV, axis=-1)
            continue
        numbers = [rows[i].number(ways[i].settings.seed or 0) for i in places]
        words_R[places] = draw(allowed_GV if way.is_plain else shape(allowed_GV, way.settings), numbers)
    return words_R
