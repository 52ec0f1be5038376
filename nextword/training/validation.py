"""Validation during training: when, on how many tokens, and what follows from it.

The best weights are kept, patience is counted, the learning rate falls on a plateau. Validation takes at most
about a tenth of the time.
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

_TIMES = 10  # validations in total, unless set otherwise
_SHARE = 0.25  # held-out tokens per token trained on: a forward pass costs a third of an update
_FEWEST = 2_000  # tokens that give a meaningful number


class Validation:
    """Measures the held-out examples and keeps the best weights."""

    def __init__(
        self, held_out: HeldOut | None, settings: NeuralTrainSettings, dtype: torch.dtype, clock: Clock
    ) -> None:
        self.held_out, self.settings, self.dtype, self.clock = held_out, settings, dtype, clock

    def is_due(self, state: TrainingState) -> bool:
        """Return whether to validate after this step."""
        if self.held_out is None:
            return False
        if self.settings.valid_every:
            return state.step % self.settings.valid_every == 0
        over, before = state.plan.progress(state.step + 1), state.plan.progress(state.step)
        tokens = state.valid_tokens or min(_FEWEST, self.held_out.tokens)
        is_affordable = _SHARE * (state.tokens - state.measured_tokens) >= tokens
        return is_affordable and int(_TIMES * over) > int(_TIMES * before)

    def measure(self, state: TrainingState) -> Iterator[Event]:
        """Measure the current weights (their moving average, if there is one)."""
        assert self.held_out is not None
        began = self.clock.used()
        if not state.valid_tokens:
            state.valid_tokens = self._tokens_each_time(state, self.held_out)
        found = self._measure_weights(state, state.ema, state.valid_tokens)
        state.measured, state.measured_tokens = state.step, state.tokens
        is_best = state.best is None or found.cost < state.best.cost
        if is_best or self.settings.average:
            self._keep_snapshot(state, found, is_best)
        state.waited = 0 if is_best else state.waited + 1
        if not is_best and self.settings.schedule == "plateau":
            state.factor *= self.settings.plateau
        self.clock.reserve("measure", self.clock.used() - began)
        yield from self._report(state.step, state.tokens, found, is_best)

    def finish(self, state: TrainingState) -> Iterator[Event]:
        """Put the best weights into the network: of one step, or an average of several if that is better."""
        if state.best is None:
            if state.ema is not None:
                averaging.put_weights(state.network, state.ema)
            return
        if len(state.averages) > 1:
            yield from self._average(state)
        averaging.put_weights(state.network, state.best.weights)
        assert self.held_out is not None
        most = self._max_tokens(self.held_out)
        if not self.clock.is_limited and state.valid_tokens < most:
            found = self._measure_weights(state, None, most)
            yield from self._report(state.best.step, state.tokens, found, True)
            state.best.cost, state.best.values = found.cost, dict(found.values)
        shown = self.held_out.describe(state.best.values)
        yield Note(f"held-out text: {shown} (step {state.best.step:,})")

    def _average(self, state: TrainingState) -> Iterator[Event]:
        assert state.best is not None
        weights = averaging.mean([each.weights for each in state.averages])
        found = self._measure_weights(state, weights, state.valid_tokens)
        if found.cost < state.best.cost:
            state.best = Snapshot(found.cost, state.best.step, weights, dict(found.values))
            yield Note(
                f"the average of the {len(state.averages)} best checkpoints is better than any one of them"
            )
            yield from self._report(state.step, state.tokens, found, True)

    def _tokens_each_time(self, state: TrainingState, held_out: HeldOut) -> int:
        """Choose how many tokens to measure each time."""
        most = self._max_tokens(held_out)
        if self.settings.valid_every:
            return most
        learned = state.tokens / max(1, state.step) * state.plan.steps / _TIMES
        return min(most, max(_FEWEST, int(_SHARE * learned)))

    def _max_tokens(self, held_out: HeldOut) -> int:
        return min(self.settings.valid_tokens or held_out.tokens, held_out.tokens)

    def _measure_weights(
        self, state: TrainingState, weights: averaging.Weights | None, tokens: int
    ) -> Measurement:
        assert self.held_out is not None
        products = precision.products_in(self.dtype, device_of(state.network))
        engine = state.engine
        with averaging.swapped(state.network, weights):
            return self.held_out.measure(engine.full_network(state.network), tokens, products(), engine.ranks)

    def _keep_snapshot(self, state: TrainingState, found: Measurement, is_best: bool) -> None:
        weights = averaging.copy_weights(state.network) if state.ema is None else dict(state.ema)
        if state.ema is not None:
            weights = {name: tensor.clone() for name, tensor in weights.items()}
        snapshot = Snapshot(found.cost, state.step, weights, dict(found.values))
        if is_best:
            state.best = snapshot
        if self.settings.average:
            several = sorted([*state.averages, snapshot], key=lambda each: each.cost)
            state.averages = several[: self.settings.average]

    def _report(self, step: int, tokens: int, found: Measurement, is_best: bool) -> Iterator[Event]:
        seconds = self.clock.used()
        assert self.held_out is not None
        yield Valid(step, seconds, tokens, found.values, self.held_out.describe(found.values), is_best)
        row = {"step": step, "seconds": round(seconds, 3), "tokens": tokens}
        yield Measure(row | {f"valid_{name}": value for name, value in found.values.items()})
