"""How varied replies are: different n-grams among all n-grams that were written, and words a reply.

Li et al. 2016. A model that says "I don't know." to everything has few; a single text has no such number.
"""

from __future__ import annotations

from collections.abc import Sequence

from nextword.evaluation.pairs.measure import Found, Measure

_ORDERS = (1, 2)


def distinct(texts: Sequence[str], n: int) -> float:
    """Return the share of n-grams that are different from each other; 0 where there are none."""
    seen: set[tuple[str, ...]] = set()
    count = 0
    for text in texts:
        words = text.split()
        found = [tuple(words[at : at + n]) for at in range(len(words) - n + 1)]
        seen.update(found)
        count += len(found)
    return len(seen) / count if count else 0.0


def _dialogue(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Found:
    variety = {f"distinct_{n}": distinct(hypotheses, n) for n in _ORDERS}
    words = sum(len(text.split()) for text in hypotheses) / max(1, len(hypotheses))
    replies = {"different_replies": len(set(hypotheses)) / max(1, len(hypotheses))}
    return Found(other=variety | replies | {"words_a_reply": words})


DIALOGUE = Measure("dialogue", "perplexity", False, _dialogue)
"""Replies: perplexity decides; distinct_1 and distinct_2 say how varied they are."""
