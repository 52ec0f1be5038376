"""Taggers: words, an encoder, a tag for each word; window, rnn, lstm, gru, transformer and convolution.

"Sequence tagging" [IITD-2, uses of RNNs]; the BiLSTM-CRF: Huang et al. 2015, Lample et al. 2016.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from nextword.blocks import crf
from nextword.blocks.crf import Chain
from nextword.blocks.own_tags import AutoregressiveTags, Feed
from nextword.blocks.tag_heads import TagHead
from nextword.core.catalog import find
from nextword.core.errors import ConfigError, DamagedError
from nextword.core.family import Rung
from nextword.core.settings import Settings, Slot
from nextword.data.spans import OUTSIDE as OUTSIDE_TAG
from nextword.data.tagged import TagVocabulary
from nextword.models.encoders.encoder import make_encoder
from nextword.models.family import load_weights, save_weights
from nextword.models.training import NeuralTrainSettings
from nextword.models.words import Spelled, WordInput, WordInputSettings, Words
from nextword.store.reading import RunFolder
from nextword.store.writing import NewRun

OUTSIDE = "outside.json"


class TaggerSettings(WordInputSettings):
    """What every tagger has beside its encoder."""

    head: Slot["tag_head"] = Field("crf", description="tags from features: slot tag_head")
    beam: int = Field(1, ge=1, le=1000, description="hypotheses of the head autoregressive; 1: greedy")


class TaggerNetwork(nn.Module):
    """Words in, scores of tags out."""

    outer = ("words",)  # parts whose size follows from the vocabulary

    def __init__(self, encoder: str, settings: Any, vocabulary: TagVocabulary, states: int = 0) -> None:
        super().__init__()
        self.words = WordInput(settings, vocabulary.lexicon, states)
        self.encoder = make_encoder(encoder, settings, self.words.width)
        self.width = self.encoder.width
        if int(self.encoder.lengths(torch.tensor([8]))) != 8:
            raise ConfigError(
                f"'model.stack' is '{settings.stack}', which shortens a sentence, but every word needs a "
                "tag; set 'model.stack' to 'plain'"
            )
        self.head: TagHead = find("tag_head", settings.head)(
            self.width, *(torch.from_numpy(array) for array in vocabulary.legal())
        )
        self.head.beam = settings.beam

    def features(self, words: Words) -> Tensor:
        """Return ``h_BTD``, the encoder's feature of each word."""
        features_BTD: Tensor = self.encoder(self.words(words), words.lengths_B)
        return features_BTD

    def loss(self, words: Words, tags_BT: Tensor, feed: Feed | None = None) -> Tensor:
        """Return the sum of -log p of the tags; ``feed``: what an autoregressive head reads in training."""
        features_BTD = self.features(words)
        if feed is not None and isinstance(self.head, AutoregressiveTags):
            return self.head.loss(features_BTD, tags_BT, words.lengths_B, feed)
        return self.head.loss(features_BTD, tags_BT, words.lengths_B)

    def chain(self, words: Words) -> Chain:
        """Return the scores of tags and transitions, from which everything is predicted."""
        return self.head.chain(self.features(words), words.lengths_B)


class TaggerFamily:
    """One family of taggers: the encoder of the same name."""

    task = "tag"
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
        """Return the settings of a tagger with this encoder."""
        own = find("encoder", self.encoder).Settings
        made: type[Settings] = type(
            f"{own.__name__}OfTagger", (TaggerSettings, own), {"__module__": __name__}
        )
        return made

    def build(self, settings: Any, vocabulary: TagVocabulary, states: int = 0) -> TaggerNetwork:
        """Build a new network with random weights; ``states``: features of language models."""
        return TaggerNetwork(self.encoder, settings, vocabulary, states)

    def save(self, model: Tagger, folder: NewRun) -> None:
        """Write the weights, and how much lower the tag O is scored."""
        save_weights(model.network, folder)
        if model.lowered:
            folder.write_json(OUTSIDE, {"lowered": model.lowered})

    def load(self, folder: RunFolder, settings: Any, vocabulary: TagVocabulary) -> Tagger:
        """Build the network and fill in its weights."""
        states = vocabulary.states
        network = load_weights(lambda: self.build(settings, vocabulary, states), folder)
        return Tagger(network, vocabulary, _lowered(folder))


