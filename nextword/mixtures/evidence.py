"""The evidence for a probability: what each part of a model predicts, and what it has seen before.

"External memory" [MAUSAM "What is missing in Transformers?"] can be inspected, unlike weights: the cached
tokens, the neighbours, the places of a text where the same tokens stood.
"""

from __future__ import annotations

import numpy as np

from nextword.core.contracts import Advancer, Array, LanguageModel, NetworkModel, State
from nextword.mixtures.memory import Explainer, Part, Witness
from nextword.models.distributions import as_numpy
from nextword.ngram.model import NgramModel
from nextword.ngram.suffix.walk import UnboundedState
from nextword.ngram.unbounded import UnboundedModel


def explain(model: LanguageModel, state: State, word: int, top: int = 5) -> list[Part]:
    """Return what the parts of a model predict for a token in the only row of a state; weights sum to 1.

    A model with more to show than its probability is an `Explainer`.
    """
    if isinstance(model, Explainer):
        return model.explain(state, word, top)
    probability = float(np.exp(as_numpy(model.next(state), np.float64)[0, word]))
    if isinstance(model, UnboundedModel):
        return [_unbounded(model, state, word, probability)]
    return [Part(_name(model), 1.0, probability)]


def advance(model: LanguageModel, word: int, state: State) -> State:
    """Return the state after one more token in the only row."""
    return read(model, np.array([[word]]), np.array([1]), state)


def read(model: LanguageModel, ids_BT: Array, lengths_B: Array, state: State) -> State:
    """Return the state after the tokens; their scores are skipped where a model allows it."""
    if isinstance(model, Advancer):
        return model.advance(ids_BT, lengths_B, state)
    return model.score(ids_BT, lengths_B, state)[1]


def _unbounded(model: UnboundedModel, state: UnboundedState, word: int, probability: float) -> Part:
    """Return the longest match in the training text, and how often the token follows it."""
    low, high, length = (int(each) for each in state.long_B3[0])
    words, counts = model.followers(low, high, length)
    count = int(counts[words == word].sum())
    found = Witness(word, count / max(1.0, float(counts.sum())), count=int(counts.sum()))
    return Part("unbounded", 1.0, probability, (found,) if count else (), context=length)


def _name(model: LanguageModel) -> str:
    """Return a name for a model without one of its own."""
    if isinstance(model, NetworkModel):
        return "network"
    return "counts" if isinstance(model, NgramModel) else type(model).__name__
