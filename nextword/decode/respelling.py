"""The end of a prompt, spelled again in every way: " the" may be the beginning of one token, or of several.

A prompt that ends inside a word was cut where its tokens need not end. So its end is taken back, and all
tokens are tried that spell it and then reach beyond it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from nextword.core.contracts import LanguageModel, State
from nextword.decode.spelling import Ints, Pieces, Spelling
from nextword.models.distributions import Floats, as_numpy

_MOST = 128  # ways that are followed
_UNLIKELY = 1e-6  # a way with less than this share of what was found is left


class Way(NamedTuple):
    """The first tokens of a way to spell it: their probability, what they leave, their row of the state."""

    mass: float
    owed: bytes
    spelling: Spelling
    row: int
    ids: tuple[int, ...]


class First(NamedTuple):
    """The tokens that reach beyond the end of the prompt in one way, and their probabilities."""

    before: Way
    state: State
    tokens_N: Ints
    mass_N: Floats


def spell_again(model: LanguageModel, pieces: Pieces, state: State, owed: bytes) -> tuple[list[First], float]:
    """Spell the end of a prompt, one more token of all ways at a time; also return the probability left."""
    found: list[First] = []
    left, tried, total = 0.0, 0, 0.0
    ways, p_BV = [Way(1.0, owed, Spelling(), 0, ())], probabilities(model.next(state))
    while ways:
        longer: list[tuple[Way, int, float]] = []
        for way in ways:
            mass_V, tokens_N = way.mass * p_BV[way.row], pieces.extensions(way.owed)
            found.append(First(way, state, tokens_N, mass_V[tokens_N]))
            longer += [(way, token, float(mass_V[token])) for token in pieces.beginnings(way.owed)]
        tried, total = tried + len(ways), math.fsum(float(each.mass_N.sum()) for each in found)
        longer.sort(key=lambda each: -each[2])
        kept = [each for each in longer[: _MOST - tried] if each[2] > _UNLIKELY * total]
        left += math.fsum(mass for _, _, mass in longer[len(kept) :])
        if not kept:
            break
        state = model.reorder(state, np.array([way.row for way, _, _ in kept]))
        logp_BV, state = model.step(np.array([token for _, token, _ in kept]), state)
        p_BV = probabilities(logp_BV)
        ways = [
            Way(
                mass, way.owed.removeprefix(pieces.data[token]), pieces.read(way.spelling, token),
                row, (*way.ids, token),
            )
            for row, (way, token, mass) in enumerate(kept)
        ]  # fmt: skip
    return found, left


def probabilities(logp_BV: Any) -> Floats:
    """Return ``p_BV`` as an array."""
    p_BV: Floats = np.exp(as_numpy(logp_BV, np.float64))
    return p_BV
