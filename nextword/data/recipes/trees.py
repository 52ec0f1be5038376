"""A treebank's trees: the words of a sentence, and its tree as a sequence of brackets.

[IITD-2 "LSTM": parsing]; Vinyals et al. 2015. A leaf becomes its tag, so brackets are written without words;
traces and what they leave empty are removed, and function tags (NP-SBJ) cut off, as parsers do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from nextword.core.errors import DataError
from nextword.data.recipes.recipe import Line, Pair

_PIECES = re.compile(r"\(|\)|[^\s()]+")
_TRACE = "-NONE-"
Node = list[Any]  # a label, then children: nodes, or the word of a leaf


def trees(file: str, lines: Iterable[Line]) -> Iterator[Pair]:
    """Penn Treebank trees: the words of a sentence, and its brackets with the tags of the words as leaves."""
    opened: list[Node] = []
    began = 0
    for at, line in lines:
        for piece in _PIECES.findall(line):
            if piece == "(":
                began = began if opened else at
                opened.append([])
            elif piece != ")":
                if not opened:
                    raise DataError(f"expected '(', found '{piece[:40]}'", file, at)
                opened[-1].append(piece)
            else:
                if not opened:
                    raise DataError("a bracket closes that was never opened", file, at)
                node = opened.pop()
                if opened:
                    opened[-1].append(node)
                else:
                    yield from _pair(node)
    if opened:
        raise DataError("a bracket of this tree is never closed", file, began)


def _pair(node: Node) -> Iterator[Pair]:
    """Yield the words and brackets of one tree; the nameless bracket around it is left out."""
    while node and isinstance(node[0], list) and len(node) == 1:
        node = node[0]
    words: list[str] = []
    brackets = _linear(node if node and isinstance(node[0], str) else ["S", *node], words)
    if words:
        yield " ".join(words), " ".join(brackets)


def _linear(node: Node, words: list[str]) -> list[str]:
    label, *children = node
    if len(children) == 1 and isinstance(children[0], str):
        if label == _TRACE:
            return []
        words.append(children[0])
        return [label]
    inside = [piece for child in children if isinstance(child, list) for piece in _linear(child, words)]
    return [f"({_short(label)}", *inside, ")"] if inside else []


def _short(label: str) -> str:
    return re.split("[-=]", label, maxsplit=1)[0] or label
