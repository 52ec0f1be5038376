"""A sentence and its translation to the made language in one row of ids: learned within seconds.

Five words, a mark, five words: "old king finds small dog = gnik dlo god llams sdnif". Every word of the
translation is decided by one word of the sentence at another place.
"""

from __future__ import annotations

import random

import numpy as np

from nextword.core.contracts import SPECIALS, LanguageModel
from nextword.data.batches.batch import Batch
from nextword.experiments import languages
from nextword.experiments.small import Floats, Ints, nats

MARK = len(SPECIALS)  # between a sentence and its translation
WORDS = languages.words()
VOCABULARY = MARK + 1 + len(WORDS)
SIDE = languages.CLAUSE - 1  # words of a sentence, and of its translation
LENGTH = 2 * SIDE + 1
_IDS = {word: MARK + 1 + at for at, word in enumerate(WORDS)}


def pairs_of(rng: np.random.Generator, rows: int) -> list[languages.Words]:
    """Return sentences and their translations, as words."""
    draw = random.Random(int(rng.integers(2**60)))
    return [languages.clauses(1, draw) for _ in range(rows)]


def make_rows(rng: np.random.Generator, rows: int) -> Ints:
    """Return sentences with their translations."""
    return np.array([[*_ids(each.source), MARK, *_ids(each.target)] for each in pairs_of(rng, rows)])


def make_batch(rng: np.random.Generator, rows: int) -> Batch:
    """Return rows of which every next word is learned."""
    ids_BT = make_rows(rng, rows)
    return Batch(ids_BT[:, :-1], ids_BT[:, 1:])


def target_nats(model: LanguageModel, rows: int, seed: int) -> Floats:
    """Return nats per word of the translation in each of this many new rows."""
    ids_BT = make_rows(np.random.default_rng((9, seed)), rows)
    found: Floats = nats(model, ids_BT, skip=SIDE + 1).mean(axis=1)
    return found


def _ids(text: str) -> list[int]:
    return [_IDS[word] for word in text.split()]
