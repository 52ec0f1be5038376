"""Trained classifiers: held-out texts and predictions, whatever the family."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nextword.core.task import Measurement, Ranks
from nextword.data.classes import ClassVocabulary, LabelledTexts
from nextword.evaluation.classification import report
from nextword.models.calibration import Calibration

if TYPE_CHECKING:  # families without networks do without torch
    from nextword.models.classifier import ClassifierNetwork


def measure_logits(logits_NK: Any, examples: LabelledTexts, vocabulary: ClassVocabulary) -> Measurement:
    """Compare the scores of held-out texts with their labels."""
    found = report(logits_NK, examples.labels, vocabulary.labels, Calibration(), vocabulary.several)
    values = {"accuracy": found.accuracy, "macro_f1": found.macro_f1}
    if vocabulary.several:
        return Measurement(values | {"micro_f1": found.micro_f1}, -found.micro_f1, found.texts)
    return Measurement(values | {"nll": found.nll}, -found.accuracy + 1e-3 * (found.nll or 0.0), found.texts)


@dataclass(frozen=True)
class HeldOutLabels:
    """Texts that are classified while a network learns."""

    examples: LabelledTexts
    vocabulary: ClassVocabulary

    @property
    def tokens(self) -> int:
        """Return the number of texts."""
        return len(self.examples)

    def measure(
        self,
        network: ClassifierNetwork,
        tokens: int = 0,
        products: AbstractContextManager[Any] | None = None,
        ranks: Ranks | None = None,
    ) -> Measurement:
        """Classify about so many texts: every n-th, the same each time."""
        from nextword.models.classifier import NeuralClassifier

        was_training, part = network.training, self._part(tokens)
        with products or nullcontext():
            model = NeuralClassifier(network, self.vocabulary)
            logits_NK = model.logits_of(list(map(list, part.words)))
        network.train(was_training)
        return measure_logits(logits_NK, part, self.vocabulary)

    def _part(self, texts: int) -> LabelledTexts:
        """Return every n-th text, so that there are about so many; 0: all."""
        every = len(self.examples) // texts if texts else 1
        if every < 2:
            return self.examples
        held = self.examples
        return LabelledTexts(held.texts[::every], held.labels[::every], self.vocabulary, held.words[::every])

    def describe(self, values: Mapping[str, float | None]) -> str:
        """Return accuracy and F1 as people read them."""
        name = "micro_f1" if "micro_f1" in values else "macro_f1"
        return f"accuracy {values['accuracy']:.2%}, {name.replace('_f1', ' F1')} {values[name]:.4f}"

    def digest(self) -> str:
        """Return the SHA-256 of what is measured."""
        found = hashlib.sha256(self.examples.sentences.form_ids.tobytes())
        found.update(np.ascontiguousarray(self.examples.targets).tobytes())
        return found.hexdigest()
