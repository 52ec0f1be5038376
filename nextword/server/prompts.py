"""Prompts as clients give them, texts or ids, become ids; and ids become the text that is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nextword.core.contracts import SPECIALS, START, Tokenizer
from nextword.server.errors import ApiError
from nextword.server.schemas import MOST_PROMPT


@dataclass(frozen=True)
class Prompt:
    """The ids of a prompt without START, the text of it, and whether the client gave START itself."""

    ids: tuple[int, ...]
    text: str
    has_start: bool = False

    @property
    def count(self) -> int:
        """Return how many tokens the client gave."""
        return len(self.ids) + self.has_start


def prompts_of(given: Any, tokenizer: Tokenizer) -> list[Prompt]:
    """Return the prompts of a request, checked against the vocabulary."""
    if isinstance(given, str) or (given and isinstance(given[0], int)):
        given = [given]
    made = [
        from_text(each, tokenizer) if isinstance(each, str) else from_ids(each, tokenizer) for each in given
    ]
    count = sum(each.count for each in made)
    if count > MOST_PROMPT:
        raise ApiError(
            422,
            f"the prompts have {count:,} tokens, and at most {MOST_PROMPT:,} are read",
            "too_long",
            "prompt",
        )
    return made


def from_text(text: str, tokenizer: Tokenizer) -> Prompt:
    """Encode a text; symbols such as </s> in it are ordinary text."""
    return Prompt(tuple(map(int, tokenizer.encode(text))), text)


def from_ids(ids: Sequence[int], tokenizer: Tokenizer) -> Prompt:
    """Check ids: START may stand first, where it is read and not predicted."""
    has_start = bool(ids) and ids[0] == START
    rest = tuple(ids[1:] if has_start else ids)
    wrong = next((each for each in rest if each >= tokenizer.vocab_size or each == START), None)
    if wrong == START:
        raise ApiError(
            422, f"the id {START} ({SPECIALS[START]}) may only stand first", "invalid_token", "prompt"
        )
    if wrong is not None:
        raise ApiError(
            422,
            f"the id {wrong} is not in the vocabulary of {tokenizer.vocab_size:,} tokens",
            "invalid_token",
            "prompt",
        )
    return Prompt(rest, tokenizer.decode(rest), has_start)
