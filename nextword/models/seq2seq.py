"""Encoder-decoders as families and as language models: a decoder that has read its source is one.

[PENN "Sequence to sequence": "a conditional language model"]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field

from nextword.core.contracts import Array, Source
from nextword.core.errors import ConfigError
from nextword.core.family import Rung
from nextword.core.settings import Settings
from nextword.data.paired import PairVocabulary
from nextword.models.family import load_weights, save_weights
from nextword.models.network import Network, NeuralLanguageModel, NeuralState
from nextword.models.seq2seq_recurrent import (
    IndependentTranslator,
    RecurrentTranslator,
    RecurrentTranslatorSettings,
    RNNTranslatorSettings,
)
from nextword.models.seq2seq_transformer import TransformerTranslator, TransformerTranslatorSettings
from nextword.models.training import NeuralTrainSettings
from nextword.store.reading import RunFolder
from nextword.store.writing import NewRun


class TranslationTrainSettings(NeuralTrainSettings):
    """How an encoder-decoder learns."""

    smoothing: float = Field(0.1, ge=0, lt=1, description="label smoothing: this share goes to all tokens")
    coverage_weight: float = Field(
        1.0, ge=0, description="of the loss of looking twice at a position, where model.coverage is on"
    )
    metric: Literal["nll", "bleu", "chrf"] = Field(
        "nll", description="what decides which weights are best, and when patience ends"
    )


class Translator(NeuralLanguageModel):
    """An encoder-decoder on the contract of `core.contracts`; also an `Aligner` where it attends."""

    def __init__(self, network: Any, vocabulary: PairVocabulary) -> None:
        super().__init__(network)
        self.source_tokenizer, self.target_tokenizer = vocabulary.source, vocabulary.target
        self.source_limit: int | None = network.reader.limit
        if network.attends:  # only then is it an `Aligner`
            self.attention = self._looked

    def start(self, batch: int, source: Source | None = None, begin: bool = True) -> NeuralState:
        """Return rows that have read their sources, and START."""
        if source is None:
            raise ConfigError("this model writes what belongs to a source, and none was given; give one")
        state = super().start(batch, Source(*map(self._ids, source)), begin)
        if begin:
            return state
        network: Any = self.network
        return state._replace(feature_BD=network.plain(state.feature_BD, state.inner))

    @torch.inference_mode()
    def _looked(self, state: NeuralState) -> Array:
        """Return how much the last token looked at each source position."""
        network: Any = self.network
        return network.looked(state.inner)


class TranslatorFamily:
    """One family of encoder-decoders."""

    task = "translate"
    Training = TranslationTrainSettings
    holds_text = False
    measures = True
    default_tokenizer = "bpe"
    row_length = 30  # positions of source and target together

    def __init__(
        self,
        name: str,
        settings: type[Settings],
        network: Callable[..., Network],
        defaults: Mapping[str, Any],
        ladder: tuple[Rung, ...],
    ) -> None:
        self.name, self.Settings, self._network, self.ladder = name, settings, network, ladder
        self.defaults: Mapping[str, Any] = {**DEFAULTS, **defaults}

    def build(self, settings: Any, vocabulary: PairVocabulary) -> Network:
        """Build a new network with random weights."""
        return self._network(settings, vocabulary)

    def save(self, model: Translator, folder: NewRun) -> None:
        """Write the weights."""
        save_weights(model.network, folder)

    def load(self, folder: RunFolder, settings: Any, vocabulary: PairVocabulary) -> Translator:
        """Build the network and fill in its weights."""
        network = load_weights(lambda: self.build(settings, vocabulary), folder)
        network.fixed = True
        return Translator(network, vocabulary)


class MinGRUTranslatorSettings(RecurrentTranslatorSettings):
    """The minimal GRU, whose state has no bounds."""

    feature_scale: ClassVar[float] = 11.0


DEFAULTS: dict[str, Any] = {
    "train.batch": 64, "train.epochs": 20, "train.betas": (0.9, 0.98), "train.warmup": 0.05,
}  # fmt: skip


def _recurrent(base: float) -> tuple[Rung, ...]:
    sizes = (("tiny", 1, 128), ("mini", 1, 256), ("small", 1, 384), ("medium", 2, 512))
    return tuple(
        Rung(
            name,
            {"model.layers": layers, "model.hidden": hidden, "train.rate": _rate(base, hidden)},
            f"{layers} x {hidden}",
        )
        for name, layers, hidden in sizes
    )


def _transformer(base: float) -> tuple[Rung, ...]:
    sizes = (
        ("nano", 2, 96), ("tiny", 2, 128), ("mini", 3, 192), ("small", 3, 256), ("medium", 4, 384),
        ("large", 6, 512),
    )  # fmt: skip
    return tuple(
        Rung(
            name,
            {
                "model.layers": layers, "model.hidden": hidden, "model.inner": 2 * hidden,
                "train.rate": _rate(base, hidden),
            },
            f"{layers}+{layers} x {hidden}",
        )
        for name, layers, hidden in sizes
    )  # fmt: skip


def _rate(base: float, width: int) -> float:
    """Return a rate that falls with the square root of the width; ``base`` is that of width 128."""
    return float(f"{base * (128 / width) ** 0.5:.2g}")


def _family(name: str, settings: type[Settings] = RecurrentTranslatorSettings) -> TranslatorFamily:
    network = partial(RecurrentTranslator, name)
    return TranslatorFamily(name, settings, network, {"train.rate": 3e-3}, _recurrent(4e-3))


RNN = _family("rnn", RNNTranslatorSettings)
"""Encoder-decoder: vanilla recurrent layers."""
LSTM = _family("lstm")
"""Encoder-decoder: LSTM layers."""
GRU = _family("gru")
"""Encoder-decoder: GRU layers as on the slide."""
GRU_TORCH = _family("gru-torch")
"""Encoder-decoder: GRU layers as in PyTorch."""
MINGRU = _family("mingru", MinGRUTranslatorSettings)
"""Encoder-decoder: minimal GRU layers."""
BABBLE = TranslatorFamily(
    "babble",
    RecurrentTranslatorSettings,
    partial(IndependentTranslator, "lstm"),
    {"train.rate": 3e-3},
    _recurrent(4e-3),
)
"""Encoder-decoder that writes every word without reading the others: the design that fails."""
TRANSFORMER = TranslatorFamily(
    "transformer",
    TransformerTranslatorSettings,
    TransformerTranslator,
    {
        "train.rate": 1.4e-3, "model.dropout": 0.1, "model.inner": 512, "model.embedding_kind": "scaled",
    },
    _transformer(2e-3),
)  # fmt: skip
"""Encoder-decoder: attention only (Vaswani et al. 2017)."""
