"""Recurrent language models: embeddings, stacked recurrent layers, a head; rnn, lstm, gru, gru-torch, mingru.

[IITD-1 "A Simple RNN Language Model"], [IITD-2 "LSTM", "Gated Recurrent Units (GRUs)", "Multi-layer RNNs"].
Dropout as in Zaremba et al. 2014 and Merity et al. 2017 (AWD-LSTM); tied embeddings: Press & Wolf 2017.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, cast

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from nextword.blocks.cells import Cell
from nextword.blocks.dropout import WordDropout
from nextword.blocks.embeddings import make_embedding
from nextword.blocks.heads import make_head
from nextword.blocks.states import State, reset
from nextword.core.catalog import find
from nextword.core.contracts import never_next, refuse_source
from nextword.core.errors import ConfigError
from nextword.core.settings import Slot
from nextword.models.family import NeuralFamily, ScaledSettings
from nextword.models.network import Network


class RecurrentSettings(ScaledSettings):
    """What all recurrent families have."""

    layers: int = Field(2, ge=1, le=64, description="stacked recurrent layers L")
    hidden: int = Field(256, ge=1, le=2**16, description="size H of a layer's state")
    embedding: int = Field(0, ge=0, le=2**16, description="size E of a token's vector; 0: as hidden")
    connections: Slot["connection"] = Field("plain", description="between stacked layers: slot connection")
    initial: Slot["initial"] = Field("zero", description="the state before the first token: slot initial")
    dropout_embedding: float = Field(0.0, ge=0, lt=1, description="share of the embeddings' features dropped")
    dropout_words: float = Field(0.0, ge=0, lt=1, description="share of the vocabulary dropped in a batch")
    dropout_kind: Slot["dropout"] = Field(
        "locked", description="locked: the same features at all positions of a row"
    )
    bidirectional: bool = Field(False, description="refused: it would see the token it has to predict")

    @model_validator(mode="after")
    def _reads_forwards(self) -> RecurrentSettings:
        if self.bidirectional:
            raise ConfigError(
                "'model.bidirectional' is true, but a bidirectional language model would see the token it "
                "has to predict; leave it at false"
            )
        return self

    def cell_options(self) -> dict[str, Any]:
        """Return the options of this family's cell beside its sizes."""
        return {}


class GatedSettings(RecurrentSettings):
    """Families with weights from one state to the next."""

    dropout_weight: float = Field(0.0, ge=0, lt=1, description="share of state-to-state weights dropped")


class RNNSettings(GatedSettings):
    """The vanilla network."""

    feature_scale: ClassVar[float] = 34.0
    activation: Slot["cell_activation"] = Field("tanh", description="σ of the cell")

    def cell_options(self) -> dict[str, Any]:
        """Return the name of σ."""
        return {"activation": self.activation}


