"""Validation during training: when, on how many tokens, and what follows from it.

The best weights are kept, patience is counted, the learning rate falls on a plateau. Validation takes at most
about a tenth of the time. After a signal nothing long is measured, and a measurement that is under way ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import torch
from torch import nn

from nextword.core.display import LONG, about
from nextword.core.errors import TrainingError
from nextword.core.events import Event, Measure, Note, Valid
from nextword.core.task import FinalFacts, HeldOut, Measurement, Sampler
from nextword.models import precision
from nextword.models.network import device_of
from nextword.models.training import NeuralTrainSettings
from nextword.system.signals import Interrupted, Stop
from nextword.training import weights as averaging
from nextword.training.clock import Clock
from nextword.training.state import Snapshot, TrainingState

_TIMES = 10  # validations in total, unless set otherwise
_SHARE = 0.25  # held-out tokens per token trained on: a forward pass costs a third of an update
_FEWEST = 2_000  # tokens that give a meaningful number
_READS = 3.0  # a forward pass is about so many times faster than an update
_STOPPED = 5.0  # seconds that a measurement may take after a signal


class Validation:
    """Measures the held-out examples and keeps the best weights."""

    def __init__(
        self,
        held_out: HeldOut | None,
        settings: NeuralTrainSettings,
        dtype: torch.dtype,
        clock: Clock,
        stop: Stop | None = None,
        is_warm: bool = False,
        again: int = 0,
    ) -> None:
        self.held_out, self.settings, self.dtype, self.clock = held_out, settings, dtype, clock
        self.stop = Stop() if stop is None else stop
        self.is_warm = is_warm  # the weights before training are those of another run
        self.again = again  # predictions that are made once more when training is over
        self._pace: float | None = None  # seconds per token of the last measurement

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

    def was_interrupted(self, state: TrainingState) -> bool:
        """Return whether a signal ended the measurement of a restored state, which is then made now."""
        return 0 < state.step != state.measured and self.is_due(state)

    def measure(self, state: TrainingState) -> Iterator[Event]:
        """Measure the current weights (their moving average, if there is one); a signal ends it."""
        assert self.held_out is not None
        began = self.clock.used()
        if not state.valid_tokens:
            state.valid_tokens = self._tokens_each_time(state, self.held_out)
        try:
            self._measure_initial(state)
            found = self._measure_weights(state, state.ema, state.valid_tokens)
        except Interrupted:
            return
        state.measured, state.measured_tokens = state.step, state.tokens
        is_best = math.isfinite(found.cost) and (state.best is None or found.cost < state.best.cost)
        if is_best or self.settings.average:
            self._keep_snapshot(state, found, is_best)
        state.waited = 0 if is_best else state.waited + 1
        if not is_best and self.settings.schedule == "plateau":
            state.factor *= self.settings.plateau
        sample = self._sample(state)
        self.clock.reserve("measure", self.clock.used() - began)
        self.clock.reserve("finish", self.again * (self._pace or 0.0))
        yield from self._report(state.step, state.tokens, found, is_best, sample)

    def _sample(self, state: TrainingState) -> Mapping[str, str]:
        """Let the network write a few words, so that whoever watches sees it learn."""
        if not isinstance(self.held_out, Sampler) or state.engine.ranks.is_distributed:
            return {}
        with averaging.swapped(state.network, state.ema):
            text = self.held_out.sample(state.network)
        return {"sample": text} if text else {}

    def measure_last(self, state: TrainingState) -> Iterator[Event]:
        """Measure the weights after the last step; after a signal only if that is quick."""
        if self.held_out is None or state.measured == state.step:
            return
        tokens = state.valid_tokens or self._tokens_each_time(state, self.held_out)
        if self._has_time(state, tokens):
            yield from self.measure(state)
        if state.measured == state.step:
            return
        yield Note(
            f"the held-out text is not measured after step {state.step:,}, which would take "
            f"{about(self._expected(state, tokens))}; nextword eval measures it"
        )

    def finish(self, state: TrainingState) -> Iterator[Event]:
        """Put the best weights into the network: of one step, or an average of several if that is better."""
        yield from self._check_learned(state)
        if state.best is None:
            if state.ema is not None:
                averaging.put_weights(state.network, state.ema)
            return
        if len(state.averages) > 1 and self._has_time(state, state.valid_tokens):
            yield from self._average(state)
        averaging.put_weights(state.network, state.best.weights)
        yield from self._measure_whole(state, state.best)
        assert self.held_out is not None
        shown = self.held_out.describe(state.best.values)
        yield Note(f"held-out text: {shown} (step {state.best.step:,})")

    def _measure_whole(self, state: TrainingState, best: Snapshot) -> Iterator[Event]:
        """Measure the best weights on all of the held-out text, if that was too slow during training."""
        assert self.held_out is not None
        most = self._max_tokens(self.held_out)
        if self.clock.is_limited or state.valid_tokens >= most or not self._has_time(state, most):
            return
        if (seconds := self._expected(state, most)) > LONG:
            yield Note(f"measuring all of the held-out text, which takes {about(seconds)}; Ctrl-C skips it")
        try:
            found = self._measure_weights(state, None, most)
        except Interrupted:
            return
        yield from self._report(best.step, state.tokens, found, True)
        best.cost, best.values = found.cost, dict(found.values)

    def _measure_initial(self, state: TrainingState) -> None:
        """Measure the weights before training if they may be better: those of another run, or it diverges."""
        initial, state.initial = state.initial, None
        if initial is None or not (self.is_warm or state.has_diverged):
            return
        found = self._measure_weights(state, initial, state.valid_tokens)
        if math.isfinite(found.cost):
            state.best = Snapshot(found.cost, 0, initial, dict(found.values))

    def _check_learned(self, state: TrainingState) -> Iterator[Event]:
        """Refuse a model that training has made worse; weights of another run that were better are kept."""
        advice = f"set a lower train.rate (it is {self.settings.rate:g})"
        if state.best is not None:
            if state.best.step or not state.step:
                return
            if self.stop.number is not None and state.measured != state.step:
                state.best = None  # the newest weights may be better by now
                return
            assert self.held_out is not None
            before = f"no measurement was better than before it ({self.held_out.describe(state.best.values)})"
            if self.is_warm or self.stop.number is not None:
                yield Note(
                    f"training did not improve the model: {before}, so the weights from before "
                    f"training are kept; {advice}"
                )
                return
            raise TrainingError(f"training made the model worse: {before}; {advice}")
        if self.stop.number is not None or not state.step:
            return
        if state.measured > 0:
            raise TrainingError(f"the loss of the held-out text is NaN or infinite after training; {advice}")
        if state.has_diverged:
            raise TrainingError(
                f"training made the model worse: the loss was {state.first_loss:.2f} nats per token at the "
                f"first step and is {state.last_loss:.4g} at the last; {advice}"
            )

    def _expected(self, state: TrainingState, tokens: int) -> float:
        """Return the seconds that measuring so many tokens takes, by the last time or by the updates."""
        pace = self._pace
        if pace is None:
            pace = state.seconds / max(1, state.tokens) / _READS
        return pace * tokens

    def _has_time(self, state: TrainingState, tokens: int) -> bool:
        """Return whether to measure so many tokens: always, but after a signal only if that is quick."""
        own = (self.stop.number or 0, self._expected(state, tokens))
        every = state.engine.ranks.all_gather(*own)  # all ranks decide the same, by the speed of rank 0
        return not any(number for number, _ in every) or every[0][1] <= _STOPPED

    def facts(self, network: nn.Module) -> Mapping[str, float]:
        """Return what the held-out examples tell of the finished network for the facts of the run."""
        return self.held_out.final_facts(network) if isinstance(self.held_out, FinalFacts) else {}

    def _average(self, state: TrainingState) -> Iterator[Event]:
        assert state.best is not None
        weights = averaging.mean([each.weights for each in state.averages])
        try:
            found = self._measure_weights(state, weights, state.valid_tokens)
        except Interrupted:
            return
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
        engine, began = state.engine, self.clock.used()
        with averaging.swapped(state.network, weights):
            network = engine.full_network(state.network)
            if engine.ranks.is_distributed:  # all ranks measure to the end, as each waits for the others
                found = self.held_out.measure(network, tokens, products(), engine.ranks)
            else:
                with self.stop.interrupting():
                    found = self.held_out.measure(network, tokens, products(), engine.ranks)
        self._pace = (self.clock.used() - began) / max(1, found.count)
        return found

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

    def _report(
        self, step: int, tokens: int, found: Measurement, is_best: bool, more: Mapping[str, str] | None = None
    ) -> Iterator[Event]:
        seconds = self.clock.used()
        assert self.held_out is not None
        yield Valid(step, seconds, tokens, found.values, self.held_out.describe(found.values), is_best)
        row = {"step": step, "seconds": round(seconds, 3), "tokens": tokens}
        measured = {f"valid_{name}": value for name, value in found.values.items()}
        yield Measure({**row, **measured, **(more or {})})
