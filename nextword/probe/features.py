"""Features of a text at every token that need no model: quotes, lines, sentences, kinds of letters.

Karpathy et al. 2015 found units that follow such things. A feature at a token is of the text up to its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
OPENING, CLOSING = "“„«「『‹", "”»」』›"
ENDS = ".!?।。！？…"
KINDS = ("space", "small letter", "capital", "letter", "digit", "mark", "none")


def numbers(pieces: Sequence[str]) -> dict[str, Array]:
    """Compute features that are numbers, by name; those that never change are left out."""
    rows = {
        "inside quotes": [], "inside brackets": [], "position in the line": [], "position in the word": [],
        "words of the sentence": [], "capital letter": [], "whitespace": [], "end of a sentence": [],
    }  # type: dict[str, list[float]]  # fmt: skip
    quoted, brackets, line, word, sentence, last = False, 0, 0, 0, 0, " "
    for piece in pieces:
        for character in piece:
            if character == '"':
                quoted = not quoted
            elif character in OPENING or character in CLOSING:
                quoted = character in OPENING
            brackets = max(0, brackets + (character in "([{（") - (character in ")]}）"))
            line = 0 if character == "\n" else line + 1
            word = 0 if character.isspace() else word + 1
            sentence = 0 if character in ENDS else sentence + int(word == 1)
            last = character
        values = (
            quoted, brackets > 0, line, word, sentence, last.isupper(), last.isspace(), last in ENDS,
        )  # fmt: skip
        for row, value in zip(rows.values(), values, strict=True):
            row.append(float(value))
    found = {name: np.array(row) for name, row in rows.items()}
    return {name: row for name, row in found.items() if len(row) and row.std() > 0}


def kinds(pieces: Sequence[str]) -> Array:
    """Return the kind of each token's last character: a place in `KINDS`."""
    return np.array([KINDS.index(_kind(piece[-1:])) for piece in pieces], dtype=np.int64)


def _kind(character: str) -> str:
    if not character:
        return "none"
    if character.isspace():
        return "space"
    if character.isdigit():
        return "digit"
    if character.isupper():
        return "capital"
    if character.islower():
        return "small letter"
    return "letter" if character.isalpha() else "mark"


def classes(pieces: Sequence[str]) -> dict[str, Array]:
    """Compute features as classes: kinds of tokens near and far, yes or no, and thirds of numbers."""
    kind_T = kinds(pieces)
    found = {"kind of this token": kind_T}
    for back in (1, 4):
        found[f"kind of the token {back} before"] = np.concatenate(
            [np.full(back, len(KINDS) - 1), kind_T[:-back]]
        )
    for name, values in numbers(pieces).items():
        if len(np.unique(values)) == 2:
            found[name] = (values > values.min()).astype(np.int64)
        elif name.startswith("position in the line") or name.startswith("words of"):
            found[f"{name} (thirds)"] = np.searchsorted(
                np.quantile(values, [1 / 3, 2 / 3]), values, side="left"
            )
    return {name: row for name, row in found.items() if len(np.unique(row)) > 1}
