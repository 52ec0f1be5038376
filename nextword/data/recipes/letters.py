"""A pronouncing dictionary: the letters of a word, and its phones. [IITD-2; PENN: letters to sounds]"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from nextword.core.errors import DataError
from nextword.data.recipes.recipe import Line, Pair

_VARIANT = re.compile(r"\(\d+\)$")  # the second pronunciation of a word, in CMUdict's own file


def letters(file: str, lines: Iterable[Line]) -> Iterator[Pair]:
    """A pronouncing dictionary: the letters of a word with spaces between them, and its phones."""
    for at, line in lines:
        if not line.strip() or line.startswith(";;;"):
            continue
        word, *phones = line.split()
        if not phones:
            raise DataError(f"expected a word and its phones, found '{line[:40]}'", file, at)
        if "#" in phones:  # a comment
            phones = phones[: phones.index("#")]
        yield " ".join(_VARIANT.sub("", word)), " ".join(phones)
