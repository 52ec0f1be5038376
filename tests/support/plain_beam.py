"""Beam search hypothesis by hypothesis: the plain twin of `nextword.decode.beam`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nextword.core.contracts import Array
from nextword.decode.choose import GeneratedToken, Prompt, Selection
from nextword.decode.limits import StopRule, Written
from nextword.decode.sampling import Ints
from nextword.decode.settings import DecodeSettings
from nextword.models.distributions import Floats, as_numpy


@dataclass(frozen=True)
class Hypothesis:
    """A text under way: its tokens, the model's log-probabilities of them, and the total of the search."""

    written: Written
    logprobs: tuple[float, ...] = ()
    total: float = 0.0  # under the limits; the sum of logprobs where no limit changes a value
    reason: str = ""

    def extend(self, word: int, logprob: float, gain: float) -> Hypothesis:
        """Append one token."""
        written = Written(self.written.prompt, [*self.written.ids, word])
        return Hypothesis(written, (*self.logprobs, logprob), self.total + gain)


@dataclass
class BeamState:
    """The beam of one prompt."""

    job: Prompt
    alive: list[Hypothesis]
    pool: list[tuple[float, Hypothesis]] = field(default_factory=list)  # best first


class PlainBeam:
    """Keep the K best; return the n best of the finished ones, best first, when the search is over."""

    def __init__(
        self, settings: DecodeSettings, jobs: Sequence[Prompt], stop: StopRule, tokenizer: object = None
    ) -> None:
        self.settings, self.stop = settings, stop
        self.searches = [BeamState(job, [Hypothesis(Written(job.prompt))]) for job in jobs]

    @staticmethod
    def texts(settings: DecodeSettings) -> int:
        """Return the n best."""
        return settings.n_best

    @staticmethod
    def width(settings: DecodeSettings) -> int:
        """Return the beam size: all texts of a prompt come from one search."""
        return settings.beam_size

    @property
    def rows(self) -> list[Written]:
        """The unfinished hypotheses of all prompts."""
        return [hypothesis.written for search in self.searches for hypothesis in search.alive]

    def choose(self, logp_RV: Array, allowed_RV: Array) -> Selection:
        """Extend the rows of each search by one token."""
        logp_RV, allowed_RV = as_numpy(logp_RV, np.float64), as_numpy(allowed_RV, np.float64)
        parents: list[int] = []
        words: list[int] = []
        tokens: list[GeneratedToken] = []
        going: list[BeamState] = []
        first = 0
        for search in self.searches:
            rows = slice(first, first + len(search.alive))
            kept, kept_words = self._advance(search, logp_RV[rows], allowed_RV[rows])
            if search.alive:
                parents += [first + row for row in kept]
                words += kept_words
                going.append(search)
            else:
                tokens += self._tokens(search)
            first = rows.stop
        self.searches = going
        return Selection(np.array(parents, dtype=np.int64), np.array(words, dtype=np.int64), tokens)

    def _advance(self, search: BeamState, logp_KV: Floats, allowed_KV: Floats) -> tuple[list[int], list[int]]:
        """Return the next beam: the rows its hypotheses come from, and their tokens."""
        size = self.settings.beam_size
        alive: list[Hypothesis] = []
        kept: list[int] = []
        words: list[int] = []
        for rank, (row, word) in enumerate(self._candidates(search, allowed_KV)):
            longer = search.alive[row].extend(word, float(logp_KV[row, word]), float(allowed_KV[row, word]))
            reason = self.stop(longer.written)
            if reason and rank < size:  # a worse one ends without having been among the K best
                search.pool.append((self._score(longer), replace(longer, reason=reason)))
            elif not reason and len(alive) < size:
                alive.append(longer)
                kept.append(row)
                words.append(word)
        search.pool.sort(key=lambda scored: -scored[0])
        search.alive = [] if self._is_over(search, alive) else alive
        return kept, words

    def _candidates(self, search: BeamState, allowed_KV: Floats) -> list[tuple[int, int]]:
        """Return (row, token) of the 2K best continuations, best first: enough even if K of them end."""
        count = min(2 * self.settings.beam_size, allowed_KV.shape[1])
        words_KC: Ints = np.argpartition(-allowed_KV, count - 1, axis=1)[:, :count]
        words_KC.sort(axis=1)  # ties are ordered by row and token
        totals_K1 = np.array([hypothesis.total for hypothesis in search.alive])[:, None]
        totals_KC = totals_K1 + np.take_along_axis(allowed_KV, words_KC, axis=1)
        best = np.argsort(-totals_KC, axis=None, kind="stable")[: 2 * self.settings.beam_size]
        best = best[np.isfinite(totals_KC.ravel()[best])]
        return [(int(place) // count, int(words_KC.ravel()[place])) for place in best]

    def _is_over(self, search: BeamState, alive: list[Hypothesis]) -> bool:
        """Tell whether no hypothesis is left, K are finished, or none can still reach the n best."""
        if not alive or len(search.pool) >= self.settings.patience * self.settings.beam_size:
            return True
        if len(search.pool) < self.settings.n_best:
            return False
        hope = max(hypothesis.total for hypothesis in alive) / self._norm(self.settings.max_tokens)
        return hope <= search.pool[self.settings.n_best - 1][0]  # more tokens never raise a total

    def _norm(self, length: int) -> float:
        return float(((5 + length) / 6) ** self.settings.length_penalty)

    def _score(self, hypothesis: Hypothesis) -> float:
        return hypothesis.total / self._norm(len(hypothesis.written.ids))

    def _tokens(self, search: BeamState) -> list[GeneratedToken]:
        found: list[GeneratedToken] = []
        for rank, (score, text) in enumerate(search.pool[: self.settings.n_best]):
            last = len(text.written.ids) - 1
            for place, (word, logprob) in enumerate(zip(text.written.ids, text.logprobs, strict=True)):
                reason = text.reason if place == last else ""
                own = score if place == last else None
                found.append(GeneratedToken(search.job.row + rank, word, logprob, reason=reason, score=own))
        return found
