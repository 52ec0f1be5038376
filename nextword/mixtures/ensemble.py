"""Several models that write one text together: their probabilities, or the logarithms of them, are averaged.

p(w) = Σ_k λ_k p_k(w), or p(w) ∝ Π_k p_k(w)^λ_k: an ensemble of translators (Sutskever et al. 2014), which is
nearly always better than its best member. A member that reads no source, such as a language model of the
target side, joins the others without it (Gülçehre et al. 2015).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from nextword.core.contracts import (
    Aligner,
    Array,
    LanguageModel,
    Preparable,
    State,
    refuse_source,
    start_beside,
)
from nextword.mixtures.mixture import Mixture
from nextword.models.distributions import as_numpy, normalise

Mean = Literal["arithmetic", "geometric"]


class Ensemble(Mixture):
    """A LanguageModel of LanguageModels over one vocabulary; those of networks only stay tensors."""

    def __init__(
        self,
        models: Sequence[LanguageModel],
        weights: Sequence[float] | None = None,
        mean: Mean = "arithmetic",
    ) -> None:
        super().__init__(models, weights or [1 / len(models)] * len(models))
        self.mean = mean
        self.attending = {at: model for at, model in enumerate(models) if isinstance(model, Aligner)}
        if mean == "geometric" and hasattr(self, "score_packed"):
            del self.score_packed  # a sum over the vocabulary is needed, which members do not give
        limits = [limit for model in models if (limit := getattr(model, "source_limit", None)) is not None]
        self.source_limit: int | None = min(limits, default=None)
        if self.attending:  # only then is it an `Aligner`
            self.attention: Callable[[State], Array] = self._attention

    def start(self, batch: int, source: Any = None, begin: bool = True) -> State:
        """Return every member's state; members that read no source start without it, if another reads it."""
        pairs = [start_beside(model, batch, source, begin) for model in self.models]
        if source is not None and not any(reads for _, reads in pairs):
            refuse_source(source)
        return tuple(state for state, _ in pairs)

    def ready(self) -> None:
        """Prepare every member for many steps."""
        for model in self.models:
            if isinstance(model, Preparable):
                model.ready()

    def score(self, ids_BT: Array, lengths_B: Array, state: State = None) -> tuple[Array, State]:
        """Score the tokens; a geometric mean needs the whole distribution of each, so token by token."""
        if self.mean == "arithmetic":
            return super().score(ids_BT, lengths_B, state)
        ids_BT, lengths_B = as_numpy(ids_BT, np.int64), as_numpy(lengths_B, np.int64)
        B, T = ids_BT.shape
        state = self.start(B) if state is None else state
        logp_BT = np.zeros((B, T))
        for place in range(T):
            real_B = lengths_B > place
            logp_BV = as_numpy(self.next(state), np.float64)
            logp_BT[:, place] = np.where(real_B, logp_BV[np.arange(B), ids_BT[:, place]], 0.0)
            state = self.advance(ids_BT[:, place : place + 1], real_B.astype(np.int64), state)
        return logp_BT, state

    def mix(self, logps: Sequence[Array]) -> Array:
        """Average what the members say of every token."""
        if all(not isinstance(logp, np.ndarray) for logp in logps):
            return self._mix_tensors(logps)
        if self.mean == "arithmetic":
            return super().mix(logps)
        return normalise(np.sum([weight * as_numpy(logp) for weight, logp in self._used(logps)], axis=0))

    def _mix_tensors(self, logps: Sequence[Any]) -> Any:
        import torch

        with torch.inference_mode():
            if self.mean == "arithmetic":
                terms = [logp.float() + float(np.log(weight)) for weight, logp in self._used(logps)]
                return torch.logsumexp(torch.stack(terms), dim=0)
            return torch.log_softmax(sum(weight * logp.float() for weight, logp in self._used(logps)), dim=-1)

    def _used(self, logps: Sequence[Array]) -> list[tuple[float, Array]]:
        """Return members that count; 0 times log 0 would be NaN."""
        return [(float(weight), logp) for weight, logp in zip(self.weights, logps, strict=True) if weight > 0]

    def _attention(self, state: State) -> Array:
        """Return where the members that attend look, on average."""
        found = [as_numpy(model.attention(state[at]), np.float64) for at, model in self.attending.items()]
        return np.mean(found, axis=0)
