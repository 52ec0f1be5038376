"""The fixed-window neural language model (Bengio et al. 2003): the last n - 1 tokens, one hidden layer.

[IITD-1 "A Fixed-window Neural Language Model"]: e = [e(1); …], h = f(W e + b_1), ŷ = softmax(U h + b_2).
Bengio's direct connections add W' e to the scores: the head then reads [h; e].
"""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn

from nextword.blocks.dropout import Dropout
from nextword.blocks.embeddings import make_embedding
from nextword.blocks.heads import make_head
from nextword.blocks.states import State
from nextword.core.catalog import find
from nextword.core.contracts import START, never_next, refuse_source
from nextword.core.settings import Slot
from nextword.models.family import NeuralFamily, ScaledSettings
from nextword.models.network import Network


class WindowSettings(ScaledSettings):
    """The window model."""

    context: int = Field(8, ge=1, le=4096, description="tokens of the window, n - 1")
    embedding: int = Field(128, ge=1, le=2**16, description="size E of a token's vector")
    hidden: int = Field(256, ge=1, le=2**16, description="size H of the hidden layer")
    activation: Slot["activation"] = Field("tanh", description="f of the hidden layer: slot activation")
    direct: bool = Field(False, description="direct connections from the embeddings to the output")


class WindowNetwork(Network):
    """Reads the last tokens alone; a position without a token yet has a vector of its own, "nothing"."""

    kind = "window"

    def __init__(self, settings: WindowSettings, vocab_size: int, closed: bool) -> None:
        super().__init__()
        self.vocab_size, self.context, self.carries = vocab_size, settings.context, settings.carry
        self.nothing = vocab_size
        self.scale_words, self.scale_features = settings.scales(settings.embedding)
        self.embedding = make_embedding(
            settings.embedding_kind, vocab_size, settings.embedding, settings.option_groups(), extra=1
        )
        words = settings.context * settings.embedding
        self.words_to_hidden = nn.Linear(words, settings.hidden)
        self.activation = find("activation", settings.activation)
        nn.init.xavier_uniform_(self.words_to_hidden.weight)
        nn.init.zeros_(self.words_to_hidden.bias)
        self.drop = Dropout(settings.dropout)
        self.top = (Direct if settings.direct else HiddenAlone)(words, settings.hidden)
        width = self.top.width
        fits = not settings.tied or width == settings.embedding
        self.fit: nn.Module = nn.Identity() if fits else nn.Linear(width, settings.embedding, bias=False)
        self.width = width if fits else settings.embedding
        tied, options = self.embedding if settings.tied else None, settings.option_groups()
        self.head = make_head(
            settings.head, self.width, vocab_size, never_next(closed), tied, options=options
        )

    def start(self, batch: int, source: Any = None) -> State:
        """Return windows that hold nothing."""
        refuse_source(source)
        assert self.context is not None
        return (torch.full((batch, self.context), self.nothing, device=self.device),)

    def read(self, ids_BT: Tensor, state: State, lengths_B: Tensor | None = None) -> tuple[Tensor, State]:
        """Run the forward pass over all positions at once: a window over the last tokens and these.

        After START nothing before it is seen, so that a text in one stream with others is read as it is
        read alone.
        """
        (before_BC,) = state
        (B, C), T = before_BC.shape, ids_BT.shape[1]
        if T == 0:
            return torch.zeros(B, 0, self.width, dtype=self.dtype, device=self.device), state
        if lengths_B is not None:
            pads_BT = torch.arange(T, device=ids_BT.device) >= lengths_B[:, None]
            ids_BT = ids_BT.masked_fill(pads_BT, self.nothing)
        windows_BTC = self._windows(torch.cat([before_BC, ids_BT], dim=1), C)
        if lengths_B is None:
            return self._features(windows_BTC), (windows_BTC[:, -1],)
        last_BC = windows_BTC[torch.arange(B, device=ids_BT.device), (lengths_B - 1).clamp(min=0)]
        after_BC = torch.where(lengths_B[:, None] > 0, last_BC, before_BC)
        return self._features(windows_BTC), (after_BC,)

    def _windows(self, words_BS: Tensor, C: int) -> Tensor:
        """Return the C tokens up to each of the last S - C positions; nothing at places before a START."""
        places_S = torch.arange(words_BS.shape[1], device=words_BS.device)
        begin_BS = torch.where(words_BS == START, places_S, -1).cummax(dim=1).values
        is_past_BTC = places_S.unfold(0, C, 1)[1:] < begin_BS[:, C:, None]
        return words_BS.unfold(1, C, 1)[:, 1:].masked_fill(is_past_BTC, self.nothing)

    def _features(self, windows_BTC: Tensor) -> Tensor:
        e_BTX = self.embedding(windows_BTC).flatten(2) * self.scale_words  # e = [e(1); …; e(n-1)]
        h_BTH = self.drop(self.activation(self.words_to_hidden(e_BTX)))  # h = f(W e + b_1)
        features_BTD: Tensor = self.fit(self.top(h_BTH, e_BTX)) * self.scale_features
        return features_BTD


class HiddenAlone(nn.Module):
    """The head reads h."""

    def __init__(self, words: int, hidden: int) -> None:
        super().__init__()
        self.width = hidden

    def forward(self, h_BTH: Tensor, e_BTX: Tensor) -> Tensor:
        """Return h."""
        return h_BTH


class Direct(nn.Module):
    """The head reads [h; e]: U h + W' e (Bengio et al. 2003, equation 1)."""

    def __init__(self, words: int, hidden: int) -> None:
        super().__init__()
        self.width = hidden + words

    def forward(self, h_BTH: Tensor, e_BTX: Tensor) -> Tensor:
        """Return [h; e]."""
        return torch.cat([h_BTH, e_BTX], dim=-1)


DEFAULTS: dict[str, Any] = {"train.rate": 8e-3}
WINDOW = NeuralFamily("window", WindowSettings, WindowNetwork, DEFAULTS)
"""A hidden layer over the last few tokens (Bengio et al. 2003)."""
