"""Spans written as tags, one for each word: BIO (IOB2), IOB1 and BIOES, with BILOU as another spelling of it.

"Named Entity Recognition" [IITD-1 "Window classification"]. Ramshaw & Marcus 1995 (IOB1); B- begins a span,
I- continues it, E- ends it, S- is a span of one word, O is outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from nextword.core.errors import ConfigError

Name = Literal["none", "bio", "iob1", "bioes", "bilou"]
OUTSIDE = "O"
_AS_BIOES = {"L": "E", "U": "S"}  # BILOU: last, unit


class Span(NamedTuple):
    """Words ``start`` to ``end`` (not included) of a sentence, with a label."""

    start: int
    end: int
    label: str


class Tag(NamedTuple):
    """A tag taken apart; of "O" both parts are empty."""

    prefix: str
    label: str


def parse(tag: str) -> Tag | None:
    """Take a tag apart: "B-location" is ("B", "location"); None if it does not mark a part of a span."""
    if tag == OUTSIDE:
        return Tag("", "")
    prefix, dash, label = tag.partition("-")
    return Tag(prefix, label) if dash and label and prefix in ("B", "I", "E", "S", "L", "U") else None


class TagError(ConfigError):
    """Tags that nearly follow a scheme; it knows which tag of which sentence does not."""

    def __init__(self, message: str, sentence: int, word: int) -> None:
        super().__init__(message)
        self.sentence, self.word = sentence, word


def find_scheme(sentences: Iterable[Sequence[str]]) -> Name:
    """Find out which scheme the tags of a text follow; "none" where they do not mark spans.

    IOB1 is recognized by spans that all begin with I-. Raises `TagError` if letters of two schemes are
    mixed, or if most tags mark spans and some do not.
    """
    prefixes: set[str] = set()
    begins_with: set[str] = set()  # the prefixes of tags that do not continue the span before them
    first: dict[str, tuple[int, int]] = {}  # where a prefix stands first
    marks = 0
    others: list[tuple[str, int, int]] = []  # tags that do not mark spans, and where they stand
    for row, tags in enumerate(sentences):
        label = ""
        for at, tag in enumerate(tags):
            found = parse(tag)
            if found is None:
                others.append((tag, row, at))
                label = ""
                continue
            marks += 1
            first.setdefault(found.prefix, (row, at))
            prefixes.add(found.prefix)
            if found.label != label:
                begins_with.add(found.prefix)
            label = found.label
    has_outside = "" in prefixes
    prefixes.discard("")
    if not prefixes:
        return "none"
    if others:
        if has_outside and marks > len(others):
            tag, row, at = others[0]
            raise TagError(
                f"the tag '{tag}' is neither O nor a prefix and a label such as B-place; mend it, or use "
                "--set data.bio=none if the tags do not mark spans",
                row,
                at,
            )
        return "none"
    if prefixes <= {"B", "I"}:
        return "iob1" if "I" in begins_with and "B" not in begins_with else "bio"
    if prefixes <= {"B", "I", "E", "S"}:
        return "bioes"
    if prefixes <= {"B", "I", "L", "U"}:
        return "bilou"
    in_order = sorted(prefixes, key=lambda prefix: first[prefix])
    at = next(n for n in range(len(in_order)) if not _in_one_scheme(in_order[: n + 1]))
    raise TagError(
        f"the tags mix the prefixes {', '.join(in_order)}, which belong to different schemes; "
        "use B, I (BIO), B, I, E, S (BIOES) or B, I, L, U (BILOU)",
        *first[in_order[at]],
    )


def _in_one_scheme(prefixes: Iterable[str]) -> bool:
    return set(prefixes) <= {"B", "I", "E", "S"} or set(prefixes) <= {"B", "I", "L", "U"}


def spans_of(tags: Sequence[str], scheme: Name = "bio") -> list[Span]:
    """Return the spans that the tags mark, read leniently as conlleval and seqeval do.

    A span ends where its label changes, at O, before B and S, after E and S; an I- or E- that nothing begins
    begins a span.
    """
    spans: list[Span] = []
    start, label = 0, ""
    before = Tag("", "")
    for at, tag in enumerate((*tags, OUTSIDE)):
        now = parse(tag) or Tag("", "")
        prefix = _AS_BIOES.get(now.prefix, now.prefix)
        ends = bool(label) and (prefix in ("", "B", "S") or now.label != label or before.prefix in ("E", "S"))
        if ends:
            spans.append(Span(start, at, label))
            label = ""
        if now.label and not label:
            start, label = at, now.label
        before = Tag(prefix, now.label)
    return spans


def strict_spans(tags: Sequence[str], scheme: Name) -> list[Span]:
    """Return only the spans whose tags follow the scheme throughout, as seqeval's strict mode does."""
    parsed = [parse(tag) or Tag("", "") for tag in tags]
    spans = []
    for span in spans_of(tags, scheme):
        prefixes = [_AS_BIOES.get(each.prefix, each.prefix) for each in parsed[span.start : span.end]]
        if _is_whole(prefixes, scheme, span.start > 0 and parsed[span.start - 1].label == span.label):
            spans.append(span)
    return spans


