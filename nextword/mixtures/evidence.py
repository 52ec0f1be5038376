"""The evidence behind a probability: what each part of a model says, and what it has seen to say so.

"External memory" [MAUSAM "What is missing in Transformers?"] can be looked into, unlike weights: the cached
words, the neighbours, the places of a text where the same words stood.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nextword.core.contracts import LanguageModel, State
from nextword.mixtures.memory import Part, Witness
from nextword.models.distributions import as_numpy


def explain(model: LanguageModel, state: State, word: int, top: int = 5) -> list[Part]:
    """What the parts of a model say about a word in the only row of a state; weights sum to 1.

    A model that can tell more than its probability has a method of the same name.
    """
    if hasattr(model, "explain"):
        return list(model.explain(state, word, top))
    probability = float(np.exp(as_numpy(model.next(state), np.float64)[0, word]))
    if hasattr(state, "long_B3"):
        return [_unbounded(model, state, word, probability)]
    return [Part(_name(model), 1.0, probability)]


def advance(model: LanguageModel, word: int, state: State) -> State:
    """The state after one more word in the only row; a model that can read without scoring does so."""
    ids_11, ones_1 = np.array([[word]]), np.array([1])
    if hasattr(model, "advance"):
        return model.advance(ids_11, ones_1, state)
    return model.score(ids_11, ones_1, state)[1]


def _unbounded(model: Any, state: Any, word: int, probability: float) -> Part:
    """The longest match in the training text, and how often it goes on with the word."""
    low, high, length = (int(each) for each in state.long_B3[0])
    words, counts = model.followers(low, high, length)
    count = int(counts[words == word].sum())
    found = Witness(word, count / max(1.0, float(counts.sum())), count=int(counts.sum()))
    return Part("unbounded", 1.0, probability, (found,) if count else (), context=length)


def _name(model: Any) -> str:
    """What a model is called where nobody has named it."""
    if hasattr(model, "network"):
        return "network"
    return "counts" if hasattr(model, "trie") else type(model).__name__
