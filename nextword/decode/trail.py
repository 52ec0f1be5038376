"""The way back through a beam search: which row each row comes from, and by which token.

Nothing is copied while the search goes on: a step notes the parent of each row, and a text is read off from
its end. What is noted is also the tree of the search [MAUSAM "Beam search"].
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, overload

import numpy as np

from nextword.decode.choose import Prompt
from nextword.decode.limits import Written
from nextword.decode.sampling import Bools, Ints
from nextword.models.distributions import Floats


class Step(NamedTuple):
    """One step: for each row the row before it, the token between them, and its log p by the model."""

    parents_R: Ints
    words_R: Ints
    logps_R: Floats


class Finished(NamedTuple):
    """A finished text: its score, the row of a step that it continues, and its last token."""

    score: float
    step: int  # how many tokens come before the last
    parent: int
    word: int
    logp: float


@dataclass
class Pool:
    """The finished texts of one search, best first; equal ones in the order in which they came."""

    wanted: int
    texts: list[Finished] = field(default_factory=list)

    def add(self, text: Finished) -> None:
        """Take a text."""
        insort(self.texts, text, key=lambda each: -each.score)

    @property
    def worst(self) -> float:
        """The score of the last text that is wanted; -inf while there are fewer."""
        return self.texts[self.wanted - 1].score if len(self.texts) >= self.wanted else -np.inf


class Candidates(NamedTuple):
    """Continuations of the hypotheses of each prompt, best first."""

    parents_PC: Ints
    words_PC: Ints
    totals_PC: Floats
    ended_PC: Bools

    def finished(self, width: int) -> tuple[Ints, Ints]:
        """Return prompt and rank of those that end among the best; a worse one was never in the beam."""
        best_PC = self.ended_PC[:, :width] & np.isfinite(self.totals_PC[:, :width])
        prompts_F, ranks_F = np.nonzero(best_PC)
        return prompts_F, ranks_F

    def going(self, width: int) -> tuple[Ints, Ints, Floats]:
        """Return parents, tokens and totals of the best that go on; -inf where there are fewer."""
        totals_PC = np.where(self.ended_PC, -np.inf, self.totals_PC)
        order_PW = np.argsort(np.isneginf(totals_PC), axis=1, kind="stable")[:, :width]
        short = width - order_PW.shape[1]
        parts = (np.take_along_axis(part, order_PW, 1) for part in (*self[:2], totals_PC))
        parents_PW, words_PW, totals_PW = (np.pad(part, ((0, 0), (0, short))) for part in parts)
        totals_PW[:, width - short :] = -np.inf
        return parents_PW, words_PW, totals_PW


class Trail:
    """All steps of a search so far."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def add(self, parents_R: Ints, words_R: Ints, logps_R: Floats) -> None:
        """Note a step."""
        self.steps.append(Step(parents_R, words_R, logps_R))

    def back(self, text: Finished) -> tuple[list[int], list[float]]:
        """Return the tokens of a finished text and their log p."""
        ids, logps, row = [text.word], [text.logp], text.parent
        for step in reversed(self.steps[: text.step]):
            ids.append(int(step.words_R[row]))
            logps.append(float(step.logps_R[row]))
            row = int(step.parents_R[row])
        return ids[::-1], logps[::-1]

    def ids(self, rows: int) -> Ints:
        """Return ``ids_RT``: what every present row has written."""
        ids_TR: Ints = np.zeros((len(self.steps), rows), dtype=np.int64)
        at_R: Ints = np.arange(rows)
        for place in reversed(range(len(self.steps))):
            step = self.steps[place]
            ids_TR[place], at_R = step.words_R[at_R], step.parents_R[at_R]
        return ids_TR.T

    def written(self, jobs: Sequence[Prompt]) -> Sequence[Written]:
        """Return what every present row has written; ``jobs``: the prompt of each."""
        return _Rows(self, jobs)


class _Rows(Sequence[Written]):
    """The rows of a trail, read off only when one is looked at."""

    def __init__(self, trail: Trail, jobs: Sequence[Prompt]) -> None:
        self.trail, self.jobs = trail, jobs

    @cached_property
    def _all(self) -> list[Written]:
        ids = self.trail.ids(len(self.jobs)).tolist()
        return [Written(job.prompt, row, job.source) for job, row in zip(self.jobs, ids, strict=True)]

    def __len__(self) -> int:
        return len(self.jobs)

    @overload
    def __getitem__(self, place: int) -> Written: ...
    @overload
    def __getitem__(self, place: slice) -> list[Written]: ...
    def __getitem__(self, place: int | slice) -> Written | list[Written]:
        return self._all[place]

    def __iter__(self) -> Iterator[Written]:
        return iter(self._all)
