"""Compare tokenizers on one text: number of tokens, bytes per token, share of unknown tokens.

The lectures' question of what makes a good unit, as a table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nextword.core.contracts import Block, Tokenizer


@dataclass(frozen=True)
class TokenizerRow:
    """The result of one tokenizer on a text."""

    name: str
    vocab_size: int
    tokens: int  # END included
    words: int
    bytes: int
    unknown: int
    lossless: bool

    @property
    def bytes_per_token(self) -> float:
        """Average bytes of text per token."""
        return self.bytes / self.tokens if self.tokens else 0.0

    @property
    def tokens_per_word(self) -> float:
        """Average number of tokens per word (fertility)."""
        return self.tokens / self.words if self.words else 0.0

    @property
    def unknown_rate(self) -> float:
        """The share of tokens that are UNKNOWN."""
        return self.unknown / self.tokens if self.tokens else 0.0


def measure(tokenizer: Tokenizer, blocks: Iterable[Block], name: str = "") -> TokenizerRow:
    """Return one row of the table; the text is read once, in bounded memory."""
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
    """Return a row for every tokenizer; the blocks are kept in memory, so pass a sample of a large text."""
    kept = list(blocks)
    return [measure(tokenizer, kept, name) for name, tokenizer in tokenizers.items()]
