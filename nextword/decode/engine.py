"""Continuous batching: requests enter a running batch and leave it between two steps.

One engine runs one model. A step reads a piece of the prompts that are new, then chooses one token in every
running row and reads it; a finished text is delivered at once, so that no request waits for the longest of
a batch (Yu et al. 2022, "Orca"). Entering and leaving copy what all rows have read, so several rows do it
together: a few steps of one row cost less. Which requests share the batch does not change what each gets:
its random numbers follow from its own seed, its prompt is cut into pieces at the same places, and the rows of
a model do not see each other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from nextword.core.contracts import END, LanguageModel, Preparable, State, Tokenizer
from nextword.core.errors import NextwordError
from nextword.decode.limits import Written
from nextword.decode.positions import Alternatives, Found, best_of, reading, score_positions
from nextword.decode.requests import Request, Row, Scored, Way, choose
from nextword.decode.sampling import Ints, draw_added
from nextword.models.distributions import as_numpy, without_nan

ROWS = 64  # rows that are stepped together
WAITING = 256  # requests that wait for rows
CHUNK = 1024  # prompt tokens that are read between two steps, over all rows
PIECE = 128  # and of each row; a prompt is cut at the same places whoever else is there
SHARE = 8  # new requests enter a batch together: an eighth of its rows, or
PATIENCE = 8  # after this many steps whatever there is
DEAD = 8  # rows that have ended stay until new ones enter, or until they are an eighth

_UNSCORED: tuple[float, Alternatives] = (0.0, ())  # a token whose score nobody asks for
Compute = Callable[[Ints, State], tuple[Any, State]]  # places of rows and their state -> logp_RV, new state


class Full(Exception):  # noqa: N818 - a state of the engine, not an error of the request
    """The queue is full: try again later."""


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
        piece: int = PIECE,
    ) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.size, self.most_waiting, self.chunk, self.piece = rows, waiting, chunk, piece
        self.waiting: deque[Request] = deque()
        self._prompts: list[_Prompt] = []
        self._read_state: State = None  # of the prompts
        self._rows: list[Row] = []
        self._state: State = None  # of the rows
        self._logp_RV: npt.NDArray[Any] = np.zeros((0, model.vocab_size))  # what comes next in each row
        self._ways: dict[Request, Way] = {}
        self._waited = 0  # steps since requests entered
        self._began: State = None  # of one row that has read nothing yet
        self._advance = reading(model)
        if isinstance(model, Preparable):
            model.ready()
            draw_added(np.zeros((1, 1), dtype=np.float32), np.zeros(1), [0.0])  # compiled before it is needed

    @property
    def running(self) -> int:
        """Return how many rows are taken by prompts being read and texts being continued."""
        return sum(prompt.request.needed for prompt in self._prompts) + len(self._going)

    @property
    def is_idle(self) -> bool:
        """Tell whether there is nothing to do."""
        return not (self.waiting or self._prompts or self._rows)

    @property
    def _going(self) -> list[int]:
        """Return the places of the rows that go on."""
        return [place for place, row in enumerate(self._rows) if not row.reason]

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
        """Forget the requests that have left; another thread may say so at any moment."""
        if any(request.has_left for request in self.waiting):
            self.waiting = deque(request for request in self.waiting if not request.has_left)
        self._keep_prompts([i for i, each in enumerate(self._prompts) if not each.request.has_left])
        if gone := {request for request in self._ways if request.has_left}:
            self._keep_rows([i for i in self._going if self._rows[i].request not in gone])
            self._ways = {request: way for request, way in self._ways.items() if request not in gone}

    def _let_in(self) -> None:
        """Move requests from the queue to the prompts, in their order, while there are rows and a step can
        read a piece of each."""
        new: list[_Prompt] = []
        running = self.running
        self._waited += 1
        if not self.waiting or (len(self.waiting) < running // SHARE and self._waited < PATIENCE):
            return
        free, pieces = self.size - running, sum(min(each.left, self.piece) for each in self._prompts)
        while self.waiting and self.waiting[0].needed <= free:
            pieces += min(len(self.waiting[0].prompt), self.piece)
            if pieces > self.chunk and (new or self._prompts):
                break
            new.append(_Prompt(self.waiting.popleft()))
            free -= new[-1].request.needed
        if new:
            self._waited = 0
            if self._began is None:
                self._began = self.model.start(1)
            self._read_state = self._join(self._read_state, self._take(self._began, [0] * len(new)))
            self._prompts += new

    def _keep_prompts(self, kept: Sequence[int]) -> None:
        if len(kept) < len(self._prompts):
            self._prompts = [self._prompts[i] for i in kept]
            self._read_state = self._take(self._read_state, kept)

    def _keep_rows(self, kept: Sequence[int]) -> None:
        if len(kept) < len(self._rows):
            self._rows, self._logp_RV = [self._rows[i] for i in kept], self._logp_RV[kept]
            self._state = self._take(self._state, kept)

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
        if T := min(self.piece, max(each.left for each in self._prompts)):
            self._read_piece(T, progress)
        read = [i for i, each in enumerate(self._prompts) if not each.left]
        self._start_rows([i for i in read if self._prompts[i].request.settings is not None], progress)
        for request in [self._prompts[i].request for i in read]:
            if request.settings is None:
                request.is_done = True
                progress.done.append(request)
        self._keep_prompts([i for i, each in enumerate(self._prompts) if each.left])

    def _read_piece(self, T: int, progress: Progress) -> None:
        """Read up to T tokens of every prompt at once."""
        lengths_B = np.array([min(T, each.left) for each in self._prompts], dtype=np.int64)
        ids_BT = np.zeros((len(self._prompts), T), dtype=np.int64)
        for ids_T, each, length in zip(ids_BT, self._prompts, lengths_B, strict=True):
            ids_T[:length] = each.request.prompt[each.at : each.at + length]
        scored = [each.request.scored for each in self._prompts]
        tops = [each.request.top if each.request.scored else 0 for each in self._prompts]

        def score(rows: slice, state: State) -> tuple[list[Found], State]:
            if any(scored[rows]):
                return score_positions(self.model, ids_BT[rows], lengths_B[rows], state, tops[rows])
            state = self._advance(ids_BT[rows], lengths_B[rows], state)
            return [[_UNSCORED] * length for length in lengths_B[rows].tolist()], state

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
            self._keep_rows(self._going)
            self._state = self._join(self._state, state)
            self._logp_RV = np.concatenate([self._logp_RV, logp_RV]) if self._rows else logp_RV
            self._rows += new

    def _next(self, places_R: Ints, state: State) -> tuple[Any, State]:
        return self.model.next(state), state

    # -- continuing texts ---------------------------------------------------------------------

    def _continue(self, progress: Progress) -> None:
        """Choose a token in every row that goes on, and read it; rows that end then need not be read."""
        going = self._going
        if not going:
            self._keep_rows([])
            return
        rows = [self._rows[place] for place in going]
        logp_RV = self._logp_RV if len(rows) == len(self._rows) else self._logp_RV[going]
        words_R = self._choose(rows, logp_RV)
        progress.rows += rows
        for request in dict.fromkeys(row.request for row in rows if row.reason):
            if all(row.reason for row in request.rows):
                request.is_done = True
                progress.done.append(request)
                del self._ways[request]
        words_A: Ints = np.full(len(self._rows), END)  # what is read in rows that have ended does not matter
        words_A[going] = words_R
        going = self._going
        if len(self._rows) - len(going) >= max(1, len(self._rows) // DEAD):
            self._keep_rows(going)
            words_A = words_A[going]
        if going:
            found = self._compute(
                lambda places_R, state: self.model.step(words_A[places_R], state),
                self._state,
                self._rows,
                progress,
            )
            self._logp_RV, self._state, self._rows = found

    def _choose(self, rows: Sequence[Row], logp_RV: npt.NDArray[Any]) -> Ints:
        """Choose a token in every row, and note it with its score and whether it is the last."""
        ways = [self._ways[row.request] for row in rows]
        words_R = choose(ways, rows, logp_RV)
        tops = best_of(logp_RV, [row.request.top for row in rows])
        logp_R = logp_RV[np.arange(len(words_R)), words_R].tolist()
        for row, way, word, logp, top in zip(rows, ways, words_R.tolist(), logp_R, tops, strict=True):
            ids = row.written.ids
            ids.append(word)
            row.tokens.append(Scored(word, logp, top))
            if way.may_stop(word, len(ids)):
                row.reason = way.stop(row.written)
        return words_R

    def _compute(
        self, compute: Compute, state: State, rows: list[Row], progress: Progress
    ) -> tuple[npt.NDArray[Any], State, list[Row]]:
        """Compute what comes next in rows; after an error row by row, so that only its request fails."""
        try:
            logp_RV, after = compute(np.arange(len(rows)), state)
            return without_nan(as_numpy(logp_RV)), after, rows
        except NextwordError:
            pass
        found, states, kept = [], [], []
        for place, row in enumerate(rows):
            if row.reason:
                continue
            try:
                logp_1V, after = compute(np.array([place]), self._take(state, [place]))
                found.append(without_nan(as_numpy(logp_1V)))
            except NextwordError as error:
                self._fail(row.request, error, progress)
                continue
            states.append(after)
            kept.append(row)
        if not kept:
            return self._logp_RV[:0], None, []
        return np.concatenate(found), self.model.join(states), kept
