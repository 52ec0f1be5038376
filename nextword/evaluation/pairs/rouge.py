"""ROUGE-1, ROUGE-2 and ROUGE-L: how much of a summary is in the reference, and the other way round.

Lin 2004. F1 of words, of pairs of words and of the longest common subsequence; the mean over texts, of
several references the best. Words are runs of letters and digits of any script, in lower case, not stemmed.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache

from nextword.evaluation.pairs.counted import Counted, mean
from nextword.evaluation.pairs.measure import Found, Measure

Score = Callable[[Sequence[str], Sequence[str]], float]


def rouge(hypotheses: Sequence[str], references: Sequence[Sequence[str]], score: Score) -> Counted:
    """Return the mean over texts of a score of words; of several references the best."""
    return mean(
        [
            max(score(words_of(text), words_of(right)) for right in each)
            for text, each in zip(hypotheses, references, strict=True)
        ]
    )


def ngram_f1(n: int) -> Score:
    """Return the F1 of n-grams as a function of two texts."""

    def score(words: Sequence[str], right: Sequence[str]) -> float:
        mine, other = _ngrams(words, n), _ngrams(right, n)
        return _f1((mine & other).total(), mine.total(), other.total())

    return score


def subsequence_f1(words: Sequence[str], right: Sequence[str]) -> float:
    """Return the F1 of the longest common subsequence."""
    return _f1(common_subsequence(words, right), len(words), len(right))


def common_subsequence(a: Sequence[str], b: Sequence[str]) -> int:
    """Return the length of the longest common subsequence, a row of its table as the bits of a number.

    [Hyyrö 2004]: a zero bit is a place in ``a`` at which the row grows by one.
    """
    places: dict[str, int] = {}
    for at, word in enumerate(a):
        places[word] = places.get(word, 0) | 1 << at
    full = (1 << len(a)) - 1
    row = full
    for word in b:
        same = row & places.get(word, 0)
        row = (row + same | row - same) & full
    return len(a) - row.bit_count()


def words_of(text: str) -> list[str]:
    """Split a text into runs of letters, marks and digits, in lower case."""
    return "".join(character if _is_letter(character) else " " for character in text.lower()).split()


@lru_cache(maxsize=4096)
def _is_letter(character: str) -> bool:
    return unicodedata.category(character)[0] in "LMN"


def _ngrams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[at : at + n]) for at in range(len(words) - n + 1))


def _f1(right: int, written: int, there: int) -> float:
    return 2 * right / (written + there) if right else 0.0


def _summary(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Found:
    scores: dict[str, Score] = {"rouge_1": ngram_f1(1), "rouge_2": ngram_f1(2), "rouge_l": subsequence_f1}
    return Found({name: rouge(hypotheses, references, score) for name, score in scores.items()})


SUMMARY = Measure("summary", "rouge_l", True, _summary)
"""Summaries: ROUGE-L decides; ROUGE-1 and ROUGE-2 beside it, all F1 between 0 and 1."""
