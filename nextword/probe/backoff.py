"""The contexts behind one probability of an n-gram model, from the longest to none at all.

[XMU "Sparsity problems of n-gram models"]: each context that was seen without the word gives its backoff
weight; the first one that was seen with it gives the probability. Their product is what the model says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from nextword.core.contracts import START, PieceTokenizer
from nextword.ngram.model import NgramModel
from nextword.probe.evidence import used_lengths
from nextword.probe.recount import Recounter, followers
from nextword.probe.subject import Subject


@dataclass(frozen=True)
class Level:
    """One context: whether it was seen, and with the word or without it."""

    order: int  # tokens of the n-gram, the word included
    context: str  # the tokens before the word; "" for none
    is_seen: bool
    kinds: int = 0  # different tokens that were seen after it
    total: int | None = None  # how often it was seen; None: the arrays do not say
    count: int | None = None  # how often the word followed
    weight: float | None = None  # of backing off: the word was not seen after it
    probability: float | None = None  # that it gives to the word: the last level has one


def levels(subject: Subject, read: Sequence[int], word: int) -> list[Level]:
    """Return the contexts of a word after a prompt (ids without START), down to the one that decides."""
    assert isinstance(subject.model, NgramModel)
    model = subject.model
    recounter = _recounter(subject, model)
    ids_T = np.array([START, *read], dtype=np.int64)
    state = model.score(ids_T[None, 1:], np.array([len(read)]), model.start(1))[1]
    found: list[Level] = []
    for length in used_lengths(model, len(ids_T)):
        context = _shown(subject, ids_T[-length:])
        node = int(state.nodes_BN[0, length - 1])
        if node < 0:
            found.append(Level(length + 1, context, False))
            continue
        words_F, probs_F, gamma = followers(model, length, node)
        counted = recounter.count(ids_T[-length:])
        total = None if counted is None else counted.total
        place = np.flatnonzero(words_F == word)
        if len(place):
            count = None if counted is None else int(counted.counts_F[place[0]])
            p = float(probs_F[place[0]])
            return [*found, Level(length + 1, context, True, len(words_F), total, count, None, p)]
        found.append(Level(length + 1, context, True, len(words_F), total, 0, gamma))
    p = float(np.exp(model.score(np.array([[word]]), np.array([1]), state)[0][0, 0]))
    paid = math.prod(each.weight for each in found if each.weight is not None)
    return [*found, Level(1, "", True, model.vocab_size, probability=p / paid if paid else 0.0)]


_known: WeakKeyDictionary[NgramModel, Recounter] = WeakKeyDictionary()


def _recounter(subject: Subject, model: NgramModel) -> Recounter:
    """Return what recovers the counts of a model; finding its discounts takes a while, so it is kept."""
    if model not in _known:
        _known[model] = Recounter(model, subject.facts.get("tokens"), subject.facts.get("settings"))
    return _known[model]


def _shown(subject: Subject, ids_T: np.ndarray[Any, np.dtype[np.int64]]) -> str:
    """Write tokens as people read them: pieces together, words apart."""
    row = subject.row_of(ids_T.tolist())
    if not isinstance(subject.tokenizer, PieceTokenizer):
        return " ".join(row.labels)
    pairs = zip(row.ids_T.tolist(), row.pieces, strict=True)
    return "".join("<s>" if index == START else piece for index, piece in pairs)
