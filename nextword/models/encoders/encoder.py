"""What an encoder is: a vector for each word from the whole sentence; slot "encoder", shared by all tasks.

Rows may have different lengths: what stands past a row's length changes nothing.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from nextword.core.catalog import find
from nextword.core.settings import Settings


class EncoderSettings(Settings):
    """What every encoder has."""

    hidden: int = Field(128, ge=1, le=2**16, description="size H of a layer's features, in each direction")
    layers: int = Field(1, ge=1, le=64, description="stacked layers L")
    dropout: float = Field(0.3, ge=0, lt=1, description="share of the features dropped between layers")


class Encoder(nn.Module):
    """Vectors in, features out; ``width`` is the size D of a feature. Made of (settings, inputs)."""

    Settings: ClassVar[type[EncoderSettings]] = EncoderSettings
    width: int

    def forward(self, x_BTE: Tensor, lengths_B: Tensor) -> Tensor:
        """Return ``h_BTD``; past a row's length any finite numbers."""
        return self.layer_outputs(x_BTE, lengths_B)[-1]

    def layer_outputs(self, x_BTE: Tensor, lengths_B: Tensor) -> list[Tensor]:
        """Return what each layer makes, from the input up, for probes."""
        raise NotImplementedError

    def lengths(self, lengths_B: Tensor) -> Tensor:
        """Return how many features rows of these lengths have: as many, unless the encoder shortens them."""
        return lengths_B

    def last(self, h_BTD: Tensor, lengths_B: Tensor) -> Tensor:
        """Return ``last_BD``, what the encoder knows at the end of each row."""
        rows_B = torch.arange(len(h_BTD), device=h_BTD.device)
        return h_BTD[rows_B, (lengths_B - 1).clamp(min=0)]


def make_encoder(name: str, settings: Any, inputs: int) -> Encoder:
    """Make the encoder of this name for vectors of a size."""
    encoder: Encoder = find("encoder", name)(settings, inputs)
    return encoder
