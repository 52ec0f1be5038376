"""The window encoder: each word with its neighbours (Collobert et al. 2011)."""

from __future__ import annotations

from typing import ClassVar, cast

import torch
from pydantic import Field
from torch import Tensor, nn

from nextword.blocks.dropout import Dropout
from nextword.core.catalog import find
from nextword.core.settings import Slot
from nextword.models.encoders.encoder import Encoder, EncoderSettings


class WindowEncoderSettings(EncoderSettings):
    """A window of words around each word."""

    reach: int = Field(2, ge=0, le=100, description="words to each side")
    activation: Slot["activation"] = Field("tanh", description="f of the hidden layer: slot activation")


class WindowEncoder(Encoder):
    """h = f(W [x(t-r); …; x(t); …; x(t+r)] + b); beyond the sentence there is a learned vector.

    [IITD-1 "Example: NER Task": "museums in Paris are amazing"]
    """

    Settings: ClassVar[type[EncoderSettings]] = WindowEncoderSettings

    def __init__(self, settings: WindowEncoderSettings, inputs: int) -> None:
        super().__init__()
        self.reach, self.width = settings.reach, settings.hidden
        self.outside_E = nn.Parameter(torch.zeros(inputs))
        words = (2 * settings.reach + 1) * inputs
        self.to_hidden = nn.ModuleList(
            nn.Linear(words if at == 0 else settings.hidden, settings.hidden) for at in range(settings.layers)
        )
        for linear in self.to_hidden:
            nn.init.xavier_uniform_(cast(nn.Linear, linear).weight)
            nn.init.zeros_(cast(nn.Linear, linear).bias)
        self.activation = find("activation", settings.activation)
        self.drop = Dropout(settings.dropout)

    def layer_outputs(self, x_BTE: Tensor, lengths_B: Tensor) -> list[Tensor]:
        """Return the features of each layer."""
        T = x_BTE.shape[1]
        real_BT1 = (torch.arange(T, device=x_BTE.device) < lengths_B[:, None])[..., None]
        x_BTE = torch.where(real_BT1, x_BTE, self.outside_E)
        sides = self.outside_E.to(x_BTE.dtype).expand(len(x_BTE), self.reach, -1)
        x_BSE = torch.cat([sides, x_BTE, sides], dim=1)
        h_BTX = x_BSE.unfold(1, 2 * self.reach + 1, 1).transpose(2, 3).flatten(2)
        found = []
        for linear in self.to_hidden:
            h_BTX = self.drop(self.activation(linear(h_BTX)))
            found.append(h_BTX)
        return found
