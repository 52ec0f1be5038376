"""The XMU slide's own corpus, counted as the slide counts it: words without full stops, no END.

[XMU "Word Frequency", "Estimate based on frequencies", "Laplace smoothing"]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

TEXT = "I love you tons.\nI love you 3000.\nI am Iron Man.\nYou love me.\n"
SENTENCES: tuple[tuple[str, ...], ...] = tuple(
    tuple(line.rstrip(".").split()) for line in TEXT.strip().split("\n")
)
WORDS = tuple(dict.fromkeys(word for sentence in SENTENCES for word in sentence))  # M = 10, capitals count
Eps = Sequence[Fraction | float]


def counts(n: int) -> Counter[tuple[str, ...]]:
    """Count each n-gram of the corpus; an n-gram has n words and stays within its sentence."""
    return Counter(sentence[at : at + n] for sentence in SENTENCES for at in range(len(sentence) - n + 1))


def total() -> int:
    """Count all words: N."""
    return sum(len(sentence) for sentence in SENTENCES)


def p_word(word: str) -> Fraction:
    """Return p(x) = n(x) / N."""
    return Fraction(counts(1)[(word,)], total())


def p_first(word: str) -> Fraction:
    """Tell how many sentences begin with the word."""
    return Fraction(sum(sentence[0] == word for sentence in SENTENCES), len(SENTENCES))


def p_after(word: str, before: str) -> Fraction:
    """Return p(x' | x) = n(x, x') / n(x)."""
    return Fraction(counts(2)[(before, word)], counts(1)[(before,)])


def laplace(word: str, context: tuple[str, ...], eps: Eps, as_printed: bool = False) -> float:
    """Return the slide's formula for a context of no, one or two words; `as_printed` has its slip.

    The slip: the trigram's denominator has eps2, and must have eps3 for the sum over words to be 1.
    """
    base = (counts(1)[(word,)] + eps[0] / len(WORDS)) / (total() + eps[0])
    n = len(context) + 1
    if n == 1:
        return float(base)
    below = eps[n - 2] if as_printed and n == 3 else eps[n - 1]
    seen, context_seen = counts(n)[(*context, word)], counts(n - 1)[context]
    return float((seen + eps[n - 1] * base) / (context_seen + below))


def laplace_sum(context: tuple[str, ...], eps: Eps, as_printed: bool = False) -> float:
    """Return the formula summed over every word that can follow."""
    return sum(laplace(word, context, eps, as_printed) for word in WORDS)
