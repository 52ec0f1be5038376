"""What the engine works on: requests, the rows of their texts, and how each of them chooses its tokens.

Requests of equal settings choose together, all rows at once; each row has random numbers of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from sys import intern
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nextword.core.contracts import END, Tokenizer
from nextword.core.errors import NextwordError
from nextword.decode.limits import Written, limits_of, stops_of
from nextword.decode.positions import Alternatives
from nextword.decode.sampling import Ints, draw, draw_added, shape, uniforms
from nextword.decode.settings import DecodeSettings
from nextword.models.distributions import Floats

AHEAD = 64  # random numbers of a row that are drawn at a time


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
    read: list[Scored] = field(default_factory=list)  # the prompt's tokens, where they are scored
    rows: list[Row] = field(default_factory=list)
    error: NextwordError | None = None  # why it failed; the others go on
    is_done: bool = False
    has_left: bool = False

    @property
    def needed(self) -> int:
        """Return how many rows of the batch it takes."""
        return 1 if self.settings is None else self.texts


# What every request has of its own, or what does not concern a text that is drawn token by token.
_OWN = {"seed", "stop", "max_tokens", "samples", "batch", "tree"}
_SHARED = [name for name in DecodeSettings.model_fields if name not in _OWN]
_SHAPE = ("temperature", "top_k", "top_p", "min_p", "typical")
_PLAIN = tuple(getattr(DecodeSettings(), name) for name in _SHAPE)


class Way:
    """How the rows of a request choose and when they stop; requests of the same way choose together."""

    def __init__(self, request: Request, tokenizer: Tokenizer | None) -> None:
        settings = request.settings or DecodeSettings()
        self.settings, self.seed = settings, settings.seed or 0
        self.is_greedy = settings.decode == "greedy" or settings.temperature == 0
        # Drawn from the model's own distribution, if nothing reshapes it.
        self.is_plain = tuple(getattr(settings, name) for name in _SHAPE) == _PLAIN
        self.limits = limits_of(settings, tokenizer, normalizes=False)
        self.stop = stops_of(settings, tokenizer)
        self.most, self.has_texts = settings.max_tokens, bool(settings.stop)
        values = (getattr(settings, name) for name in _SHARED)
        self.key = intern(repr(tuple(values)))  # compared at every token, and a text keeps its hash
        self._added: tuple[int, Floats | None] | None = None

    def added(self, V: int) -> Floats | None:
        """Return what is added to log p before a token is drawn from it; None: more than that is done."""
        if self._added is None or self._added[0] != V:
            is_drawn = self.is_plain and not self.is_greedy
            self._added = V, self.limits.added(V) if is_drawn else None
        return self._added[1]

    def may_stop(self, word: int, count: int) -> bool:
        """Tell whether a rule can stop a row here: most tokens are none's concern, and rules take time."""
        return word == END or count >= self.most or self.has_texts


def choose(ways: Sequence[Way], rows: Sequence[Row], logp_RV: npt.NDArray[Any]) -> Ints:
    """Choose a token in every row: the most likely one, or one drawn with the row's own random number."""
    groups: dict[str, list[int]] = {}
    for place, way in enumerate(ways):
        groups.setdefault(way.key, []).append(place)
    words_R: Ints = np.zeros(len(rows), dtype=np.int64)
    for places in groups.values():
        way = ways[places[0]]
        if logp_RV.dtype == np.float32 and (added_V := way.added(logp_RV.shape[1])) is not None:
            logp_GV = np.ascontiguousarray(logp_RV if len(groups) == 1 else logp_RV[places])
            words_R[places] = draw_added(logp_GV, added_V, _numbers(ways, rows, places))
            continue
        allowed_GV = logp_RV.copy() if len(groups) == 1 else logp_RV[places]
        way.limits(allowed_GV, [rows[place].written for place in places])
        if way.is_greedy:
            words_R[places] = np.argmax(allowed_GV, axis=-1)
            continue
        shaped_GV = allowed_GV if way.is_plain else shape(allowed_GV, way.settings)
        words_R[places] = draw(shaped_GV, _numbers(ways, rows, places))
    return words_R


def _numbers(ways: Sequence[Way], rows: Sequence[Row], places: Sequence[int]) -> list[float]:
    return [rows[place].number(ways[place].seed) for place in places]
