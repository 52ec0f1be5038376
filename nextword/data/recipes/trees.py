"""A treebank's trees: the words of a sentence, and its tree as a sequence of brackets.

[IITD-2 "LSTM": parsing]; Vinyals et al. 2015. A leaf becomes its tag, so brackets are written without words;
traces and what they leave empty are removed, and function tags (NP-SBJ) cut off, as parsers do.

With numbered words a leaf is the number that stands before its word in the source, so that a decoder sees in
what it wrote last which word is next, and need not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from nextword.core.errors import DataError
from nextword.data.recipes.recipe import Line, Pair

_PIECES = re.compile(r"\(|\)|[^\s()]+")
_TRACE = "-NONE-"
_KEPT, _END = 4, 3  # letters of a word that is kept as it is, and of the end that is kept of a longer one
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


def numbered_trees(file: str, lines: Iterable[Line]) -> Iterator[Pair]:
    """Penn Treebank trees whose leaves are the numbers of their words; punctuation keeps its tag."""
    for words, brackets in trees(file, lines):
        yield number_words(words), " ".join(_numbered(brackets.split()))


def number_words(sentence: str) -> str:
    """Return ``@1 a @2 ~aany @3 .``: a number before each word, and of a longer word its shape and end."""
    return " ".join(f"@{at} {_shape(word)}" for at, word in enumerate(sentence.split(), start=1))


def _numbered(pieces: Iterable[str]) -> Iterator[str]:
    at = 0
    for piece in pieces:
        is_leaf = piece != ")" and not piece.startswith("(")
        at += is_leaf
        yield f"@{at}" if is_leaf and any(map(str.isalpha, piece)) else piece


def _shape(word: str) -> str:
    """Return a word of a few small letters as it is, and a class of any other: few are seen often enough."""
    if (len(word) <= _KEPT and word.islower()) or not any(map(str.isalnum, word)):
        return word
    hyphen = "-" if "-" in word else ""
    if any(map(str.isdigit, word)):
        return f"~0{hyphen}"
    return f"~{'A' if word[0].isupper() else 'a'}{hyphen}{word[-_END:].lower()}"


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
