"""What may not be generated, and when to stop: small objects that can be combined.

A limit removes probability; a stop rule returns the reason to stop, or nothing. Does END come at all?
[XMU "Stopping"] Both see only what has been generated, so that samples and hypotheses use them alike.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from nextword.core.contracts import END, START, UNKNOWN, Array, Tokenizer
from nextword.core.errors import ConfigError
from nextword.decode.peaks import copied
from nextword.decode.settings import DecodeSettings
from nextword.models.distributions import Floats, as_numpy, normalise

SPARE = 10  # tokens that a text may have beyond its ratio to the source: a short source may need them


@dataclass
class Written:
    """One row so far: the prompt, and the tokens generated after it."""

    prompt: tuple[int, ...] = ()
    ids: list[int] = field(default_factory=list)
    source: int = 0  # tokens of its source; 0: it has none

    @property
    def count(self) -> int:
        """How many tokens were generated."""
        return len(self.ids)

    @property
    def all(self) -> list[int]:
        """The prompt and the tokens."""
        return [*self.prompt, *self.ids]


class Limit(Protocol):
    """Changes ``logp_BV``, an array or a tensor, in place, given what each row has generated."""

    def __call__(self, logp_BV: Array, rows: Sequence[Written]) -> None:
        """Remove probability."""
        ...


class StopRule(Protocol):
    """Returns why a row stops after its last token."""

    def __call__(self, row: Written) -> str:
        """Return ``end``, ``length``, ``stop`` or, to continue, nothing."""
        ...


@dataclass(frozen=True)
class Never:
    """These tokens are never generated (START, and UNKNOWN unless it is asked for)."""

    ids: tuple[int, ...]

    def __call__(self, logp_BV: Array, rows: Sequence[Written]) -> None:
        """Mask it in every row."""
        logp_BV[:, list(self.ids)] = -np.inf

    def add(self, added_V: Floats) -> None:
        """Do the same as an addition, to any row."""
        added_V[list(self.ids)] = -np.inf

    def is_idle(self, logp_BV: Array) -> bool:
        """Tell whether the model itself never generates them: a softmax head leaves them out."""
        return not isinstance(logp_BV, np.ndarray) and bool(logp_BV[:, list(self.ids)].isneginf().all())


@dataclass(frozen=True)
class MinTokens:
    """No END before this many tokens, or this many for each token of the source."""

    count: int
    ratio: float = 0.0

    def of(self, source: int) -> int:
        """Return the number for a source of this many tokens."""
        return max(self.count, math.floor(self.ratio * source))

    def __call__(self, logp_BV: Array, rows: Sequence[Written]) -> None:
        """Mask END in rows that are too short."""
        short = [row for row, written in enumerate(rows) if written.count < self.of(written.source)]
        if short:
            logp_BV[short, END] = -np.inf


@dataclass(frozen=True)
class NoRepeat:
    """Never repeat a sequence of `size` tokens, prompt included (Paulus et al. 2018)."""

    size: int

    def __call__(self, logp_BV: Array, rows: Sequence[Written]) -> None:
        """Mask what would complete a sequence that is already there."""
        for row, written in enumerate(rows):
            if found := self._completions(np.asarray(written.all, dtype=np.int64)):
                logp_BV[row, found] = -np.inf

    def _completions(self, ids: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[int]:
        if len(ids) < self.size:
            return []
        windows = np.lib.stride_tricks.sliding_window_view(ids, self.size)
        same = (windows[:, :-1] == ids[len(ids) - self.size + 1 :]).all(axis=1)
        return [int(word) for word in windows[same, -1]]


class Banned:
    """Sequences of ids that are never completed."""

    def __init__(self, sequences: Iterable[Sequence[int]]) -> None:
        self.sequences = sorted({tuple(int(word) for word in ids) for ids in sequences if len(ids)})
        self.single = [ids[0] for ids in self.sequences if len(ids) == 1]
        self.longer = [ids for ids in self.sequences if len(ids) > 1]

    def __call__(self, logp_BV: Array, rows: Sequence[Written]) -> None:
        """Mask what would complete a banned sequence."""
        if self.single:
            logp_BV[:, self.single] = -np.inf
        if self.longer:
            for row, written in enumerate(rows):
                ids = tuple(written.all)
                if last := [words[-1] for words in self.longer if ids[1 - len(words) :] == words[:-1]]:
                    logp_BV[row, last] = -np.inf


@dataclass(frozen=True)
class Penalty:
    """The repetition penalty on every token that is already there, prompt included."""

    value: float

    def __call__(self, logp_BV: Array, rows: Sequence[Written]) -> None:
        """Penalize every token of the row so far."""
        for row, written in enumerate(rows):
            if words := sorted(set(written.all)):
                logp_BV[row, words] *= self.value
        logp_BV[:] = normalised(logp_BV)


@dataclass(frozen=True)
class Bias:
    """Add a number to log p of some tokens: a large negative one forbids a token."""

    ids: tuple[int, ...]
    values: tuple[float, ...]
    normalizes: bool = True  # the rows sum to 1 again

    def __call__(self, logp_BV: Array, rows: Sequence[Written]) -> None:
        """Add it in every row."""
        self._check(logp_BV.shape[1])
        logp_BV[:, list(self.ids)] += like(logp_BV, self.values)
        if self.normalizes:
            logp_BV[:] = normalised(logp_BV)

    def add(self, added_V: Floats) -> None:
        """Do the same as an addition, to any row, which then need not sum to 1."""
        self._check(len(added_V))
        added_V[list(self.ids)] += self.values

    def _check(self, V: int) -> None:
        if (index := max(self.ids, default=0)) >= V:
            raise ConfigError(
                f"'decode.logit_bias' has the id {index}, but there are {V:,} tokens; ids end at {V - 1}"
            )


@dataclass(frozen=True)
class Repetition:
    """Take `presence` from log p of every token generated before, and `frequency` as often as it was."""

    presence: float
    frequency: float
    normalizes: bool = True  # the rows sum to 1 again

    def __call__(self, logp_BV: Array, rows: Sequence[Written]) -> None:
        """Take it from what each row has generated; the prompt does not count."""
        for row, written in enumerate(rows):
            if counts := Counter(written.ids):
                taken = [self.presence + self.frequency * count for count in counts.values()]
                logp_BV[row, list(counts)] -= like(logp_BV, taken)
        if self.normalizes:
            logp_BV[:] = normalised(logp_BV)


@dataclass(frozen=True)
class Forced:
    """Every text begins with these tokens."""

    ids: tuple[int, ...]

    def __call__(self, logp_BV: Array, rows: Sequence[Written]) -> None:
        """Mask all but the next of them, which is allowed whatever the model or another limit says."""
        for row, written in enumerate(rows):
            if written.count < len(self.ids):
                word = self.ids[written.count]
                own = float(logp_BV[row, word])
                logp_BV[row] = -np.inf
                logp_BV[row, word] = own if np.isfinite(own) else 0.0


@dataclass(frozen=True)
class Limits:
    """Several limits as one. A row without any possible token may only end."""

    parts: tuple[Limit, ...]

    def __call__(self, logp_BV: Array, rows: Sequence[Written]) -> None:
        """Apply them one after another."""
        for part in self.parts:
            part(logp_BV, rows)
        peaks_B = logp_BV.max(axis=1) if isinstance(logp_BV, np.ndarray) else as_numpy(logp_BV.amax(1))
        if (stuck := np.flatnonzero(np.isneginf(peaks_B))).size:
            logp_BV[stuck, END] = 0.0

    def added(self, V: int) -> Floats | None:
        """Return the limits as one addition to log p of any row; None: they depend on the row."""
        added_V: Floats = np.zeros(V)
        for part in self.parts:
            if not isinstance(part, Never | Bias) or getattr(part, "normalizes", False):
                return None
            part.add(added_V)
        return added_V

    def applied(self, logp_BV: Array, rows: Sequence[Written]) -> Array:
        """Return what is left of the distributions: a copy, or the tensor itself where nothing changes."""
        if all(isinstance(part, Never) and part.is_idle(logp_BV) for part in self.parts):
            return logp_BV
        allowed_BV = copied(logp_BV)
        self(allowed_BV, rows)
        return allowed_BV


@dataclass(frozen=True)
class AtEnd:
    """Stop after END."""

    def __call__(self, row: Written) -> str:
        """Return ``end`` after END."""
        return "end" if row.ids and row.ids[-1] == END else ""


@dataclass(frozen=True)
class MaxTokens:
    """Stop after this many tokens; with a source also after `ratio` times its length and a few more."""

    count: int
    ratio: float = 0.0

    def of(self, source: int) -> int:
        """Return the number for a source of this many tokens; 0: there is none."""
        if not (source and self.ratio):
            return self.count
        return min(self.count, math.ceil(self.ratio * source) + SPARE)

    def __call__(self, row: Written) -> str:
        """Return ``length`` when it is long enough."""
        return "length" if row.count >= self.of(row.source) else ""


@dataclass(frozen=True)
class StopStrings:
    """Stop when the text generated (not the prompt) contains one of these strings."""

    strings: tuple[str, ...]
    decode: Callable[[Iterable[int]], str]

    def __call__(self, row: Written) -> str:
        """Return ``stop`` when a stop text is there."""
        # It ends with the newest token, so that its last character, at most 4 tokens (bytes), is new.
        newest = self.decode(row.ids[-5:])
        if not any(string[-1] in newest for string in self.strings):
            return ""
        # A character is at most 4 tokens (bytes), so the tail contains any stop text that ends here.
        tail = row.ids[-4 * max(map(len, self.strings)) - 4 :]
        text = self.decode(tail)
        return "stop" if any(string in text for string in self.strings) else ""


@dataclass(frozen=True)
class FirstOf:
    """The first rule that returns a reason."""

    rules: tuple[StopRule, ...]

    def __call__(self, row: Written) -> str:
        """Return the first reason, or nothing."""
        for rule in self.rules:  # at every token of every row, so without a generator
            if reason := rule(row):
                return reason
        return ""


def normalised(logp_BV: Array) -> Array:
    """Shift every row so that its probabilities sum to 1."""
    return normalise(logp_BV) if isinstance(logp_BV, np.ndarray) else logp_BV.log_softmax(-1)


def like(logp_BV: Array, values: Sequence[float]) -> Array:
    """Return numbers as an array or a tensor, whichever the other is."""
    return np.asarray(values) if isinstance(logp_BV, np.ndarray) else logp_BV.new_tensor(values)


def limits_of(
    settings: DecodeSettings, tokenizer: Tokenizer | None = None, normalizes: bool = True
) -> Limits:
    """Return the limits that settings ask for; banned words need the tokenizer.

    Without ``normalizes`` the rows need not sum to 1 afterwards: enough for who draws from them, and faster.
    """
    normalizes = normalizes or settings.repetition_penalty != 1  # which multiplies log p
    parts: list[Limit] = [Never((START,) if settings.unknown else (START, UNKNOWN))]
    if settings.logit_bias:
        ids, values = tuple(settings.logit_bias), tuple(settings.logit_bias.values())
        parts.append(Bias(ids, values, normalizes))
    if settings.presence_penalty or settings.frequency_penalty:
        parts.append(Repetition(settings.presence_penalty, settings.frequency_penalty, normalizes))
    if settings.repetition_penalty != 1:
        parts.append(Penalty(settings.repetition_penalty))
    if settings.min_tokens or settings.min_ratio:
        parts.append(MinTokens(settings.min_tokens, settings.min_ratio))
    if settings.no_repeat:
        parts.append(NoRepeat(settings.no_repeat))
    if settings.ban:
        parts.append(Banned(_spellings(settings.ban, _needed(tokenizer, "decode.ban"))))
    if settings.prefix:
        found = _needed(tokenizer, "decode.prefix").encode(settings.prefix)
        parts.append(Forced(tuple(int(word) for word in found)))
    return Limits(tuple(parts))


def stops_of(settings: DecodeSettings, tokenizer: Tokenizer | None = None) -> FirstOf:
    """Return the stop rules that settings ask for; stop texts need the tokenizer."""
    rules: list[StopRule] = [AtEnd()]
    if settings.stop:
        rules.append(StopStrings(settings.stop, _needed(tokenizer, "decode.stop").decode))
    return FirstOf((*rules, MaxTokens(settings.max_tokens, settings.max_ratio)))


def _needed(tokenizer: Tokenizer | None, setting: str) -> Tokenizer:
    if tokenizer is None:
        raise ConfigError(f"'{setting}' holds texts, which need a tokenizer; pass the run's tokenizer")
    return tokenizer


def _spellings(words: Sequence[str], tokenizer: Tokenizer) -> list[list[int]]:
    """Return the ids of each word, alone and after a space; others cannot be generated anyway."""
    found = [list(map(int, tokenizer.encode(form))) for word in words for form in (word, " " + word)]
    return [ids for ids in found if ids and UNKNOWN not in ids]
