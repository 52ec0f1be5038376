"""Tokenizers compared on one text."""

from __future__ import annotations

import pytest
from tokenized_texts import BLOCKS

from nextword.core.contracts import Block
from nextword.text.compare import compare
from nextword.text.settings import TextSettings
from nextword.text.tokenizers import (
    fit_tokenizer,
)


def test_tokenizers_are_compared_on_one_text() -> None:
    made = {name: fit_tokenizer(name, BLOCKS, TextSettings()) for name in ("words", "bytes")}
    words, plain = compare(made, [Block(b"the cow\n", True)])
    assert (words.tokens, words.unknown, words.words, words.bytes) == (3, 1, 3, 8)
    assert words.unknown_rate == pytest.approx(1 / 3)
    assert plain.bytes_per_token == pytest.approx(8 / 9)
    assert plain.tokens_per_word == 4.5
    empty = compare(made, [])[0]
    assert (empty.bytes_per_token, empty.tokens_per_word, empty.unknown_rate) == (0, 0, 0)
