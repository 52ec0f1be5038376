"""Recurrent encoders: stacked layers that read from both ends.

"Bidirectional RNNs", "Multi-layer RNNs" [IITD-2]; Schuster & Paliwal 1997. A bidirectional network
cannot be a language model, but for a sentence that is there as a whole it sees what comes after a word, too.
"""

from __future__ import annotations

from typing import ClassVar, Literal, cast

import torch
from pydantic import Field
from torch import Tensor, nn

from nextword.blocks.recurrent import FastLayer
from nextword.blocks.spelling import reversed_rows
from nextword.core.catalog import find
from nextword.core.settings import Slot
from nextword.models.encoders.encoder import Encoder, EncoderSettings


class RecurrentEncoderSettings(EncoderSettings):
    """Stacked recurrent layers."""

    bidirectional: Literal["separate", "tied", "none"] = Field(
        "separate", description="read from both ends, with separate or tied weights; none: left to right"
    )
    connections: Slot["connection"] = Field("plain", description="between stacked layers: slot connection")
    dropout_weight: float = Field(0.0, ge=0, lt=1, description="share of state-to-state weights dropped")


class RNNEncoderSettings(RecurrentEncoderSettings):
    """The vanilla network."""

    activation: Slot["cell_activation"] = Field("tanh", description="σ of the cell")


class Direction(nn.Module):
    """One recurrent layer that reads from the first word, or from the last."""

    def __init__(self, layer: FastLayer, from_end: bool) -> None:
        super().__init__()
        self.layer, self.from_end = layer, from_end

    def forward(self, x_TBE: Tensor, lengths_B: Tensor) -> Tensor:
        """Return ``h_TBH``; padding stands behind the words in both directions, so nothing depends on it."""
        B, H = x_TBE.shape[1], self.layer.hidden
        zero = tuple(x_TBE.new_zeros(B, H, dtype=torch.float32) for _ in range(self.layer.parts))
        x_TBE = reversed_rows(x_TBE, lengths_B) if self.from_end else x_TBE
        h_TBH, _ = self.layer.read_all(x_TBE, zero, None)
        return reversed_rows(h_TBH, lengths_B) if self.from_end else h_TBH


class RecurrentEncoder(Encoder):
    """Layers of one cell, read from both ends unless the settings say otherwise."""

    Settings: ClassVar[type[EncoderSettings]] = RecurrentEncoderSettings
    cell: ClassVar[str]  # a name of the slot "cell"

    def __init__(self, settings: RecurrentEncoderSettings, inputs: int) -> None:
        super().__init__()
        self.drop = find("dropout", "locked")(settings.dropout)
        self.layers, self.joins = nn.ModuleList(), nn.ModuleList()
        options = {"activation": settings.activation} if isinstance(settings, RNNEncoderSettings) else {}
        width = inputs
        for _ in range(settings.layers):
            ahead = cast(FastLayer, find("cell", self.cell)(width, settings.hidden, **options))
            ahead.weight_drop = settings.dropout_weight
            directions = [Direction(ahead, from_end=False)]
            if settings.bidirectional == "tied":
                directions.append(Direction(ahead, from_end=True))
            elif settings.bidirectional == "separate":
                back = cast(FastLayer, find("cell", self.cell)(width, settings.hidden, **options))
                back.weight_drop = settings.dropout_weight
                directions.append(Direction(back, from_end=True))
            join = find("connection", settings.connections)(width, len(directions) * settings.hidden)
            self.layers.append(nn.ModuleList(directions))
            self.joins.append(join)
            width = join.width
        self.width = width
        self.halves = settings.connections in ("plain", "residual", "highway")  # the output is [h→; h←]

    def layer_outputs(self, x_BTE: Tensor, lengths_B: Tensor) -> list[Tensor]:
        """Return the features of each layer."""
        x_TBE, found = x_BTE.transpose(0, 1), []
        for directions, join in zip(self.layers, self.joins, strict=True):
            h_TBH = torch.cat([each(x_TBE, lengths_B) for each in cast(nn.ModuleList, directions)], dim=-1)
            x_TBE = self.drop(join(x_TBE, h_TBH))
            found.append(x_TBE.transpose(0, 1))
        return found

    def last(self, h_BTD: Tensor, lengths_B: Tensor) -> Tensor:
        """Return [h→(T); h←(1)]: what the second direction has read stands at the first word."""
        last_BD = super().last(h_BTD, lengths_B)
        if len(cast(nn.ModuleList, self.layers[-1])) == 1 or not self.halves:
            return last_BD
        half = h_BTD.shape[-1] // 2
        return torch.cat([last_BD[:, :half], h_BTD[:, 0, half:]], dim=-1)


class RNNEncoder(RecurrentEncoder):
    """Vanilla recurrent layers."""

    Settings = RNNEncoderSettings
    cell = "rnn"


class LSTMEncoder(RecurrentEncoder):
    """LSTM layers: the BiLSTM."""

    cell = "lstm"


class GRUEncoder(RecurrentEncoder):
    """The slide's GRU layers."""

    cell = "gru"


class TorchGRUEncoder(RecurrentEncoder):
    """The library's GRU layers."""

    cell = "gru-torch"


class MinGRUEncoder(RecurrentEncoder):
    """Minimal GRU layers."""

    cell = "mingru"
