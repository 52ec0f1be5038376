"""Word error rate: the fewest insertions, deletions and substitutions, for many texts at once.

Levenshtein's table, a whole row of it in one NumPy call: d[j] = min(c[j], d[j-1] + 1) is a running minimum.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def word_errors(reference: str, hypotheses: Sequence[str]) -> Ints:
    """Return the edit distance in words between a reference and each hypothesis."""
    ids: dict[str, int] = {}
    right = [ids.setdefault(word, len(ids)) for word in reference.split()]
    others = [[ids.setdefault(word, len(ids)) for word in text.split()] for text in hypotheses]
    return edit_distances(right, others)


def edit_distances(reference: Sequence[int], hypotheses: Sequence[Sequence[int]]) -> Ints:
    """Do the same for ids. One loop over the reference; all hypotheses and positions at once."""
    lengths_H = np.array([len(ids) for ids in hypotheses], dtype=np.int64)
    J = int(lengths_H.max(initial=0))
    words_HJ = np.full((len(hypotheses), J), -1, dtype=np.int64)
    for row, ids in enumerate(hypotheses):
        words_HJ[row, : len(ids)] = ids
    places = np.arange(J + 1)
    table_HJ = np.broadcast_to(places, (len(hypotheses), J + 1)).copy()  # against no word: all are insertions
    for count, word in enumerate(reference, start=1):
        changed = np.minimum(table_HJ[:, 1:] + 1, table_HJ[:, :-1] + (words_HJ != word))
        table_HJ[:, 0], table_HJ[:, 1:] = count, changed
        table_HJ = np.minimum.accumulate(table_HJ - places, axis=1) + places
    distances: Ints = table_HJ[np.arange(len(hypotheses)), lengths_H]
    return distances
