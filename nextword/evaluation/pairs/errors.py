"""Exact match and error rates of words and characters (or phones): errors per unit of the reference.

With several references, a text is compared with the one that it is nearest to. [PENN "Sequence to sequence"]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nextword.evaluation.lines.error_rate import paired_distances
from nextword.evaluation.pairs.counted import Counted, mean, ratio
from nextword.evaluation.pairs.measure import Found, Measure, nothing

Split = Callable[[str], Sequence[str]]


def word_error_rate(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Counted:
    """Return insertions, deletions and substitutions of words per word; phones between spaces are words."""
    return _error_rate(hypotheses, references, str.split)


def character_error_rate(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Counted:
    """Return the same for characters; a run of whitespace is one space."""
    return _error_rate(hypotheses, references, lambda text: " ".join(text.split()))


def exact_match(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Counted:
    """Return the share of texts that equal one of their references, up to whitespace."""
    return mean(
        [
            float(any(text.split() == right.split() for right in each))
            for text, each in zip(hypotheses, references, strict=True)
        ]
    )


def _error_rate(hypotheses: Sequence[str], references: Sequence[Sequence[str]], split: Split) -> Counted:
    owner_P = np.array([row for row, each in enumerate(references) for _ in each], dtype=np.int64)
    ids: dict[str, int] = {}
    written = [_ids(split(text), ids) for text in hypotheses]
    right = [_ids(split(text), ids) for each in references for text in each]
    errors_P = paired_distances(right, [written[row] for row in owner_P.tolist()])
    lengths_P = np.array([len(each) for each in right], dtype=np.int64)
    order_P = np.lexsort((errors_P / np.maximum(1, lengths_P), owner_P))  # of each text the nearest one first
    _, first_N = np.unique(owner_P[order_P], return_index=True)
    best_N = order_P[first_N]
    return Counted(np.stack([errors_P[best_N], lengths_P[best_N]], axis=1).astype(np.float64), ratio, False)


def _ids(units: Sequence[str], ids: dict[str, int]) -> list[int]:
    return [ids.setdefault(unit, len(ids)) for unit in units]


def _phones(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Found:
    right = exact_match(hypotheses, references)
    wrong_N2 = np.stack([1 - right.counts_NC[:, 0], right.counts_NC[:, 1]], axis=1)
    return Found(
        {
            "word_error": Counted(wrong_N2, ratio, False),
            "phone_error": word_error_rate(hypotheses, references),
        }
    )


ANSWERS = Measure("answers", "exact_match", True, nothing)
"""Questions and answers: the share of answers that are exactly right decides."""
PHONES = Measure("phones", "phone_error", False, _phones)
"""Letters to sounds: errors per phone decide; word_error is the share of words with a wrong phone."""
