"""Measurements of the held-out text during a training: when, how much of it, and what follows from them.

The best weights are kept, patience is counted, the rate falls on a plateau. Validation takes at most about a
tenth of the time.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from nextword.core.events import Event, Measure, Note, Valid
from nextword.core.task import HeldOut, Measurement
from nextword.models import precision
from nextword.models import weights as averaging
from nextword.models.network import device_of
from nextword.models.training import NeuralTrainSettings
from nextword.training.budget.clock import Clock
from nextword.training.state import Snapshot, TrainingState

_TIMES = 10  # measurements in all, where nothing else is said
_SHARE = 0.25  # words measured for each word learned: reading costs a third of learning
_FEWEST = 2_000  # words that say something


class Validation:
    """Measures, and keeps what was best."""

    def __init__(
        self, held_out: HeldOut | None, settings: NeuralTrainSettings, dtype: torch.dtype, clock: Clock
    ) -> None:
        self.held_out, self.settings, self.dtype, self.clock = held_out, settings, dtype, clock

    def is_due(self, state: TrainingState) -> bool:
        """Whether the held-out text is measured after this step."""
        if self.held_out is None:
            return False
        if self.settings.valid_every:
            return state.step % self.settings.valid_every == 0
        over, before = state.plan.progress(state.step + 1), state.plan.progress(state.step)
        words = state.valid_tokens or min(_FEWEST, self.held_out.tokens)
        is_paid = _SHARE * (state.tokens - state.measured_tokens) >= words
        return is_paid and int(_TIMES * over) > int(_TIMES * before)

    def measure(self, state: TrainingState) -> Iterator[Event]:
        """Measure the weights of now (their average, if there is one)."""
        assert self.held_out is not None
        began = self.clock.used()
        if not state.valid_tokens:
            state.valid_tokens = self._words(state, self.held_out)
        found = self._found(state, state.ema, state.valid_tokens)
        state.measured, state.measured_tokens = state.step, state.tokens
        is_best = state.best is None or found.cost < state.best.cost
        if is_best or self.settings.average:
            self._keep(state, found, is_best)
        state.waited = 0 if is_best else state.waited + 1
        if not is_best and self.settings.schedule == "plateau":
            state.factor *= self.settings.plateau
        self.clock.keep("measure", self.clock.used() - began)
        yield from self._tell(state.step, state.tokens, found, is_best)

    def finish(self, state: TrainingState) -> Iterator[Event]:
        """Put the best weights into the network: of one step, or the average of several if that is better."""
        if state.best is None:
            if state.ema is not None:
                averaging.put_weights(state.network, state.ema)
            return
        if len(state.averages) > 1:
            yield from self._average(state)
        averaging.put_weights(state.network, state.best.weights)
        assert self.held_out is not None
        words = self._most(self.held_out)
        if not self.clock.is_limited and state.valid_tokens < words:
            found = self._found(state, None, words)
            yield from self._tell(state.best.step, state.tokens, found, True)
            state.best.cost, state.best.values = found.cost, dict(found.values)
        shown = self.held_out.describe(state.best.values)
        yield Note(f"held-out text: {shown} (step {state.best.step:,})")

    def _average(self, state: TrainingState) -> Iterator[Event]:
        assert state.best is not None
        weights = averaging.mean([kept.weights for kept in state.averages])
        found = self._found(state, weights, state.valid_tokens)
        if found.cost < state.best.cost:
            state.best = Snapshot(found.cost, state.best.step, weights, dict(found.values))
            yield Note(f"the average of the best {len(state.averages)} is better than each of them")
            yield from self._tell(state.step, state.tokens, found, True)

    def _words(self, state: TrainingState, held_out: HeldOut) -> int:
        """How many words to measure each time."""
        most = self._most(held_out)
        if self.settings.valid_every:
            return most
        learned = state.tokens / max(1, state.step) * state.plan.steps / _TIMES
        return min(most, max(_FEWEST, int(_SHARE * learned)))

    def _most(self, held_out: HeldOut) -> int:
        return min(self.settings.valid_tokens or held_out.tokens, held_out.tokens)

    def _found(self, state: TrainingState, weights: averaging.Weights | None, words: int) -> Measurement:
        assert self.held_out is not None
        products = precision.products_in(self.dtype, device_of(state.network))
        engine = state.engine
        with averaging.swapped(state.network, weights):
            return self.held_out.measure(engine.whole(state.network), words, products(), engine.ranks)

    def _keep(self, state: TrainingState, found: Measurement, is_best: bool) -> None:
        weights = averaging.copy_weights(state.network) if state.ema is None else dict(state.ema)
        if state.ema is not None:
            weights = {name: tensor.clone() for name, tensor in weights.items()}
        kept = Snapshot(found.cost, state.step, weights, dict(found.values))
        if is_best:
            state.best = kept
        if self.settings.average:
            several = sorted([*state.averages, kept], key=lambda each: each.cost)
            state.averages = several[: self.settings.average]

    def _tell(self, step: int, tokens: int, found: Measurement, is_best: bool) -> Iterator[Event]:
        seconds = self.clock.used()
        assert self.held_out is not None
        yield Valid(step, seconds, tokens, found.values, self.held_out.describe(found.values), is_best)
        row = {"step": step, "seconds": round(seconds, 3), "tokens": tokens}
        yield Measure(row | {f"valid_{name}": value for name, value in found.values.items()})
