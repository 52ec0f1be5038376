"""Linear interpolation of language models, and the weights that fit a held-out text best.

p(w | h) = Σ_k λ_k p_k(w | h), Σ λ = 1 [XMU "Smoothing"; Jelinek & Mercer 1980]. The held-out
log-likelihood is concave in λ, and EM finds its maximum; the gradient bounds the distance to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from nextword.core.contracts import (
    START,
    Array,
    Carrier,
    LanguageModel,
    PackedScorer,
    State,
    context_of,
    deterministic,
    is_probability,
)
from nextword.core.errors import ConfigError, DataError
from nextword.core.settings import Settings
from nextword.mixtures.evidence import explain, read
from nextword.mixtures.memory import Part
from nextword.models.distributions import Floats, as_numpy


class MixtureSettings(Settings):
    """A saved mixture: the runs it is made of, and their weights."""

    runs: tuple[str, ...] = Field((), description="run folders of the components")
    weights: tuple[float, ...] = Field((), description="one weight per run; they sum to 1")
    of: tuple[int, ...] = Field(
        (), description="for each run that is a memory, the number of the run it reads; 0: none"
    )
    models: tuple[str, ...] = Field(
        ("ngram-good-turing", "lstm"), description="with --minutes: models that are trained and mixed"
    )
    alone: bool = Field(False, description="with --minutes: a part that does as well alone is kept alone")
    iterations: int = Field(1000, ge=1, le=1_000_000, description="most steps of EM")
    tolerance: float = Field(1e-6, gt=0, le=1, description="nats per token that may be missed")

    @model_validator(mode="after")
    def _fits(self) -> MixtureSettings:
        if len(self.weights) != len(self.runs) and self.weights:
            raise ValueError(f"{len(self.weights)} weights for {len(self.runs)} runs; give one per run")
        if self.weights and (min(self.weights) < 0 or abs(sum(self.weights) - 1) > 1e-6):
            raise ValueError(f"the weights {self.weights} must not be negative and must sum to 1")
        if self.of and (len(self.of) != len(self.runs) or min(self.of) < 0 or max(self.of) > len(self.runs)):
            raise ValueError(f"'of' is {self.of}; give the number of a run, or 0, for each of them")
        return self


class Mixture:
    """A LanguageModel made of LanguageModels over one vocabulary; its state is the tuple of theirs."""

    def __init__(self, models: Sequence[LanguageModel], weights: Sequence[float]) -> None:
        _check(models, weights)
        self.models = tuple(models)
        self.weights: Floats = np.asarray(weights, dtype=np.float64) / float(np.sum(weights))
        self.vocab_size = models[0].vocab_size
        if all(isinstance(model, PackedScorer) for model in models):  # only then is the mixture one, too
            self.score_packed: Callable[[Array], Array] = self._score_packed
        if any(isinstance(model, Carrier) for model in models):  # and a Carrier where a part is
            self.carry: Callable[[State], State] = self._carry

    @property
    def context(self) -> int | None:
        """Return how many tokens before a token are seen; None where a part has no limit."""
        found = [context_of(model) for model in self.models]
        return None if None in found else max(each for each in found if each is not None)

    @property
    def is_probability(self) -> bool:
        """Tell whether every component is a distribution (stupid backoff is not)."""
        return all(is_probability(model) for model in self.models)

    def start(self, batch: int, source: Any = None, begin: bool = True) -> State:
        """Return every component's state after START."""
        return tuple(model.start(batch, source, begin) for model in self.models)

    def next(self, state: State) -> Array:
        """Return log Σ λ_k p_k of every token."""
        return self.mix([model.next(part) for model, part in zip(self.models, state, strict=True)])

    def step(self, ids_B: Array, state: State) -> tuple[Array, State]:
        """Let every component read the token."""
        pairs = [model.step(ids_B, part) for model, part in zip(self.models, state, strict=True)]
        return self.mix([logp for logp, _ in pairs]), tuple(after for _, after in pairs)

    def score(self, ids_BT: Array, lengths_B: Array, state: State = None) -> tuple[Array, State]:
        """Let every component score the tokens; entries past a row's length are 0."""
        parts = (None,) * len(self.models) if state is None else state
        pairs = [model.score(ids_BT, lengths_B, part) for model, part in zip(self.models, parts, strict=True)]
        logp_BT = self.mix([logp for logp, _ in pairs])
        real_BT = np.arange(logp_BT.shape[1]) < as_numpy(lengths_B)[:, None]
        return np.where(real_BT, logp_BT, 0.0), tuple(after for _, after in pairs)

    def reorder(self, state: State, rows_B: Array) -> State:
        """Keep these rows of every component."""
        return tuple(model.reorder(part, rows_B) for model, part in zip(self.models, state, strict=True))

    def rows(self, state: State) -> int:
        """Return how many rows a state has: as many as each component's."""
        return self.models[0].rows(state[0])

    def join(self, states: Sequence[State]) -> State:
        """Join the states of every component."""
        parts = zip(*states, strict=True)
        return tuple(model.join(part) for model, part in zip(self.models, parts, strict=True))

    def _carry(self, state: State) -> State:
        """Carry the state of the parts that carry it over lines; start the others over."""
        rows = self.rows(state)
        return tuple(
            model.carry(part) if isinstance(model, Carrier) else model.start(rows)
            for model, part in zip(self.models, state, strict=True)
        )

    def explain(self, state: State, word: int, top: int = 5) -> list[Part]:
        """Return what every part predicts for a token in the only row."""
        found = []
        for weight, model, part in zip(self.weights, self.models, state, strict=True):
            for each in explain(model, part, word, top):
                found.append(replace(each, weight=float(weight) * each.weight))
        return found

    def advance(self, ids_BT: Array, lengths_B: Array, state: State) -> State:
        """Return the state after the tokens; their scores are skipped where a part allows it."""
        return tuple(
            read(model, ids_BT, lengths_B, part) for model, part in zip(self.models, state, strict=True)
        )

    def deterministic(self) -> AbstractContextManager[Any]:
        """Make every component compute the same numbers from the same tokens, to the last bit."""
        both = ExitStack()
        for model in self.models:
            both.enter_context(deterministic(model))
        return both

    def _score_packed(self, ids: Array) -> Array:
        parts = (model for model in self.models if isinstance(model, PackedScorer))
        logp = self.mix([model.score_packed(ids) for model in parts])
        logp[as_numpy(ids) == START] = 0.0
        return logp

    def mix(self, logps: Sequence[Array]) -> Floats:
        """Compute log Σ λ_k p_k from the log p of every component."""
        used = [(weight, logp) for weight, logp in zip(self.weights, logps, strict=True) if weight > 0]
        terms = [as_numpy(logp, np.float64) + np.log(weight) for weight, logp in used]
        top = np.maximum.reduce(terms)
        top = np.where(np.isneginf(top), 0.0, top)
        with np.errstate(divide="ignore"):
            mixed: Floats = np.log(sum(np.exp(term - top) for term in terms)) + top
        return mixed


