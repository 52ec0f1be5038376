"""Classifiers: words, an encoder, one vector for the text, a label; window, rnn, lstm, gru, transformer, …

"RNNs can be used for sentence classification" [IITD-2, XMU "RNN in PyTorch": SentimentRNN].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field
from torch import Tensor, nn

from nextword.blocks.dropout import Dropout
from nextword.blocks.roles import Role, Roles
from nextword.core.catalog import find
from nextword.core.family import Rung
from nextword.core.settings import Settings, Slot
from nextword.data.batches.words import Sentences
from nextword.data.classes import ClassVocabulary
from nextword.models.calibration import Calibration
from nextword.models.encoders.encoder import make_encoder
from nextword.models.family import load_weights, save_weights
from nextword.models.network import device_of
from nextword.models.training import NeuralTrainSettings
from nextword.models.words import WordInput, WordInputSettings, Words, to_tensors
from nextword.store.reading import RunFolder
from nextword.store.writing import NewRun

_POSITIONS = 8192  # of a batch that is predicted


class Classifier(Protocol):
    """A trained classifier of any family."""

    calibration: Calibration
    vocabulary: ClassVocabulary

    def logits(self, texts: list[str]) -> npt.NDArray[Any]:
        """Return a score for each label of each text, before the temperature."""
        ...


class ClassifierSettings(WordInputSettings):
    """What every neural classifier has beside its encoder."""

    pooling: Slot["pooling"] = Field("max", description="one vector for the text: slot pooling")
    class_weights: Literal["none", "balanced"] = Field(
        "none", description="balanced: rare labels count more, in inverse proportion to their frequency"
    )


class ClassifierNetwork(nn.Module):
    """Words in, a score for each label out."""

    outer = ("words",)  # parts whose size follows from the vocabulary
    roles: ClassVar[Roles] = {"to_labels": Role.HEAD}

    def __init__(self, encoder: str, settings: Any, vocabulary: ClassVocabulary) -> None:
        super().__init__()
        self.words = WordInput(settings, vocabulary.lexicon, vocabulary.states)
        self.encoder = make_encoder(encoder, settings, self.words.width)
        self.width = self.encoder.width
        self.pooling = find("pooling", settings.pooling)(self.width)
        self.drop = Dropout(settings.dropout)
        self.to_labels = nn.Linear(self.width, len(vocabulary.labels))
        nn.init.xavier_uniform_(self.to_labels.weight)
        nn.init.zeros_(self.to_labels.bias)
        self.vocabulary = vocabulary

    def forward(self, words: Words) -> Tensor:
        """Return ``logits_BK``."""
        return self.from_vectors(self.words(words), words.lengths_B)

    def from_vectors(self, x_BTE: Tensor, lengths_B: Tensor) -> Tensor:
        """Return ``logits_BK`` from the vectors of the words."""
        h_BTD, lengths_B = self.encoder(x_BTE, lengths_B), self.encoder.lengths(lengths_B)
        v_BD = self.pooling(h_BTD, lengths_B, self.encoder.last(h_BTD, lengths_B))
        logits_BK: Tensor = self.to_labels(self.drop(v_BD)).float()
        return logits_BK


@dataclass
class NeuralClassifier:
    """A trained network that classifies texts."""

    network: ClassifierNetwork
    vocabulary: ClassVocabulary
    calibration: Calibration = field(default_factory=Calibration)
    is_probability = True

    def __post_init__(self) -> None:
        self.network.eval()

    @property
    def parameters(self) -> int:
        """Return the number of learned weights."""
        return sum(weight.numel() for weight in self.network.parameters())

    def logits(self, texts: list[str]) -> npt.NDArray[np.float32]:
        """Return the scores of texts; those of similar length share a batch."""
        return self.logits_of([self.vocabulary.words_of(text) for text in texts])

    @torch.inference_mode()
    def logits_of(self, words: list[list[str]]) -> npt.NDArray[np.float32]:
        """Return the scores of texts that are split into words."""
        packed = Sentences(words, self.vocabulary.lexicon)
        found_NK = np.zeros((len(words), len(self.vocabulary.labels)), np.float32)
        order = np.argsort(-packed.lengths_N, kind="stable")
        at = 0
        while at < len(order):
            rows = max(1, _POSITIONS // max(1, int(packed.lengths_N[order[at]])))
            part = order[at : at + min(rows, 256)]
            logits_BK = self.network(to_tensors(packed.take(part), device_of(self.network)))
            found_NK[part] = logits_BK.cpu().numpy()
            at += len(part)
        return found_NK


class ClassifierFamily:
    """One family of neural classifiers: the encoder of the same name."""

    task = "classify"
    Training = NeuralTrainSettings
    holds_text = False
    measures = True
    default_tokenizer = ""
    row_length = 32

    def __init__(
        self, name: str, encoder: str, defaults: Mapping[str, Any], ladder: tuple[Rung, ...] = ()
    ) -> None:
        self.name, self.encoder, self.ladder = name, encoder, ladder
        self.defaults: Mapping[str, Any] = {**DEFAULTS, **defaults}

    @property
    def Settings(self) -> type[Settings]:  # noqa: N802 - the protocol's name
        """Return the settings of a classifier with this encoder."""
        own = find("encoder", self.encoder).Settings
        made: type[Settings] = type(
            f"{own.__name__}OfClassifier", (ClassifierSettings, own), {"__module__": __name__}
        )
        return made

    def build(self, settings: Any, vocabulary: ClassVocabulary) -> ClassifierNetwork:
        """Build a new network with random weights."""
        return ClassifierNetwork(self.encoder, settings, vocabulary)

    def save(self, model: NeuralClassifier, folder: NewRun) -> None:
        """Write the weights and the calibration."""
        save_weights(model.network, folder)
        model.calibration.save(folder)

    def load(self, folder: RunFolder, settings: Any, vocabulary: ClassVocabulary) -> NeuralClassifier:
        """Build the network and fill in its weights."""
        network = load_weights(lambda: self.build(settings, vocabulary), folder)
        return NeuralClassifier(network, vocabulary, Calibration.load(folder))


DEFAULTS: dict[str, Any] = {
    "train.rate": 2e-3, "train.batch": 32, "train.epochs": 8, "train.unigram": False, "train.patience": 0,
}  # fmt: skip


def _rungs(*sizes: tuple[str, int, int]) -> tuple[Rung, ...]:
    return tuple(
        Rung(name, {"model.layers": layers, "model.hidden": hidden}, f"{layers} x {hidden}")
        for name, layers, hidden in sizes
    )


RECURRENT = _rungs(("tiny", 1, 64), ("mini", 1, 128), ("small", 1, 256))
LSTM = ClassifierFamily("lstm", "lstm", {}, RECURRENT)
"""Classifier: LSTM layers that read from both ends."""
RNN = ClassifierFamily("rnn", "rnn", {}, RECURRENT)
"""Classifier: vanilla recurrent layers that read from both ends."""
GRU = ClassifierFamily("gru", "gru", {}, RECURRENT)
"""Classifier: GRU layers as on the slide, which read from both ends."""
GRU_TORCH = ClassifierFamily("gru-torch", "gru-torch", {}, RECURRENT)
"""Classifier: GRU layers as in PyTorch, which read from both ends."""
MINGRU = ClassifierFamily("mingru", "mingru", {}, RECURRENT)
"""Classifier: minimal GRU layers, which are computed in parallel."""
WINDOW = ClassifierFamily("window", "window", {}, _rungs(("tiny", 1, 100), ("small", 1, 300)))
"""Classifier: each word with its neighbours."""
CONVOLUTION = ClassifierFamily("convolution", "convolution", {}, _rungs(("tiny", 2, 96), ("small", 3, 192)))
"""Classifier: filters over words, wider from layer to layer."""
TRANSFORMER = ClassifierFamily(
    "transformer", "transformer", {"train.rate": 1e-3}, _rungs(("tiny", 1, 64), ("small", 2, 128))
)
"""Classifier: attention that sees the whole text at once."""
