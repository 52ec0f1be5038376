"""bAbI's stories: the lines of a story up to a question, and its answer.

Weston et al. 2015. A line is ``3 Where is Mary? TAB bathroom TAB 1``, a statement has no tabs, and the number
1 begins a new story. [MAUSAM, PENN: question answering as sequence to sequence]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nextword.core.errors import DataError
from nextword.data.recipes.recipe import Line, Pair


def stories(file: str, lines: Iterable[Line]) -> Iterator[Pair]:
    """bAbI: the story so far with the question, and the answer; supporting facts are left out."""
    story: list[str] = []
    for at, line in lines:
        if not line.strip():
            continue
        number, _, rest = line.strip().partition(" ")
        if not number.isdecimal():
            raise DataError(f"expected a number and a sentence, found '{line[:40]}'", file, at)
        if number == "1":
            story = []
        text, *answer = (part.strip() for part in rest.split("\t"))
        if answer:
            yield " ".join([*story, text]), answer[0]
        else:
            story.append(text)
