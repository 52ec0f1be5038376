"""Edit distance: the fewest insertions, deletions and substitutions, for many texts at once.

Levenshtein's table, a whole row of it in one NumPy call: d[j] = min(c[j], d[j-1] + 1) is a running minimum.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
_CELLS = 2_000_000  # of the rows that are computed at once


def word_errors(reference: str, hypotheses: Sequence[str]) -> Ints:
    """Return the edit distance in words between a reference and each hypothesis."""
    ids: dict[str, int] = {}
    right = [ids.setdefault(word, len(ids)) for word in reference.split()]
    others = [[ids.setdefault(word, len(ids)) for word in text.split()] for text in hypotheses]
    return edit_distances(right, others)


def edit_distances(reference: Sequence[int], hypotheses: Sequence[Sequence[int]]) -> Ints:
    """Do the same for ids. One loop over the reference; all hypotheses and positions at once."""
    words_HJ, lengths_H = _padded(hypotheses, -1)
    J = words_HJ.shape[1]
    places = np.arange(J + 1)
    table_HJ = np.broadcast_to(places, (len(hypotheses), J + 1)).copy()  # against no word: all are insertions
    for count, word in enumerate(reference, start=1):
        changed = np.minimum(table_HJ[:, 1:] + 1, table_HJ[:, :-1] + (words_HJ != word))
        table_HJ[:, 0], table_HJ[:, 1:] = count, changed
        table_HJ = np.minimum.accumulate(table_HJ - places, axis=1) + places
    distances: Ints = table_HJ[np.arange(len(hypotheses)), lengths_H]
    return distances


def paired_distances(references: Sequence[Sequence[int]], hypotheses: Sequence[Sequence[int]]) -> Ints:
    """Return the edit distance of each reference to its own hypothesis; similar lengths go together."""
    found = np.zeros(len(references), dtype=np.int64)
    order = sorted(range(len(references)), key=lambda at: (len(hypotheses[at]), len(references[at])))
    while order:
        J = max(1, len(hypotheses[order[-1]]))
        rows, order = order[-max(1, _CELLS // J) :], order[: -max(1, _CELLS // J)]
        found[rows] = _together([references[at] for at in rows], [hypotheses[at] for at in rows])
    return found


def _together(references: Sequence[Sequence[int]], hypotheses: Sequence[Sequence[int]]) -> Ints:
    right_PI, lengths_P = _padded(references, -1)
    words_PJ, ends_P = _padded(hypotheses, -2)
    places = np.arange(words_PJ.shape[1] + 1)
    table_PJ = np.broadcast_to(places, (len(references), len(places))).copy()
    for count in range(1, right_PI.shape[1] + 1):
        changed = table_PJ.copy()
        changed[:, 0] = count
        other_PJ = words_PJ != right_PI[:, count - 1 : count]
        changed[:, 1:] = np.minimum(table_PJ[:, 1:] + 1, table_PJ[:, :-1] + other_PJ)
        changed = np.minimum.accumulate(changed - places, axis=1) + places
        table_PJ = np.where((count <= lengths_P)[:, None], changed, table_PJ)  # a reference that has ended
    distances: Ints = table_PJ[np.arange(len(references)), ends_P]
    return distances


def _padded(rows: Sequence[Sequence[int]], pad: int) -> tuple[Ints, Ints]:
    lengths_P = np.array([len(ids) for ids in rows], dtype=np.int64)
    ids_PJ = np.full((len(rows), int(lengths_P.max(initial=0))), pad, dtype=np.int64)
    for row, ids in enumerate(rows):
        ids_PJ[row, : len(ids)] = ids
    return ids_PJ, lengths_P
