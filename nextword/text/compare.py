"""Several tokenizers on one text: how many tokens, how many bytes each, how much is unknown.

The lectures' question of what a good unit is, as a table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nextword.core.contracts import Block, Tokenizer


@dataclass(frozen=True)
class TokenizerRow:
    """What one tokenizer makes of a text."""

    name: str
    vocab_size: int
    tokens: int  # END included
    words: int
    bytes: int
    unknown: int
    lossless: bool

    @property
    def bytes_per_token(self) -> float:
        """How much text a token stands for."""
        return self.bytes / self.tokens if self.tokens else 0.0

    @property
    def tokens_per_word(self) -> float:
        """How many pieces a word is cut into (fertility)."""
        return self.tokens / self.words if self.words else 0.0

    @property
    def unknown_rate(self) -> float:
        """The share of tokens that are UNKNOWN."""
        return self.unknown / self.tokens if self.tokens else 0.0


def measure(tokenizer: Tokenizer, blocks: Iterable[Block], name: str = "") -> TokenizerRow:
    """One row of the table; the text is read once, with bounded memory."""
    tokens = words = size = unknown = 0
    for part in tokenizer.encode_blocks(blocks):
        tokens += part.tokens
        words += part.words
        size += part.bytes
        unknown += part.unknown
    return TokenizerRow(
        name or tokenizer.name, tokenizer.vocab_size, tokens, words, size, unknown, tokenizer.lossless
    )


def compare(tokenizers: dict[str, Tokenizer], blocks: Iterable[Block]) -> list[TokenizerRow]:
    """A row for every tokenizer; the blocks are kept, so give a sample of a large text."""
    kept = list(blocks)
    return [measure(tokenizer, kept, name) for name, tokenizer in tokenizers.items()]
