"""Classification with networks: first weights, class weights, the loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from nextword.blocks import losses
from nextword.core.family import NetworkFamily
from nextword.core.task import Loss
from nextword.data.batches.batch import NOT_COUNTED
from nextword.data.classes import LabelledRows, LabelledTexts
from nextword.models import precision
from nextword.models.classifier import ClassifierNetwork, ClassifierSettings
from nextword.models.network import device_of
from nextword.models.randomness import INITIAL, seeded
from nextword.models.words import to_tensors
from nextword.runs.settings import RunSettings


def first_weights(settings: RunSettings, prepared: Any) -> ClassifierNetwork:
    """Build a network whose weights follow from the seed."""
    family = settings.find_family()
    assert isinstance(family, NetworkFamily)
    with seeded(torch.device("cpu"), settings.train.seed, INITIAL):
        network: ClassifierNetwork = family.build(settings.model, prepared.vocabulary)
    if prepared.vectors is not None:
        prepared.vectors.fill(network.words)
    return network


def class_weights(settings: RunSettings, examples: LabelledTexts) -> Tensor | None:
    """Return a weight for each label, in inverse proportion to its frequency, if the settings ask for it."""
    model = settings.model
    if not isinstance(model, ClassifierSettings) or model.class_weights == "none":
        return None
    targets = examples.targets
    counts_K = targets.sum(axis=0) if targets.ndim == 2 else np.bincount(targets[targets >= 0])
    counts_K = np.maximum(counts_K, 1)
    return torch.tensor(counts_K.sum() / (len(counts_K) * counts_K), dtype=torch.float32)


@dataclass(frozen=True)
class LabelLoss:
    """-log p(label | text), summed; of several labels each is a question of its own."""

    precision: str
    smoothing: float = 0.0
    weights_K: Tensor | None = None
    carries: bool = False

    def at(self, network: ClassifierNetwork, progress: float, counts: bool = True) -> LabelLoss:
        """Return itself: the loss is the same throughout."""
        return self

    def pieces(self, batch: LabelledRows) -> list[LabelledRows]:
        """Return the batch: texts are not cut."""
        return [batch]

    def __call__(self, network: ClassifierNetwork, piece: LabelledRows, before: Any) -> tuple[Loss, None]:
        """Return the loss of a batch."""
        device = device_of(network)
        products = precision.products_in(precision.dtype_of(self.precision), device)
        with products(), losses.collecting() as found:
            logits_BK = network(to_tensors(piece, device))
        labels = torch.from_numpy(piece.labels).to(device)
        total, parts = losses.joined(self.nats(logits_BK.float(), labels), found, piece.tokens)
        return Loss(total, parts), None

    def nats(self, logits_BK: Tensor, labels: Tensor) -> Tensor:
        """Return the sum of -log p over the labels that count."""
        if labels.ndim == 1:
            return F.cross_entropy(
                logits_BK, labels, self.weights_K, ignore_index=NOT_COUNTED, reduction="sum",
                label_smoothing=self.smoothing,
            )  # fmt: skip
        counted_B = labels[:, 0] != NOT_COUNTED
        return F.binary_cross_entropy_with_logits(
            logits_BK[counted_B], labels[counted_B], reduction="sum", pos_weight=self.weights_K
        )
