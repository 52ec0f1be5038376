"""How text becomes ids: the settings of the group ``text``.

The choices follow the lectures' preprocessing steps; each description names the cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from nextword.core.settings import Settings


class TextSettings(Settings):
    """Which tokenizer to use, how to treat unknown words, and the size of the vocabulary."""

    tokenizer: str = Field(
        "auto", description="words, characters, bytes, bpe, unigram, or a file; auto: words for count models"
    )
    unknown: Literal["spell", "literal"] = Field(
        "spell", description="spell: a literal <unk> is an ordinary word; literal: it is the unknown symbol"
    )
    min_count: int = Field(1, ge=1, description="words with a lower count become unknown")
    max_vocab: int = Field(
        0, ge=0, le=2**31 - 4, description="keep this many of the most frequent words; 0 keeps all"
    )
    size: int = Field(
        0, ge=0, le=1_000_000, description="subword vocabulary size; 0 chooses it from the size of the text"
    )
    fit_bytes: int = Field(
        64_000_000, ge=1, description="subwords are learned from this many bytes at the start of the text"
    )
    pattern: Literal["qwen2", "gpt2"] = Field(
        "qwen2", description="which model's pattern splits the text before subwords: qwen2 digit by digit"
    )
    normalize: Literal["none", "nfc"] = Field(
        "none", description="nfc: compose accents (Unicode NFC); the code is then not lossless"
    )
    lowercase: bool = Field(False, description="convert to lower case; the code is then not lossless")
    earlier: ClassVar[Mapping[str, Any]] = {"pattern": "gpt2"}