class Tags(NamedTuple):
    """The best tags of a batch, and how probable each tag is at each word."""

    tags_BT: Tensor
    marginals_BTK: Tensor
    chain: Chain


class Tagger:
    """A trained network that tags sentences."""

    is_probability = True

    def __init__(self, network: TaggerNetwork, vocabulary: TagVocabulary, lowered: float = 0.0) -> None:
        self.network, self.vocabulary = network.eval(), vocabulary
        self.lowered = lowered  # what is taken from the score of the tag O when tags are chosen
        self.spelled = Spelled(network.words.spelling)

    def best(self, chain: Chain) -> Tensor:
        """Return ``tags_BT``: the best sequences."""
        if self.lowered and chain.decided_BT is None:
            outside_K = torch.tensor([tag == OUTSIDE_TAG for tag in self.vocabulary.tags])
            change_K = self.lowered * outside_K.to(chain.emissions_BTK)
            chain = chain._replace(emissions_BTK=chain.emissions_BTK - change_K)
        return crf.viterbi(chain)[0]

    @property
    def parameters(self) -> int:
        """Return the number of learned weights."""
        return sum(weight.numel() for weight in self.network.parameters())


def _lowered(folder: RunFolder) -> float:
    """Return what is taken from the score of O; runs without the file take nothing."""
    if OUTSIDE not in folder:
        return 0.0
    try:
        return float(folder.read_json(OUTSIDE)["lowered"])
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedError(f"{OUTSIDE} is damaged ({error}); train the run again") from error


DEFAULTS: dict[str, Any] = {
    "train.rate": 3e-3, "train.batch": 32, "train.epochs": 15, "train.unigram": False, "train.ema": 0.0,
}  # fmt: skip


def _recurrent() -> tuple[Rung, ...]:
    sizes = (("tiny", 1, 64), ("mini", 1, 128), ("small", 1, 200), ("medium", 2, 256))
    return tuple(
        Rung(name, {"model.layers": layers, "model.hidden": hidden}, f"{layers} x {hidden} in each direction")
        for name, layers, hidden in sizes
    )


RECURRENT = _recurrent()
LSTM = TaggerFamily("lstm", "lstm", {}, RECURRENT)
"""Tagger: LSTM layers that read from both ends."""
RNN = TaggerFamily("rnn", "rnn", {}, RECURRENT)
"""Tagger: vanilla recurrent layers that read from both ends."""
GRU = TaggerFamily("gru", "gru", {}, RECURRENT)
"""Tagger: GRU layers as on the slide, which read from both ends."""
GRU_TORCH = TaggerFamily("gru-torch", "gru-torch", {}, RECURRENT)
"""Tagger: GRU layers as in PyTorch, which read from both ends."""
MINGRU = TaggerFamily("mingru", "mingru", {}, RECURRENT)
"""Tagger: minimal GRU layers, which are computed in parallel."""
WINDOW = TaggerFamily(
    "window",
    "window",
    {},
    tuple(
        Rung(name, {"model.hidden": size}, f"{size} hidden") for name, size in (("tiny", 100), ("small", 300))
    ),
)
"""Tagger: each word with its neighbours."""
CONVOLUTION = TaggerFamily(
    "convolution",
    "convolution",
    {"model.layers": 4},
    tuple(Rung(name, {"model.hidden": size}, f"4 x {size}") for name, size in (("tiny", 96), ("small", 192))),
)
"""Tagger: filters over words, wider from layer to layer."""
TRANSFORMER = TaggerFamily(
    "transformer",
    "transformer",
    {"model.layers": 2, "train.rate": 1e-3},
    tuple(
        Rung(name, {"model.hidden": size, "model.layers": layers}, f"{layers} x {size}")
        for name, layers, size in (("tiny", 2, 64), ("small", 2, 128), ("medium", 4, 192))
    ),
)
"""Tagger: attention that sees the whole text at once."""
