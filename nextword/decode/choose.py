"""Greedy choice and sampling: one hypothesis a row. Beam search is in beam.py, in the same shape.

Greedy takes the likeliest word and never looks back, which is its named fault [MAUSAM "Greedy decoding"];
sampling draws it. A way to choose sees the distributions of its rows and says which go on with which word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from nextword.decode.limits import StopRule, Written
from nextword.decode.sampling import Ints, draw, shape, uniform
from nextword.decode.settings import DecodeSettings
from nextword.models.distributions import Floats


@dataclass(frozen=True)
class Token:
    """One word as it comes. The last of a row has a reason: ``end``, ``length`` or ``stop``."""

    row: int
    id: int
    logprob: float  # log p by the model itself, before temperature and limits
    text: str = ""  # what can be shown now, where the tokenizer was given
    reason: str = ""


@dataclass(frozen=True)
class Job:
    """One prompt to continue; its texts are numbered from `row`."""

    row: int
    prompt: tuple[int, ...] = ()


@dataclass(frozen=True)
class Choice:
    """Which rows go on (`parents`), each with which word, and the tokens that are settled."""

    parents: Ints
    ids: Ints
    tokens: list[Token] = field(default_factory=list)


class Chooser(Protocol):
    """The slot "decode": a way to choose the next words of some rows."""

    def __init__(self, settings: DecodeSettings, jobs: Sequence[Job], stop: StopRule) -> None: ...

    @staticmethod
    def texts(settings: DecodeSettings) -> int:
        """How many texts come out for each prompt."""
        ...

    @staticmethod
    def split(settings: DecodeSettings) -> bool:
        """Whether each text of a prompt is a job of its own."""
        ...

    @property
    def rows(self) -> Sequence[Written]:
        """What the rows have written, in the order of the distributions."""
        ...

    def choose(self, logp_RV: Floats, allowed_RV: Floats) -> Choice:
        """From the model's distributions, and the same under the limits, to words."""
        ...


class Greedy:
    """The likeliest word, always."""

    def __init__(self, settings: DecodeSettings, jobs: Sequence[Job], stop: StopRule) -> None:
        self.settings, self.jobs, self.stop = settings, list(jobs), stop
        self.rows = [Written(job.prompt) for job in jobs]

    @staticmethod
    def texts(settings: DecodeSettings) -> int:
        """One: there is only one likeliest word."""
        return 1

    @staticmethod
    def split(settings: DecodeSettings) -> bool:
        """A row a text."""
        return True

    def pick(self, allowed_RV: Floats) -> Ints:
        """One word a row."""
        words_R: Ints = np.argmax(allowed_RV, axis=-1)
        return words_R

    def choose(self, logp_RV: Floats, allowed_RV: Floats) -> Choice:
        """Every row goes on until a rule stops it."""
        words, tokens, going = self.pick(allowed_RV), [], []
        for place, (job, written, word) in enumerate(zip(self.jobs, self.rows, words, strict=True)):
            written.ids.append(int(word))
            reason = self.stop(written)
            tokens.append(Token(job.row, int(word), float(logp_RV[place, word]), reason=reason))
            if not reason:
                going.append(place)
        self.jobs, self.rows = [self.jobs[i] for i in going], [self.rows[i] for i in going]
        parents = np.array(going, dtype=np.int64)
        return Choice(parents, words[parents], tokens)


class Sample(Greedy):
    """A word drawn from the distribution; text i of a seed is the same in every batch."""

    @staticmethod
    def texts(settings: DecodeSettings) -> int:
        """As many as asked for."""
        return settings.samples

    def pick(self, allowed_RV: Floats) -> Ints:
        """Each row draws with its own number: of the seed, its text and its place."""
        seed = self.settings.seed or 0
        pairs = zip(self.jobs, self.rows, strict=True)
        numbers = [uniform(seed, job.row, len(row.ids)) for job, row in pairs]
        return draw(shape(allowed_RV, self.settings), numbers)
