"""chrF between texts, all pairs at once: how many sequences of characters they share (Popović 2015).

Of order n: precision = shared / of the hypothesis, recall = shared / of the reference; both are averaged over
the orders 1 to 6 that both texts have, then chrF = 100 (1 + β²) P R / (β² P + R) with β = 2, since recall
matters more. The numbers are those of sacrebleu's sentence chrF; whitespace does not count.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nextword.decode.sampling import Ints
from nextword.models.distributions import Floats

ORDERS = 6
_BETA2 = 4.0


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> Floats:
    """Return ``chrf_HR`` of every hypothesis against every reference, from 0 to 100."""
    H = len(hypotheses)
    counts = [_counts(order) for order in _ngrams([*hypotheses, *references])]
    precision_HR, recall_HR, orders_HR = (np.zeros((H, len(references))) for _ in range(3))
    for counts_XU in counts:
        own_HU, other_RU = counts_XU[:H], counts_XU[H:]
        shared_HR = np.array([np.minimum(row_U, other_RU).sum(axis=1) for row_U in own_HU]).reshape(H, -1)
        own_H1, other_1R = own_HU.sum(axis=1)[:, None], other_RU.sum(axis=1)[None]
        precision_HR += shared_HR / np.maximum(own_H1, 1)
        recall_HR += shared_HR / np.maximum(other_1R, 1)
        orders_HR += (own_H1 > 0) & (other_1R > 0)
    precision_HR /= np.maximum(orders_HR, 1)
    recall_HR /= np.maximum(orders_HR, 1)
    below_HR = _BETA2 * precision_HR + recall_HR
    return 100 * (1 + _BETA2) * precision_HR * recall_HR / np.where(below_HR > 0, below_HR, 1.0)


def _ngrams(texts: Sequence[str]) -> list[list[Ints]]:
    """Return for every order the sequences of each text as numbers; equal ones have the same number."""
    letters = ["".join(text.split()) for text in texts]
    lengths = np.array([len(text) for text in letters], dtype=np.int64)
    points = np.frombuffer("".join(letters).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    left = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(points))  # characters to the text's end
    owner = np.repeat(np.arange(len(texts)), lengths)
    letter = np.unique(points, return_inverse=True)[1].astype(np.int64)
    number, found = np.zeros(len(points), dtype=np.int64), []
    for order in range(1, ORDERS + 1):
        keep = left >= order  # the others would reach into the next text
        places = np.flatnonzero(keep)
        keys = number[places] * (len(points) + 1) + letter[places + order - 1]
        number = np.zeros(len(points), dtype=np.int64)
        number[places] = np.unique(keys, return_inverse=True)[1]
        found.append([number[places[owner[places] == text]] for text in range(len(texts))])
    return found


def _counts(numbers: Sequence[Ints]) -> npt.NDArray[np.int64]:
    """Return ``counts_XU``: how often each text X has each sequence U."""
    size = max((int(row.max(initial=-1)) for row in numbers), default=-1) + 1
    return np.array([np.bincount(row, minlength=size) for row in numbers], dtype=np.int64)
