"""Labelled bracket F1 of parses, by the rules of EVALB, and the check that an output is a tree.

[IITD-2 "LSTM": parsing is among its successes]; Vinyals et al. 2015 write a tree as a sequence of brackets.
A parse is ``(S (NP DT NN ) (VP VBZ ) . )``: a bracket opens with its label, a leaf is the tag of a word.

EVALB's rules (Sekine & Collins 1997, COLLINS.prm): punctuation and traces do not count, nor brackets without
a word; what follows ``-`` or ``=`` in a label does not count; ADVP and PRT are the same; TOP is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from nextword.evaluation.pairs.counted import Counted, f1, mean
from nextword.evaluation.pairs.measure import Found, Measure

Bracket = tuple[str, int, int]  # label, first leaf, after the last leaf
_LEFT_OUT = frozenset((",", ":", "``", "''", ".", "-NONE-"))  # tags of leaves
_NOT_COUNTED = frozenset(("", "TOP", "ROOT", *_LEFT_OUT))  # labels of brackets
_SAME = {"PRT": "ADVP"}
MISSING = "XX"  # the tag of a word for which nothing was written
_PIECES = re.compile(r"\(|\)|[^\s()]+")


@dataclass(frozen=True)
class Tree:
    """The brackets of a parse, and its leaves."""

    brackets: tuple[Bracket, ...]
    leaves: tuple[str, ...]


def read_tree(text: str) -> Tree | None:
    """Read a parse; None where it is not one tree: brackets that do not close, several roots, no leaf."""
    brackets: list[Bracket] = []
    opened: list[tuple[str, int]] = []
    leaves: list[str] = []
    pieces = _PIECES.findall(text)
    at = 0
    while at < len(pieces):
        piece = pieces[at]
        if piece != "(" and not opened:
            return None
        if piece == "(":
            if brackets and not opened:  # a second root
                return None
            has_label = at + 1 < len(pieces) and pieces[at + 1] not in "()"
            opened.append((pieces[at + 1] if has_label else "", len(leaves)))
            at += has_label
        elif piece == ")":
            label, start = opened.pop()
            brackets.append((label, start, len(leaves)))
        else:
            leaves.append(piece)
        at += 1
    return Tree(tuple(brackets), tuple(leaves)) if brackets and leaves and not opened else None


def counted_brackets(tree: Tree, left_out: Collection[int]) -> Counter[Bracket]:
    """Count the brackets that EVALB compares; ``left_out`` are the leaves that do not count."""
    before = np.cumsum([0, *(at not in left_out for at in range(len(tree.leaves)))]).tolist()
    found: Counter[Bracket] = Counter()
    for label, start, end in tree.brackets:
        short = re.split("[-=]", label, maxsplit=1)[0]
        if before[start] < before[end] and short not in _NOT_COUNTED:
            found[_SAME.get(short, short), before[start], before[end]] += 1
    return found


def compare_trees(hypothesis: str, reference: str) -> tuple[int, int, int, bool]:
    """Return the brackets that are right, those written and those there, and whether the output is a tree.

    Which leaves are punctuation is asked of the reference, since both stand over the same words. An output
    that is not a tree over as many words has no bracket.
    """
    right, mine = read_tree(reference), read_tree(hypothesis)
    if right is None:
        return 0, 0, 0, mine is not None
    left_out = {at for at, tag in enumerate(right.leaves) if tag in _LEFT_OUT}
    there = counted_brackets(right, left_out)
    if mine is None or len(mine.leaves) != len(right.leaves):
        return 0, 0, there.total(), False
    written = counted_brackets(mine, left_out)
    return (there & written).total(), written.total(), there.total(), True


def fitted(text: str, words: int) -> str:
    """Return a tree over so many words that is near an output, as parsers repair it.

    What is open is closed at the end, and a root that closes too early stays open; leaves past the last word
    are left out, and words without a leaf stand at the end of the root.
    """
    made: list[str] = []
    depth = leaves = at = 0
    pieces = _PIECES.findall(text)
    while at < len(pieces) and leaves < words:
        piece = pieces[at]
        if piece == "(":
            has_label = at + 1 < len(pieces) and pieces[at + 1] not in "()"
            made.append(f"({pieces[at + 1] if has_label else ''}")
            depth, at = depth + 1, at + has_label
        elif piece == ")" and depth > 1:
            made.append(")")
            depth -= 1
        elif piece != ")":
            made += [piece] if depth else ["(S", piece]
            depth, leaves = max(1, depth), leaves + 1
        at += 1
    made += [")"] * (depth - 1) if depth else ["(S"]
    return " ".join([*made, *[MISSING] * (words - leaves), ")"])


def right_branching(leaves: Sequence[str], root: str = "S", inner: str = "VP") -> str:
    """Return the parse in which every bracket ends with the sentence: (S a (VP b (VP c d))); the baseline.

    The last leaf stands outside if it is punctuation.
    """
    words, after = list(leaves), list[str]()
    while len(words) > 1 and words[-1] in _LEFT_OUT:
        after.insert(0, words.pop())
    inside = words[-1:]
    for word in reversed(words[1:-1]):
        inside = [word, *inside] if len(inside) == 1 else [word, f"({inner}", *inside, ")"]
    if len(words) > 2:
        inside = [f"({inner}", *inside, ")"]
    return " ".join([f"({root}", *(words[:1] if len(words) > 1 else []), *inside, *after, ")"])


def _repaired(hypothesis: str, reference: str) -> str:
    """Return a tree over the words of the reference; an output that is one stays as it is."""
    right = read_tree(reference)
    if right is None or compare_trees(hypothesis, reference)[3]:
        return hypothesis
    return fitted(hypothesis, len(right.leaves))


def _parse(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Found:
    """Measure against the reference with the most brackets in common, where there are several."""
    rows = [
        max((compare_trees(text, right) for right in each), key=lambda row: row[0])
        for text, each in zip(hypotheses, references, strict=True)
    ]
    repaired = [
        max((compare_trees(_repaired(text, right), right) for right in each), key=lambda row: row[0])
        for text, each in zip(hypotheses, references, strict=True)
    ]
    counts_N3 = np.array([row[:3] for row in rows], dtype=np.float64)
    is_N1 = np.array([[row[3]] for row in rows], dtype=np.float64)
    return Found(
        {
            "bracket_f1": Counted(counts_N3, f1),
            "bracket_f1_of_trees": Counted(counts_N3 * is_N1, f1),  # EVALB leaves out what it cannot read
            "bracket_f1_repaired": Counted(np.array([row[:3] for row in repaired], dtype=np.float64), f1),
            "trees": mean(is_N1[:, 0].tolist()),
        }
    )


PARSE = Measure("parse", "bracket_f1", True, _parse)
"""Parses as brackets: labelled bracket F1 by EVALB's rules decides; also the share that are trees."""