def _check(models: Sequence[LanguageModel], weights: Sequence[float]) -> None:
    if not models:
        raise ConfigError("a mixture has no models; name at least one run")
    if len(models) != len(weights):
        raise ConfigError(f"a mixture of {len(models)} models has {len(weights)} weights; give one per model")
    values = np.asarray(weights, dtype=np.float64)
    if not np.isfinite(values).all() or values.min() < 0 or abs(values.sum() - 1) > 1e-6:
        raise ConfigError(f"the mixture weights are {list(weights)}; they must be 0 or more and sum to 1")
    sizes = [model.vocab_size for model in models]
    if len(set(sizes)) > 1:
        raise ConfigError(
            f"models of a mixture have vocabularies of {', '.join(f'{size:,}' for size in sizes)} tokens; "
            "train them with one tokenizer (train --tokenizer RUN/tokenizer.json)"
        )


@dataclass(frozen=True)
class Tuned:
    """Weights found by EM, with the mean held-out log-likelihood before each step and at the end."""

    weights: tuple[float, ...]
    history: tuple[float, ...]
    gap: float  # no other weights can gain more than this, in nats per token
    dropped: int  # tokens that every model gives probability 0; no weights can help them


def tune_weights(logps: Sequence[npt.ArrayLike], iterations: int = 1000, tolerance: float = 1e-6) -> Tuned:
    """Find the weights that maximize the held-out likelihood; ``logps``: log p of each token, by model.

    With r_k(t) = p_k(t) / Σ_j λ_j p_j(t), EM sets λ_k to λ_k · mean r_k. The mean of r_k is also the
    gradient, and by concavity no weights lie more than max_k mean r_k - 1 higher: the stopping rule.
    """
    p_KT, top_T, dropped = _ratios(logps)
    weights: Floats = np.full(len(p_KT), 1.0 / len(p_KT))
    history: list[float] = []
    for _ in range(iterations + 1):
        mixed_T = weights @ p_KT
        history.append(float(np.mean(np.log(mixed_T) + top_T)))
        gradient = p_KT @ (1.0 / mixed_T) / p_KT.shape[1]
        gap = max(0.0, float(gradient.max()) - 1.0)
        if gap <= tolerance or len(history) > iterations:
            break
        weights = weights * gradient
        weights /= weights.sum()
    return Tuned(tuple(float(weight) for weight in weights), tuple(history), gap, dropped)


def _ratios(logps: Sequence[npt.ArrayLike]) -> tuple[Floats, Floats, int]:
    """Return the probabilities relative to the best model of each token, and the log of that best one."""
    if len(logps) == 0:
        raise ConfigError("a mixture has no models; name at least one run")
    rows = [np.asarray(logp, dtype=np.float64).ravel() for logp in logps]
    if len({len(row) for row in rows}) > 1:
        raise ConfigError(f"the models score {[*map(len, rows)]} tokens; their tokenizers must agree")
    logp_KT = np.stack(rows)
    top_T = logp_KT.max(axis=0)
    possible = np.isfinite(top_T)
    if not possible.any():
        raise DataError("no token of the held-out text has a probability above 0; use more or other text")
    top_T = top_T[possible]
    return np.exp(logp_KT[:, possible] - top_T), top_T, int(len(possible) - possible.sum())
