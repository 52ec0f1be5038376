"""Conversations: what was said before, and the reply. [PENN, MAUSAM: dialogue as sequence to sequence]"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nextword.data.recipes.recipe import Line, Pair

BETWEEN = " <turn> "
_REMEMBERED = 3  # turns before a reply


def turns(file: str, lines: Iterable[Line]) -> Iterator[Pair]:
    """A turn a line, a blank line between conversations: up to three turns before a reply, and the reply."""
    said: list[str] = []
    for _, line in lines:
        text = line.strip()
        if not text:
            said = []
            continue
        if said:
            yield BETWEEN.join(said[-_REMEMBERED:]), text
        said.append(text)