def _is_whole(prefixes: list[str], scheme: Name, follows_same: bool) -> bool:
    if scheme in ("bioes", "bilou"):
        length = len(prefixes)
        return prefixes == (["S"] if length == 1 else ["B", *["I"] * (length - 2), "E"])
    if scheme == "iob1":
        return prefixes[0] == ("B" if follows_same else "I") and set(prefixes[1:]) <= {"I"}
    return prefixes[0] == "B" and set(prefixes[1:]) <= {"I"}


def may_follow(before: str | None, after: str | None, scheme: Name) -> bool:
    """Tell whether a tag may follow another; None is the beginning or the end of a sentence."""
    if scheme == "none":
        return True
    b = Tag("", "") if before is None else parse(before) or Tag("", "")
    a = Tag("", "") if after is None else parse(after) or Tag("", "")
    first, second = _AS_BIOES.get(b.prefix, b.prefix), _AS_BIOES.get(a.prefix, a.prefix)
    same = b.label == a.label
    if scheme == "iob1":
        return second != "B" or same  # B- only separates two spans of one label
    if scheme == "bio":
        return second != "I" or same
    is_open = first in ("B", "I")
    if second in ("I", "E"):
        return is_open and same
    return not is_open


def legal(tags: Sequence[str], scheme: Name) -> tuple[npt.NDArray[np.bool_], ...]:
    """Return which tags may follow which (``legal_KK``), begin (``legal_K``) and end (``legal_K``)."""
    pairs_KK = np.array([[may_follow(one, two, scheme) for two in tags] for one in tags], np.bool_)
    first_K = np.array([may_follow(None, tag, scheme) for tag in tags], np.bool_)
    last_K = np.array([may_follow(tag, None, scheme) for tag in tags], np.bool_)
    return pairs_KK.reshape(len(tags), len(tags)), first_K, last_K


def illegal_steps(tags: Sequence[str], scheme: Name) -> list[int]:
    """Return the places whose tag may not follow the one before it; the length: the end is not legal."""
    pairs = zip((None, *tags), (*tags, None), strict=True)
    return [at for at, (before, after) in enumerate(pairs) if not may_follow(before, after, scheme)]


def repaired(tags: Sequence[str], scheme: Name) -> tuple[str, ...]:
    """Return legal tags that mark the same spans, read leniently."""
    if scheme == "none":
        return tuple(tags)
    made = [OUTSIDE] * len(tags)
    last = Span(0, 0, "")
    for span in spans_of(tags, scheme):
        touches = last.end == span.start and last.label == span.label
        made[span.start : span.end] = write(span, scheme, touches)
        last = span
    return tuple(made)


def write(span: Span, scheme: Name, follows_same: bool = False) -> list[str]:
    """Return the tags of one span; ``follows_same``: a span of the same label ends where it begins."""
    length, label = span.end - span.start, span.label
    if scheme == "iob1":
        return [f"{'B' if follows_same else 'I'}-{label}", *[f"I-{label}"] * (length - 1)]
    if scheme == "bio":
        return [f"B-{label}", *[f"I-{label}"] * (length - 1)]
    single, last = ("U", "L") if scheme == "bilou" else ("S", "E")
    if length == 1:
        return [f"{single}-{label}"]
    return [f"B-{label}", *[f"I-{label}"] * (length - 2), f"{last}-{label}"]
