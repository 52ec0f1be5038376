"""Small count models over real tokenizers, and the same models without their fast path."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from nextword.core.contracts import Block
from nextword.ngram.estimation import build
from nextword.ngram.settings import NgramSettings
from nextword.text.settings import TextSettings
from nextword.text.tokenizers import fit_tokenizer

COMMON = "the a cat dog bird sat ran saw on under mat log tree and then Überall naïve 猫 ..."
WORDS = COMMON.split(" ")


def some_text(lines: int = 300, seed: int = 0, words: tuple[str, ...] = tuple(WORDS)) -> bytes:
    """Lines of words in which each word likes some followers more than others."""
    rng = np.random.default_rng(seed)
    text, last = [], 0
    for _ in range(lines):
        line = []
        for _ in range(int(rng.integers(0, 12))):
            last = int(last * 3 + rng.geometric(0.4)) % len(words)
            line.append(words[last])
        text.append(" ".join(line))
    return ("\n".join(text) + "\n").encode()


class Plain:
    """The five methods of the contract and nothing else: the way a neural model looks."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.vocab_size = model.vocab_size
        self.start, self.next, self.step = model.start, model.next, model.step
        self.score, self.reorder = model.score, model.reorder


@cache
def make(
    tokenizer: str = "words", smoothing: str = "modified-kneser-ney", order: int = 3, **text: Any
) -> Any:
    settings = TextSettings(size=300 if tokenizer in ("bpe", "unigram") else 0, **text)
    block = Block(some_text(), True)
    fitted = fit_tokenizer(tokenizer, [block], settings)
    ids = np.concatenate([piece.ids for piece in fitted.encode_blocks([block])])
    model = build(ids, fitted.vocab_size, NgramSettings(order=order, smoothing=smoothing))
    return model, fitted
