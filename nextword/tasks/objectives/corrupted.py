"""Learning from text of which a part is hidden: batches, the loss of what is hidden, held-out text.

The loss is Σ -log p of the hidden tokens alone; what stays visible is not counted [MAUSAM "Transformers":
BERT, T5].
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import torch

from nextword.blocks import losses
from nextword.core.catalog import find
from nextword.core.contracts import Source
from nextword.core.errors import ConfigError
from nextword.core.events import Event
from nextword.core.task import Loss, Measurement, Ranks
from nextword.data.batches.batch import NOT_COUNTED
from nextword.data.batches.pairs import PairRows
from nextword.data.batches.sentinels import SpanBatches, longest
from nextword.data.encode import hash_ids
from nextword.models import precision
from nextword.models.network import Head, device_of
from nextword.models.training import NeuralTrainSettings
from nextword.runs.settings import RunSettings
from nextword.tasks.objectives.next_token import cross_entropy

if TYPE_CHECKING:
    from nextword.tasks.lm import PreparedText

_HELD_OUT = 32  # rows of a batch of held-out text


def is_corrupted(settings: RunSettings) -> bool:
    """Tell whether the objective hides a part of the text."""
    named = dict(settings.model).get("objective")
    return named is not None and find("objective", named).rows is not None


def make_batches(settings: RunSettings, prepared: PreparedText, network: Any) -> Generator[Event, None, Any]:
    """Return the batches of the objective."""
    train, text = cast(NeuralTrainSettings, settings.train), prepared.text
    _check(settings, train)
    model, vocab_size = cast(Any, settings.model), prepared.vocabulary.vocab_size
    kind, length = find("objective", model.objective), _length(settings)
    return kind.batches(text.ids, text.documents, train.batch, length, train.seed, vocab_size, model)
    yield


def _length(settings: RunSettings) -> int:
    """Return the tokens of a row: as set, else what fits into the context."""
    train, model = cast(NeuralTrainSettings, settings.train), cast(Any, settings.model)
    is_joined = find("objective", model.objective).rows is SpanBatches and not model.encoder_layers
    fitting: int = longest(model.context, model.spans) if is_joined else model.context
    if train.length > fitting:
        raise ConfigError(
            f"'train.length' is {train.length:,}, but a row of the objective '{model.objective}' is read at "
            f"once and has room for {fitting:,} tokens; set at most {fitting:,}, or a larger model.context"
        )
    return train.length or fitting


def _check(settings: RunSettings, train: NeuralTrainSettings) -> None:
    """Refuse settings of learning from left to right."""
    name = cast(Any, settings.model).objective
    if train.batches not in ("auto", "windows"):
        raise ConfigError(
            f"'train.batches' is {train.batches}, but the objective '{name}' reads windows; leave it out"
        )
    if train.reads.kind != "teacher" or train.through_time.kind != "full":
        key, value = ("forcing", train.forcing) if train.reads.kind != "teacher" else ("bptt", train.bptt)
        raise ConfigError(
            f"'train.{key}' is {value}, which is for models that read from left to right, and the objective "
            f"is '{name}'; leave it out"
        )


@dataclass(frozen=True)
class CorruptedLoss:
    """-log p of what is hidden, summed; the objective and the loss of an update."""

    settings: NeuralTrainSettings
    carries: bool = False

    def at(self, network: Any, progress: float, counts: bool = True) -> CorruptedLoss:
        """Return the loss, which is the same at any point of the training."""
        return self

    def pieces(self, batch: Any) -> list[Any]:
        """Return the batch: rows are not cut."""
        return [batch]

    def __call__(self, network: Any, piece: Any, before: Any) -> tuple[Loss, None]:
        """Return the loss of a batch."""
        device = device_of(network)
        with precision.products_in(precision.dtype_of(self.settings.precision), device)():
            with losses.collecting() as found:
                features_BTD = read(network, piece)
            targets_BT = torch.from_numpy(piece.targets_BT).to(device)
            loss = cross_entropy(network, features_BTD, targets_BT, self.settings.smoothing)
        total, parts = losses.joined(loss, found, piece.tokens)
        return Loss(total, parts), None


def read(network: Any, rows: Any) -> torch.Tensor:
    """Return the features of a batch: of rows, or of targets after their sources."""
    device = device_of(network)
    inputs_BT = torch.from_numpy(rows.inputs_BT).to(device)
    if isinstance(rows, PairRows):
        source = Source(*(torch.from_numpy(a).to(device) for a in (rows.source_BS, rows.source_lengths_B)))
        features_BTD, _ = network.read(inputs_BT, network.start(len(inputs_BT), source))
        return cast(torch.Tensor, features_BTD)
    ahead_B = None if rows.ahead_B is None else torch.from_numpy(rows.ahead_B)
    return cast(torch.Tensor, network.read_rows(inputs_BT, torch.from_numpy(rows.lengths_B), ahead_B))


def make_held_out(settings: RunSettings, ids: Any, documents: Any, vocab_size: int) -> HeldOutRows | None:
    """Hide a part of held-out ids, the same each time; None if there are too few."""
    model: Any = settings.model
    length = min(_length(settings), len(ids) // 4)
    if length < 2:
        return None
    kind = find("objective", model.objective)
    made = kind.batches(ids, documents, _HELD_OUT, length, 0, vocab_size, model)
    return HeldOutRows(list(islice(made.batches(0), made.per_epoch)), kind.predicts)


@dataclass
class HeldOutRows:
    """Batches of held-out text with hidden tokens, which are predicted while a network learns."""

    batches: list[Any]
    predicts: str  # what a prediction is, as in "masked token"

    def __post_init__(self) -> None:
        self.tokens = sum(batch.tokens for batch in self.batches)

    def measure(
        self,
        network: Any,
        tokens: int = 0,
        products: AbstractContextManager[Any] | None = None,
        ranks: Ranks | None = None,
    ) -> Measurement:
        """Predict about so many hidden tokens, in every n-th batch; ranks share the batches."""
        was_training = network.training
        network.eval()
        rank, world = (0, 1) if ranks is None else (ranks.rank, ranks.world)
        every = max(1, self.tokens // tokens) if tokens else 1
        nats, right, count = 0.0, 0, 0
        with torch.inference_mode(), products or nullcontext():
            for batch in self.batches[::every][rank::world]:
                found = _measured(network, batch)
                nats, right, count = nats + found[0], right + found[1], count + found[2]
        network.train(was_training)
        if ranks is not None:
            nats, right, count = ranks.total(nats), int(ranks.total(right)), int(ranks.total(count))
        nll = nats / max(1, count)
        return Measurement({"nll": nll, "accuracy": right / max(1, count)}, nll, count)

    def describe(self, values: Mapping[str, float | None]) -> str:
        """Return what a hidden token costs, and how many are guessed."""
        return f"{values['nll']:.4f} nats per {self.predicts}, {values['accuracy']:.1%} of them right"

    def digest(self) -> str:
        """Return the SHA-256 of what is measured."""
        return hash_ids([part for batch in self.batches for part in (batch.inputs_BT, batch.targets_BT)])


_ROWS = 512  # distributions in memory at once


def _measured(network: Any, batch: Any) -> tuple[float, int, int]:
    """Return nats, right guesses and number of the hidden tokens of a batch."""
    features_BTD, head = read(network, batch), cast(Head, network.head)
    targets_BT = torch.from_numpy(batch.targets_BT).to(features_BTD.device)
    counted_BT = targets_BT != NOT_COUNTED
    nats, right = 0.0, 0
    pairs = zip(
        torch.split(features_BTD[counted_BT], _ROWS), torch.split(targets_BT[counted_BT], _ROWS), strict=True
    )
    for features_ND, targets_N in pairs:
        logp_NV = head.log_probs(features_ND)
        nats -= float(logp_NV.gather(1, targets_N[:, None]).double().sum())
        right += int((logp_NV.argmax(dim=1) == targets_N).sum())
    return nats, right, int(counted_BT.sum())
