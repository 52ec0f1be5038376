"""``--estimate`` for neural models: a few real steps on the beginning of the text, and what follows.

Nothing is trained or kept. Parameters and disk are exact for the vocabulary found; time and memory follow
from the steps that were timed and the memory they took.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, cast

from nextword.core.events import Event
from nextword.data.beginning import Beginning
from nextword.data.encode import Text, encode
from nextword.data.source import Source
from nextword.runs.settings import RunSettings, changed
from nextword.text.subwords import default_size
from nextword.training.budget.calibrate import calibrate, in_time
from nextword.training.budget.clock import LEAVING, process_start
from nextword.training.budget.trial import count_weights, try_steps
from nextword.training.conditions import Conditions

_SAMPLE = 3_000_000  # bytes that are cut into pieces to see how many there are
_WHOLE = {
    "words": 200_000_000,
    "characters": 20_000_000,
}  # texts up to here are read whole: their words count
_TRIAL = 4.0  # seconds of steps
_READS = 3.0  # reading is so many times faster than learning
_TIMES = 10  # measurements of the held-out text
_HELD_OUT = 0.05
_LEARNED = ("bpe", "unigram")


@dataclass(frozen=True)
class Sample:
    """The beginning of a text, cut into pieces, and what the rest of it will take."""

    text: Text
    scale: float  # the whole text is so many times as long
    seconds: float  # for reading the whole


def forecast(settings: RunSettings, source: Source, conditions: Conditions) -> dict[str, Any]:
    """Parameters, seconds, memory and disk of a training."""
    began = time.monotonic()
    if conditions.clock.seconds is not None:
        settings, source, _ = in_time(settings, source, None, conditions.clock)
    sample = _sample(settings, source)
    settings = _last(calibrate(settings, sample.text, conditions))
    tokenizer = sample.text.tokenizer
    weights = count_weights(settings, tokenizer.vocab_size, tokenizer.closed)
    trial = try_steps(settings, sample.text, conditions, _TRIAL)
    train = cast(Any, settings.train)
    tokens = sample.scale * trial.epoch
    steps = train.steps or math.ceil(train.epochs * tokens / trial.tokens_per_step)
    learning = steps * trial.seconds_per_step
    seconds = _started(began) + sample.seconds + learning + _measuring(train, tokens, steps, trial) + LEAVING
    if conditions.clock.seconds is not None:
        seconds = conditions.clock.seconds if not train.steps else min(seconds, conditions.clock.seconds)
        steps = min(steps, int(max(0.0, conditions.clock.left()) / trial.seconds_per_step)) or steps
    size = 4 * weights.all
    return {
        "model": settings.name,
        "bytes": round(sample.scale * sample.text.facts.bytes),
        "tokens": round(tokens),
        "vocabulary": tokenizer.vocab_size,
        "parameters": weights.all,
        "steps": steps,
        "tokens_per_second": round(trial.tokens_per_second, 1),
        "seconds": round(seconds, 1),
        "minutes": round(seconds / 60, 2),
        "memory": round(_memory(sample, size)),
        "disk": round(size + 4096 + 45 * tokenizer.vocab_size),
    }


def _sample(settings: RunSettings, source: Source) -> Sample:
    """The text, or its beginning where that will do."""
    name, size = settings.text.tokenizer, source.about
    whole = _WHOLE.get(name, _SAMPLE)
    if name in _LEARNED and not settings.text.size and size is not None and size > whole:
        settings = changed(settings, {"text.size": default_size(min(size, settings.text.fit_bytes))})
    began = time.perf_counter()
    beginning = Beginning(source, whole)
    text = _last(encode(settings, beginning))
    took = time.perf_counter() - began
    scale = max(1.0, (size or text.facts.bytes) / max(1, text.facts.bytes)) if beginning.is_cut else 1.0
    return Sample(text, scale, took * scale)


def _started(began: float) -> float:
    """Seconds from the start of a process to the first look at the text, as they were for this one."""
    return max(0.0, min(10.0, began - process_start()))


def _measuring(train: Any, tokens: float, steps: int, trial: Any) -> float:
    """Seconds for the held-out text."""
    held_out = _HELD_OUT * tokens
    most = min(train.valid_tokens or held_out, held_out)
    learned = steps * trial.tokens_per_step / _TIMES
    each = most if train.valid_every else min(most, max(2_000.0, 0.25 * learned))
    times = max(1, steps // train.valid_every) if train.valid_every else _TIMES
    return (times * each + most) / (_READS * trial.tokens_per_second)


def _memory(sample: Sample, size: int) -> float:
    """The peak of this process, which has made real steps, and what a whole training holds besides."""
    from nextword.training.progress import peak_memory

    more_ids = (sample.scale - 1) * 4 * len(sample.text.ids)
    return peak_memory() + more_ids + size  # the best weights are kept beside the newest


def _last(events: Generator[Event, None, Any]) -> Any:
    """What a generator returns."""
    while True:
        try:
            next(events)
        except StopIteration as end:
            return end.value
