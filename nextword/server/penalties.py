"""The limits that only OpenAI's API has: a bias, and penalties for what was generated before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nextword.decode.limits import Limit, Written
from nextword.models.distributions import Floats
from nextword.server.errors import ApiError
from nextword.server.schemas import Sampling


@dataclass(frozen=True)
class Bias:
    """Adds a number to log p of some tokens: -100 forbids one, 100 all others."""

    ids: tuple[int, ...]
    values: tuple[float, ...]

    def __call__(self, logp_BV: Floats, rows: Sequence[Written]) -> None:
        """Add it in every row."""
        logp_BV[:, list(self.ids)] += np.array(self.values)


@dataclass(frozen=True)
class Repetition:
    """Takes `presence` from log p of every token generated before, and `frequency` as often as it was."""

    presence: float
    frequency: float

    def __call__(self, logp_BV: Floats, rows: Sequence[Written]) -> None:
        """Take it from what each row has generated; the prompt does not count."""
        for logp_V, row in zip(logp_BV, rows, strict=True):
            if row.ids:
                words, counts = np.unique(np.asarray(row.ids, dtype=np.int64), return_counts=True)
                logp_V[words] -= self.presence + self.frequency * counts


def limits_for(asked: Sampling, vocab_size: int) -> tuple[Limit, ...]:
    """Return the limits of a request."""
    made: list[Limit] = []
    if asked.logit_bias:
        made.append(_bias(asked.logit_bias, vocab_size))
    if asked.presence_penalty or asked.frequency_penalty:
        made.append(Repetition(float(asked.presence_penalty), float(asked.frequency_penalty)))
    return tuple(made)


def _bias(given: Mapping[str, float], vocab_size: int) -> Bias:
    ids = tuple(map(int, given))
    if any(each >= vocab_size for each in ids):
        raise ApiError(
            422, f"an id is not in the vocabulary of {vocab_size:,} tokens", "invalid_token", "logit_bias"
        )
    return Bias(ids, tuple(map(float, given.values())))
