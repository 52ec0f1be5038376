"""The convolution encoder: filters over words, wider from layer to layer (Strubell et al. 2017)."""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional as F

from nextword.blocks.dropout import Dropout
from nextword.models.encoders.encoder import Encoder, EncoderSettings


class ConvolutionEncoderSettings(EncoderSettings):
    """Stacked convolutions."""

    kernel: int = Field(3, ge=1, le=99, description="words that a filter sees (odd)")
    dilation: int = Field(2, ge=1, le=8, description="factor by which each layer's steps grow")

    @model_validator(mode="after")
    def _is_odd(self) -> ConvolutionEncoderSettings:
        if self.kernel % 2 == 0:
            raise ValueError("'kernel' must be odd, so that a word is in the middle of its filter")
        return self


class ConvolutionEncoder(Encoder):
    """Residual convolutions whose steps grow from layer to layer, so that few layers see a sentence."""

    Settings: ClassVar[type[EncoderSettings]] = ConvolutionEncoderSettings

    def __init__(self, settings: ConvolutionEncoderSettings, inputs: int) -> None:
        super().__init__()
        self.width, self.kernel = settings.hidden, settings.kernel
        self.enter = nn.Linear(inputs, settings.hidden)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(
                settings.hidden, settings.hidden, settings.kernel,
                padding="same", dilation=settings.dilation ** min(at, 6),
            )
            for at in range(settings.layers)
        )  # fmt: skip
        self.drop = Dropout(settings.dropout)

    def layer_outputs(self, x_BTE: Tensor, lengths_B: Tensor) -> list[Tensor]:
        """Return the features of each layer; padding is 0 before each filter."""
        T = x_BTE.shape[1]
        real_BT1 = (torch.arange(T, device=x_BTE.device) < lengths_B[:, None])[..., None]
        h_BTH, found = self.enter(x_BTE), []
        for convolution in self.convolutions:
            h_BHT = (h_BTH * real_BT1).transpose(1, 2)
            h_BTH = h_BTH + self.drop(F.relu(convolution(h_BHT)).transpose(1, 2))
            found.append(h_BTH)
        return found
