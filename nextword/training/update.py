"""One update of the weights: read, compare with the words that came, go back through time, step.

[IITD-1 "Training a RNN Language Model", "Backpropagation for RNNs"]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from nextword.blocks.randomness import TRAINING, seeded
from nextword.blocks.states import State
from nextword.data.batches.batch import Batch
from nextword.models.network import Network
from nextword.models.training import NeuralTrainSettings
from nextword.tasks.objectives.bptt import chunks
from nextword.tasks.objectives.forcing import OwnWords, truth_share
from nextword.tasks.objectives.next_token import Lesson
from nextword.tasks.objectives.reading import Reader, make_reader
from nextword.training import averaging, clip, schedules
from nextword.training.state import TrainingState


class Learned(NamedTuple):
    """What an update tells."""

    loss: float  # nats per token
    norm: float  # of the gradient, before clipping
    rate: float
    tokens: int


@dataclass(frozen=True)
class Learner:
    """The rules of an update; all that changes is in the `TrainingState`."""

    settings: NeuralTrainSettings
    dtype: torch.dtype  # of products
    carries: bool  # the state after a batch is the state before the next

    def update(self, state: TrainingState, batches: Sequence[Batch]) -> Learned:
        """Learn from these batches together; every word weighs the same."""
        network, settings = state.network, self.settings
        progress = state.plan.progress(state.step + 1)
        tokens = sum(batch.tokens for batch in batches)
        state.optimizer.clear()
        nats = self.read(state, batches)
        norm = clip.clip([*network.parameters()], settings.clip, partial(state.engine.norm, network))
        loss = state.engine.ranks.total(float(torch.stack(nats).sum())) / max(1, tokens)
        rate = settings.rate * state.factor * schedules.factor(settings, progress)
        if math.isfinite(loss) and math.isfinite(norm):
            state.optimizer.step(rate)
            state.step += 1
            state.tokens += tokens
            if state.ema is not None:
                averaging.follow(state.ema, network, settings.ema, state.step)
        return Learned(loss, norm, rate, tokens)

    def read(self, state: TrainingState, batches: Sequence[Batch]) -> list[Tensor]:
        """Read the batches of the next update and add their gradients; the nats of each."""
        tokens = sum(batch.tokens for batch in batches)
        reader = self._reader(state.network, state.plan.progress(state.step + 1))
        with seeded(state.network.device, self.settings.seed, TRAINING, state.step, *state.engine.ranks.key):
            return [
                self._gradient(state, batch, reader, tokens, is_last=number == len(batches))
                for number, batch in enumerate(batches, start=1)
            ]

    def _gradient(
        self, state: TrainingState, batch: Batch, reader: Reader, tokens: int, is_last: bool = True
    ) -> Tensor:
        """Add the gradient of our rows of a batch; returns their nats. A state that is carried goes on."""
        network, engine = state.network, state.engine
        part, own = engine.ranks.part(len(batch.inputs_BT)), engine.ranks.rows_of(batch)
        has_rows = part.start < part.stop
        lesson = Lesson(reader, self.settings.smoothing, self.dtype, has_rows)
        carries = self.carries and has_rows
        inputs_BT = torch.from_numpy(own.inputs_BT).to(network.device)
        targets_BT = torch.from_numpy(own.targets_BT).to(network.device)
        after: State = state.carried if carries else None
        nats = torch.zeros((), device=network.device)
        for piece in chunks(inputs_BT.shape[1], self.settings.through_time):
            resets_BT = None if own.resets_BT is None else own.resets_BT[:, piece]
            with engine.adding(is_last and piece.stop == inputs_BT.shape[1]):
                loss, after = engine.read(
                    network, lesson, inputs_BT[:, piece], targets_BT[:, piece], resets_BT, after
                )
                if loss.requires_grad:
                    torch.autograd.backward(loss / engine.divisor(tokens))
            nats += loss.detach()
        state.carried = after if carries else None
        return nats

    def _reader(self, network: Network, progress: float) -> Reader:
        forcing = self.settings.reads
        own = OwnWords(truth_share(forcing, progress), self.settings.feed)
        return make_reader(network, self.settings.through_time, forcing, own)