class RecurrentNetwork(Network):
    """Reads any number of tokens; what it knows of them is a state of fixed size for each layer."""

    kind = "recurrent"
    context = None

    def __init__(self, name: str, settings: RecurrentSettings, vocab_size: int, closed: bool) -> None:
        super().__init__()
        embedding = settings.embedding or settings.hidden
        self.vocab_size, self.carries, forbidden = vocab_size, settings.carry, never_next(closed)
        self.scale_words, self.scale_features = settings.scales(embedding)
        options = settings.option_groups()
        self.embedding = make_embedding(settings.embedding_kind, vocab_size, embedding, options)
        self.layers, self.joins, width = _stack(name, settings, embedding)
        begin = find("initial", settings.initial)
        self.starts = nn.ModuleList(begin(settings.hidden, cast(Cell, cell).parts) for cell in self.layers)
        drop = find("dropout", settings.dropout_kind)
        self.drop_words = WordDropout(settings.dropout_words)
        self.drop_embedding = drop(settings.dropout_embedding)
        self.drop = drop(settings.dropout)
        fits = not settings.tied or width == embedding
        self.fit: nn.Module = nn.Identity() if fits else nn.Linear(width, embedding, bias=False)
        self.width = width if fits else embedding
        tied = self.embedding if settings.tied else None
        self.head = make_head(settings.head, self.width, vocab_size, forbidden, tied, options=options)

    def start(self, batch: int, source: Any = None) -> State:
        """Return every layer's initial state: zero, or learned."""
        refuse_source(source)
        return tuple(start(batch) for start in self.starts)

    def reset(self, state: State, rows_B: Tensor) -> State:
        """Reset the rows that are True to having read nothing."""
        return reset(state, self.start(1), rows_B)

    def read(self, ids_BT: Tensor, state: State, lengths_B: Tensor | None = None) -> tuple[Tensor, State]:
        """Run the forward pass layer by layer, all positions at once; inside, positions come first."""
        if ids_BT.shape[1] == 0:
            return torch.zeros(*ids_BT.shape, self.width, dtype=self.dtype, device=self.device), state
        x_TBE = self._embed(ids_BT.T, lengths_B)
        after = []
        for layer, join, before in zip(self.layers, self.joins, state, strict=True):
            h_TBH, now = cast(Cell, layer).read(x_TBE, before, lengths_B)
            x_TBE = self.drop(join(x_TBE, h_TBH))
            after.append(now)
        features_TBD: Tensor = self.fit(x_TBE) * self.scale_features
        return features_TBD.transpose(0, 1), tuple(after)

    def _embed(self, ids_TB: Tensor, lengths_B: Tensor | None) -> Tensor:
        """Look up the tokens' vectors; past a row's end they are 0."""
        pads_TB = None
        if lengths_B is not None:
            pads_TB = torch.arange(len(ids_TB), device=ids_TB.device)[:, None] >= lengths_B
            ids_TB = ids_TB.masked_fill(pads_TB, 0)
        x_TBE: Tensor = self.embedding(ids_TB) * self.scale_words
        x_TBE = self.drop_words(x_TBE, ids_TB, self.vocab_size)
        if pads_TB is not None:
            x_TBE = x_TBE.masked_fill(pads_TB[..., None], 0.0)
        return self.drop_embedding(x_TBE)


def _stack(name: str, settings: RecurrentSettings, width: int) -> tuple[nn.ModuleList, nn.ModuleList, int]:
    """Return the layers, what joins each to the next, and the width at the top."""
    layers, joins = nn.ModuleList(), nn.ModuleList()
    for _ in range(settings.layers):
        layer = find("cell", name)(width, settings.hidden, **settings.cell_options())
        layer.weight_drop = getattr(settings, "dropout_weight", 0.0)
        join = find("connection", settings.connections)(width, settings.hidden)
        width = join.width
        layers.append(layer)
        joins.append(join)
    return layers, joins, width


class MinGRUSettings(RecurrentSettings):
    """The minimal GRU, whose state has no bounds."""

    feature_scale: ClassVar[float] = 11.0


DEFAULTS: dict[str, Any] = {"train.rate": 8e-3}
RNN = NeuralFamily("rnn", RNNSettings, partial(RecurrentNetwork, "rnn"), {"train.rate": 5e-3})
"""The vanilla recurrent network: one state, rewritten at every token (Elman 1990)."""
LSTM = NeuralFamily("lstm", GatedSettings, partial(RecurrentNetwork, "lstm"), DEFAULTS)
"""Long short-term memory: gates decide what a cell keeps (Hochreiter & Schmidhuber 1997)."""
GRU = NeuralFamily("gru", GatedSettings, partial(RecurrentNetwork, "gru"), DEFAULTS)
"""Gated recurrent units, as on the slide: the reset gate comes before the product (Cho et al. 2014)."""
GRU_TORCH = NeuralFamily("gru-torch", GatedSettings, partial(RecurrentNetwork, "gru-torch"), DEFAULTS)
"""Gated recurrent units as in PyTorch: the reset gate comes after the product."""
MINGRU = NeuralFamily("mingru", MinGRUSettings, partial(RecurrentNetwork, "mingru"), DEFAULTS)
"""Minimal gated recurrent units: gates see only the token, so all positions are computed at once."""
