"""A network that writes spans, as what is used of it: blanks of any length are filled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from nextword.blocks.states import State
from nextword.core.contracts import END, START, Array
from nextword.models.network import Head, NeuralState


class Span(NamedTuple):
    """What was written in the place of a mark, and log p of its tokens."""

    ids: tuple[int, ...]
    logprob: float


@dataclass
class SpanModel:
    """Writes what blanks stand for, of any length; not a `LanguageModel`: it never read a whole text."""

    network: Any  # a `SpanNetwork` or `SpanTranslator`
    is_probability = False
    fills = "writes what blanks stand for (model.objective is span)"

    def __post_init__(self) -> None:
        self.network.eval()
        self.vocab_size: int = self.network.vocab_size
        self.sentinels: int = self.network.written

    @property
    def context(self) -> int:
        """Return how many tokens are read at once."""
        window: int = self.network.window
        return window

    @property
    def parameters(self) -> int:
        """Return the number of learned weights; tied ones count once."""
        return sum(weight.numel() for weight in self.network.parameters())

    @torch.inference_mode()
    def fill(self, left: Sequence[int], blanks: int, most: int = 32) -> list[Span]:
        """Write the spans of a text with so many marks, V, V + 1, …, in order; greedily.

        After a span comes the next mark, or END after the last; no other mark can come.
        """
        head, V = cast(Head, self.network.head), self.vocab_size
        feature_1D, state = self.network.begin(left)
        room = self.context - len(left) - blanks
        found = []
        for blank in range(blanks):
            feature_1D, state = self._step(V + blank, state)
            last = END if blank + 1 == blanks else V + blank + 1
            ids, total = list[int](), 0.0
            while True:
                logp_X = head.log_probs(feature_1D)[0]
                allowed_X = logp_X.clone()
                allowed_X[V:] = -torch.inf
                allowed_X[[START, END]] = -torch.inf
                if ids:
                    allowed_X[last] = logp_X[last]
                best = int(allowed_X.argmax()) if len(ids) < most and room > 0 else last
                total += float(logp_X[best])
                if best == last:
                    break
                ids.append(best)
                room -= 1
                feature_1D, state = self._step(best, state)
            found.append(Span(tuple(ids), total))
        return found

    @torch.inference_mode()
    def read(self, ids_BT: Array, lengths_B: Array, state: State = None) -> tuple[Tensor, NeuralState]:
        """Return ``before_BTD``, the vector of the token before each, as a `Reader` does."""
        ids_BT = torch.as_tensor(np.asarray(ids_BT)).to(self.network.device, torch.int64)
        lengths_B = torch.as_tensor(np.asarray(lengths_B)).to(self.network.device, torch.int64)
        parts = []
        for at in range(0, ids_BT.shape[1], self.context):
            piece_BT = ids_BT[:, at : at + self.context]
            real_B = (lengths_B - at).clamp(0, piece_BT.shape[1])
            parts.append(self.network.seen_whole(piece_BT, real_B))
        first_B1D = torch.zeros_like(parts[0][:, :1])
        features_BTD = torch.cat([first_B1D, *parts], dim=1)
        return features_BTD[:, :-1], NeuralState(None, features_BTD[torch.arange(len(ids_BT)), lengths_B])

    def _step(self, index: int, state: State) -> tuple[Tensor, State]:
        ids_11 = torch.tensor([[index]], device=self.network.device)
        features_11D, state = self.network.read(ids_11, state)
        return features_11D[:, 0], state
