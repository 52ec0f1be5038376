"""``--minutes``: what was left open is chosen so that the minutes teach as much as they can.

Before the text is read, from its size: how much of it is read and how many subwords there are. After that, a
few real steps of some sizes are timed, and the largest size is taken that can still learn from enough words
for each of its weights (`sizes.TOKENS_PER_WEIGHT`) in the time that is left. What somebody named stays.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nextword.core.events import Event, Measure, Note, Stage
from nextword.data.beginning import Beginning
from nextword.data.encode import Text
from nextword.data.source import Source
from nextword.models.ladders import Rung, ladder
from nextword.runs.settings import RunSettings, changed
from nextword.training.budget import sizes
from nextword.training.budget.clock import Clock
from nextword.training.budget.trial import Trial, Weights, count_weights, threads_worth_trying, try_steps
from nextword.training.conditions import Conditions

_SHARE = 0.08  # of the time, for trials
_MOST = 8.0  # seconds of trials
_FASTER = 0.95  # more threads must save so much to be used
_LENGTH = {"transformer": 0, "window": 64}  # positions of a row; 0: the context; others:
_RECURRENT_LENGTH = 64
_LEARNED = ("bpe", "unigram")  # vocabularies whose size is chosen


def in_time(
    settings: RunSettings, source: Source, valid: Source | None, clock: Clock
) -> tuple[RunSettings, Source, Source | None]:
    """Settings of the group ``text``, and as much of the texts as can be read in the time."""
    if clock.seconds is None:
        return settings, source, valid
    limit = sizes.readable(clock.seconds, settings.text.tokenizer)
    if source.about is None or source.about > limit:
        source = Beginning(source, limit)
    if valid is not None and (valid.about is None or valid.about > limit // 10):
        valid = Beginning(valid, limit // 10)
    values = {
        "text.size": sizes.vocabulary(source.about or limit, clock.seconds),
        "text.fit_bytes": min(settings.text.fit_bytes, sizes.learned_bytes(clock.seconds)),
    }
    return _with(settings, values if settings.text.tokenizer in _LEARNED else {}), source, valid


def calibrate(
    settings: RunSettings, text: Text, conditions: Conditions
) -> Generator[Event, None, RunSettings]:
    """The settings of a training that fits the time that is left."""
    clock = conditions.clock
    if clock.seconds is None:
        return settings
    yield Stage("time a few steps")
    settings = _with(settings, {"model.head": sizes.head(text.tokenizer.vocab_size)})
    allowance = clock.used() + min(_MOST, _SHARE * clock.seconds)
    chosen = _choose(
        (_candidate(settings, rung, text) for rung in _rungs(settings)), text, conditions, allowance
    )
    settings = _finish(chosen, text, clock)
    yield from _tell(chosen, settings, clock)
    return settings


@dataclass
class Candidate:
    """A size that may be chosen, and what is known of it."""

    settings: RunSettings
    rung: Rung
    weights: Weights
    trial: Trial | None = None

    def tokens(self, seconds: float) -> float:
        """Words that can be learned from in so many seconds; 0 where there was no time to try."""
        return 0.0 if self.trial is None else self.trial.tokens_per_second * max(0.0, seconds)

    @property
    def epoch(self) -> int:
        """Words of one pass over the text."""
        return 1 if self.trial is None else max(1, self.trial.epoch)


def _rungs(settings: RunSettings) -> list[Rung]:
    """The sizes that are open; one where somebody has named a size, or the family has no others."""
    found = ladder(settings.family)
    if not found or any(key in settings.named for key in found[0].settings if key.startswith("model.")):
        return [Rung("", {}, "as set")]
    return list(found)


def _candidate(settings: RunSettings, rung: Rung, text: Text) -> Candidate:
    """A size with its first guess of a batch."""
    settings = _with(settings, rung.settings)
    length = _LENGTH.get(settings.family, _RECURRENT_LENGTH)
    pairs = max(1, len(text.ids) - 1)
    context = getattr(settings.model, "context", 0) or 0
    values: dict[str, Any] = {"train.length": min(length, pairs)} if length else {}
    if not length and context > pairs:
        values["model.context"] = pairs
    settings = _with(settings, values)
    tokenizer = text.tokenizer
    return Candidate(settings, rung, count_weights(settings, tokenizer.vocab_size, tokenizer.closed))


def _choose(candidates: Iterator[Candidate], text: Text, conditions: Conditions, until: float) -> Candidate:
    """Up from the smallest, as long as there is enough to learn from and time to try."""
    clock = conditions.clock
    chosen: Candidate | None = None
    for candidate in candidates:
        left = until - clock.used()
        if chosen is not None and (left <= 0 or not _is_worth_trying(chosen, candidate, clock.left())):
            break
        candidate.settings = _shaped(candidate, chosen, clock)
        if clock.left() <= 0:
            return chosen or candidate
        _try(candidate, text, conditions, left / 2)
        if chosen is not None and not sizes.is_enough(
            candidate.tokens(clock.left()), candidate.weights.inner
        ):
            break
        chosen = candidate
    assert chosen is not None, "a ladder has a rung"
    return chosen


def _try(candidate: Candidate, text: Text, conditions: Conditions, seconds: float) -> None:
    """Time a size with one thread, and with all if that is faster: small products gain little from sharing,
    and where other programs use the processors, threads that wait for each other lose much."""
    if "train.threads" in candidate.settings.named:
        candidate.trial = try_steps(candidate.settings, text, conditions, seconds)
        return
    alone = _with(candidate.settings, {"train.threads": 1})
    candidate.trial = try_steps(alone, text, conditions, seconds / 2)
    if (threads := threads_worth_trying()) > 1:
        shared = _with(candidate.settings, {"train.threads": threads})
        trial = try_steps(shared, text, conditions, seconds / 2, 2 * candidate.trial.seconds_per_step)
        if trial.seconds_per_step < _FASTER * candidate.trial.seconds_per_step:
            candidate.settings, candidate.trial = shared, trial
            return
    candidate.settings = alone


def _is_worth_trying(smaller: Candidate, larger: Candidate, seconds: float) -> bool:
    """Whether the larger one could learn from enough words, if its speed fell less than its weights grow."""
    share = (smaller.weights.all / larger.weights.all) ** 0.5
    return sizes.is_enough(smaller.tokens(seconds) * share, larger.weights.inner)


def _shaped(candidate: Candidate, smaller: Candidate | None, clock: Clock) -> RunSettings:
    """A batch for the number of words there will be, as far as that is known."""
    tokens = smaller.tokens(clock.left()) / 2 if smaller is not None else 4e4 * clock.left()
    return _with(candidate.settings, _batch(candidate.settings, tokens))


def _batch(settings: RunSettings, tokens: float) -> dict[str, Any]:
    train: Any = settings.train
    length = train.length or getattr(settings.model, "context", None) or _RECURRENT_LENGTH
    return {"train.batch": sizes.batch_shape(tokens, length).batch}


def _finish(chosen: Candidate, text: Text, clock: Clock) -> RunSettings:
    """What follows from the number of words that will be learned from."""
    epochs = chosen.tokens(clock.left()) / chosen.epoch
    return _with(chosen.settings, {"model.dropout": sizes.dropout(epochs)})


def _tell(chosen: Candidate, settings: RunSettings, clock: Clock) -> Iterator[Event]:
    if chosen.trial is None:
        yield Note(
            f"the time is over before the first step: {settings.family} {chosen.rung.about} stays as it is"
        )
        return
    tokens = chosen.tokens(clock.left())
    figures = {
        "size": chosen.rung.name or "as set",
        "parameters": chosen.weights.all,
        "inner_parameters": chosen.weights.inner,
        "expected_tokens": round(tokens),
        "expected_epochs": round(tokens / chosen.epoch, 2),
        "trial_tokens_per_second": round(chosen.trial.tokens_per_second, 1),
    }
    yield Measure({"plan": figures})
    speed = f"{chosen.trial.tokens_per_second:,.0f} a second"
    yield Note(
        f"plan: {settings.family} {chosen.rung.about}, {chosen.weights.all:,} parameters; about "
        f"{tokens:,.0f} tokens at {speed}, the text {figures['expected_epochs']:g} times"
    )


def _with(settings: RunSettings, values: Mapping[str, Any]) -> RunSettings:
    """These values, where nobody has named the setting and the family has it."""
    known = {key: value for key, value in values.items() if key not in settings.named and _has(settings, key)}
    return changed(settings, known) if known else settings


def _has(settings: RunSettings, key: str) -> bool:
    group, _, name = key.partition(".")
    return name in type(settings.groups[group]).model_fields
