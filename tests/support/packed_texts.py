"""Small random texts as packed ids, for tests of count models."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from nextword.core.contracts import END, START

VOCABULARY = 9  # ids 0 … 8: three specials and six words


def pack(sentences: list[list[int]]) -> np.ndarray:
    """START w … END for every sentence."""
    return np.array([i for s in sentences for i in (START, *s, END)], dtype=np.int32)


def texts(words: int = VOCABULARY, most: int = 12) -> st.SearchStrategy[np.ndarray]:
    """Packed texts with at least one word; empty sentences and repetitions are common."""
    sentence = st.lists(st.integers(3, words - 1), max_size=6)
    return st.lists(sentence, min_size=1, max_size=most).filter(any).map(pack)


def zipf_text(sentences: int, words: int, seed: int = 0) -> np.ndarray:
    """A text whose words are as unevenly frequent as real ones."""
    rng = np.random.default_rng(seed)
    return pack([
        (3 + (rng.zipf(1.4, rng.integers(0, 14)) - 1) % (words - 3)).tolist() for _ in range(sentences)
    ])  # fmt: skip
