"""Dynamic evaluation of a text, piece by piece: `streams.ScoreStream` for networks that learn as they read.

Krause et al. 2018. Documents are read one after another, and what was learned in one helps in the next; in a
mixture every network adapts, counts stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from nextword.core.contracts import START, Carrier, Encoded, LanguageModel, NetworkModel
from nextword.core.errors import ConfigError
from nextword.evaluation.lm.streams import Array, ScoreStream
from nextword.mixtures.memory import WithMemories
from nextword.mixtures.mixture import Mixture
from nextword.models.distributions import as_numpy

GATHERED = 200_000  # tokens on which squares of gradients are gathered, at most


class DynamicStream:
    """Scores one stream of packed ids; every network learns from each segment after it is scored."""

    def __init__(self, model: LanguageModel, settings: Any) -> None:
        needs_network(model)
        self.model, self.settings = model, settings
        self._parts: list[Any] = []
        if isinstance(model, Mixture):
            self._parts = [
                DynamicStream(part, settings) if has_network(part) else ScoreStream(part, carry=True)
                for part in model.models
            ]
        else:
            from nextword.mixtures.dynamic import Adapting  # needs torch

            usable: Any = model
            self.adapting = Adapting(usable, settings)

    @property
    def description(self) -> str:
        """For the signature: rule, rate, decay and tokens of a segment."""
        settings = self.settings
        return f"{settings.rule}/{settings.rate:g}/{settings.decay:g}/{settings.segment}"

    def push(self, ids: Array, documents: Iterable[int] | None = None) -> Array:
        """Return log p of every id of the next piece; 0 at START."""
        ids = as_numpy(ids)
        known = None if documents is None else np.fromiter(documents, np.int64)
        if self._parts:
            assert isinstance(self.model, Mixture)
            logp: Array = self.model.mix([part.push(ids, known) for part in self._parts])
            logp[ids == START] = 0.0
            return logp
        return self._pushed(ids, known)

    def gather(self, pieces: Iterable[Encoded], most: int = GATHERED) -> None:
        """Sum squared gradients over the first tokens of another text, for the rule ``rms``."""
        left = most
        for piece in pieces:
            self._gather(as_numpy(piece.ids)[:left], piece.documents)
            left -= len(piece.ids)
            if left <= 0:
                break

    def _gather(self, ids: Array, documents: Iterable[int] | None) -> None:
        known = None if documents is None else np.array([at for at in documents if at < len(ids)], np.int64)
        for part in self._parts:
            if isinstance(part, DynamicStream):
                part._gather(ids, known)
        if not self._parts:
            for _, words in self._rows(ids, known):
                self.adapting.gather(words)
            self.adapting.begin()

    def _pushed(self, ids: Array, documents: Array | None) -> Array:
        logp = np.zeros(len(ids))
        for places, words in self._rows(ids, documents):
            logp[places] = self.adapting.push(words).double().cpu().numpy()
        return logp

    def _rows(self, ids: Array, documents: Array | None) -> Iterable[tuple[Array, Any]]:
        """Return the places of each document's tokens, and the tokens; its START begins it."""
        import torch

        starts = np.flatnonzero(ids == START)
        begins = starts if documents is None or not isinstance(self.model, Carrier) else documents
        real = ids != START
        known = {int(at) for at in begins}
        for first, end in pairwise([0, *sorted(known - {0}), len(ids)]):
            if first in known:
                self.adapting.begin()
            places = first + np.flatnonzero(real[first:end])
            words = torch.from_numpy(ids[places].astype(np.int64))
            yield places, words.to(self.adapting.network.device)


def needs_network(model: Any) -> None:
    """Raise an error if nothing can adapt."""
    if not has_network(model):
        raise ConfigError(
            "dynamic evaluation adapts the weights of a neural model, and this run has none; leave --dynamic "
            "out, or give a run with a neural model"
        )


def has_network(model: Any) -> bool:
    """Tell whether a model is a network, with memories or without, or has one among its parts."""
    if isinstance(model, Mixture):
        return any(has_network(part) for part in model.models)
    return isinstance(model.model if isinstance(model, WithMemories) else model, NetworkModel)
