"""``--estimate`` for neural models: time a few real steps on the beginning of the text, and extrapolate.

Nothing is kept. Parameters and disk space are exact for the vocabulary found; time and memory follow from
the steps that were timed and the memory they took.
"""

from __future__ import annotations

import math
import time
from typing import Any, cast

from nextword.core.events import returned
from nextword.core.task import Sample
from nextword.runs.settings import RunSettings
from nextword.system.launch import process_start
from nextword.training.budget.calibrate import calibrate
from nextword.training.budget.trial import Trial, count_weights, try_steps
from nextword.training.clock import LEAVING
from nextword.training.order import Conditions

_TRIAL = 4.0  # seconds of steps
_READS = 3.0  # a forward pass is this many times faster than an update
_TIMES = 10  # validations in total
_HELD_OUT = 0.05  # of the text


def forecast(settings: RunSettings, examples: Any, conditions: Conditions) -> dict[str, Any]:
    """Estimate parameters, seconds, memory and disk space of a training run."""
    began = time.monotonic()
    settings, sample = settings.find_task().sample(examples, settings, conditions.preparation())
    prepared = sample.prepared
    if conditions.clock.is_limited:
        settings = returned(calibrate(settings, prepared, conditions))
    weights = count_weights(settings, prepared)
    trial = try_steps(settings, prepared, conditions, _TRIAL)
    train = cast(Any, settings.train)
    tokens = sample.scale * trial.epoch
    steps = train.steps or math.ceil(train.epochs * tokens / trial.tokens_per_step)
    learning = steps * trial.seconds_per_step
    measuring = _measuring(settings, prepared, tokens, steps, trial)
    seconds = _started(began) + sample.seconds + learning + measuring + LEAVING
    if conditions.clock.seconds is not None:
        seconds = conditions.clock.seconds if not train.steps else min(seconds, conditions.clock.seconds)
        steps = min(steps, int(max(0.0, conditions.clock.left()) / trial.seconds_per_step)) or steps
    task = settings.find_task()
    size, figures = 4 * weights.all, task.figures(prepared)
    return {
        "model": settings.name,
        "bytes": round(sample.scale * prepared.facts.bytes),
        task.unit: round(tokens),
        **figures,
        "parameters": weights.all,
        "steps": steps,
        f"{task.unit}_per_second": round(trial.tokens_per_second, 1),
        "seconds": round(seconds, 1),
        "minutes": round(seconds / 60, 2),
        "memory": round(_memory(sample, size)),
        "disk": round(size + 4096 + 45 * figures.get("vocabulary", 0)),
    }


def _started(began: float) -> float:
    """Return the seconds from the start of this process to the first look at the text."""
    return max(0.0, min(10.0, began - process_start()))


def _measuring(settings: RunSettings, prepared: Any, tokens: float, steps: int, trial: Trial) -> float:
    """Estimate the seconds for validation, and for what is measured once more at the end."""
    task, train = settings.find_task(), cast(Any, settings.train)
    known = task.held_out(settings, prepared)
    held_out = _HELD_OUT * tokens if known is None else known.tokens
    most = min(train.valid_tokens or held_out, held_out)
    learned = steps * trial.tokens_per_step / _TIMES
    each = most if train.valid_every else min(most, max(2_000.0, 0.25 * learned))
    times = max(1, steps // train.valid_every) if train.valid_every else _TIMES
    return (times * each + most + task.measured_again(prepared)) / (_READS * trial.tokens_per_second)


def _memory(sample: Sample, size: int) -> float:
    """Estimate the memory: the peak of this process, which has made real steps, and what all data adds."""
    from nextword.training.clock import peak_memory

    more_ids = (sample.scale - 1) * 4 * sample.prepared.facts.tokens
    return peak_memory() + more_ids + size  # the best weights are kept as well as the newest
