"""Measurements of the held-out text during a training: when, how much of it, and what follows from them.

The best weights are kept, patience is counted, the rate falls on a plateau. Measuring takes at most about a
tenth of the time.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from nextword.core.events import Event, Measure, Note, Valid
from nextword.models import precision
from nextword.models.training import NeuralTrainSettings
from nextword.tasks.held_out import HeldOut, Measured
from nextword.training import averaging
from nextword.training.budget.clock import Clock
from nextword.training.state import Kept, TrainingState

_TIMES = 10  # measurements in all, where nothing else is said
_SHARE = 0.25  # words measured for each word learned: reading costs a third of learning
_FEWEST = 2_000  # words that say something


class Measuring:
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
        is_best = state.best is None or found.nll < state.best.nll
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
            state.best.nll, state.best.bits_per_byte = found.nll, found.bits_per_byte
        yield Note(_sentence(state.best))

    def _average(self, state: TrainingState) -> Iterator[Event]:
        assert state.best is not None
        weights = averaging.mean([kept.weights for kept in state.averages])
        found = self._found(state, weights, state.valid_tokens)
        if found.nll < state.best.nll:
            state.best = Kept(found.nll, state.best.step, weights, found.bits_per_byte)
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

    def _found(self, state: TrainingState, weights: averaging.Weights | None, words: int) -> Measured:
        assert self.held_out is not None
        products = precision.products_in(self.dtype, state.network.device)
        engine = state.engine
        with averaging.swapped(state.network, weights):
            return self.held_out.measure(engine.whole(state.network), words, products(), engine.ranks)

    def _keep(self, state: TrainingState, found: Measured, is_best: bool) -> None:
        weights = averaging.copy_weights(state.network) if state.ema is None else dict(state.ema)
        if state.ema is not None:
            weights = {name: tensor.clone() for name, tensor in weights.items()}
        kept = Kept(found.nll, state.step, weights, found.bits_per_byte)
        if is_best:
            state.best = kept
        if self.settings.average:
            several = sorted([*state.averages, kept], key=lambda each: each.nll)
            state.averages = several[: self.settings.average]

    def _tell(self, step: int, tokens: int, found: Measured, is_best: bool) -> Iterator[Event]:
        seconds = self.clock.used()
        yield Valid(step, seconds, tokens, found.nll, found.bits_per_byte, is_best)
        yield Measure(
            {
                "step": step,
                "seconds": round(seconds, 3),
                "tokens": tokens,
                "valid_nll": found.nll,
                "valid_perplexity": found.perplexity,
                "valid_bits_per_byte": found.bits_per_byte,
            }
        )


def _sentence(best: Kept) -> str:
    bits = "" if best.bits_per_byte is None else f", {best.bits_per_byte:.4f} bits per byte"
    return (
        f"held-out text: perplexity {Measured(best.nll, None, 0).perplexity:,.2f}{bits} (step {best.step:,})"
    )
