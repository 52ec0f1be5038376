"""Spans written as tags: schemes, repairs, and equality with seqeval."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import IOB1, IOB2, IOBES, Entities

from nextword.core.errors import ConfigError
from nextword.data.spans import (
    Span,
    find_scheme,
    illegal_steps,
    legal,
    may_follow,
    repaired,
    spans_of,
    strict_spans,
    write,
)

BIO = st.lists(st.sampled_from(["O", "B-a", "I-a", "B-b", "I-b"]), max_size=8)
BIOES = st.lists(st.sampled_from(["O", *(f"{p}-{x}" for p in "BIES" for x in "ab")]), max_size=8)
SCHEMES = ["bio", "iob1", "bioes", "bilou"]


@given(st.one_of(BIO, BIOES))
def test_lenient_spans_are_those_of_seqeval(tags):
    theirs = [Span(start, end + 1, label) for label, start, end in get_entities(tags)]
    assert spans_of(tags) == theirs


@pytest.mark.parametrize(("scheme", "theirs"), [("bio", IOB2), ("bioes", IOBES), ("iob1", IOB1)])
@given(data=st.data())
def test_strict_spans_are_those_of_seqeval(scheme, theirs, data):
    tags = data.draw(BIOES if scheme == "bioes" else BIO)
    if scheme == "iob1":  # of tags that are not legal there, seqeval keeps a part
        tags = list(repaired(tags, scheme))
    found = {
        Span(each.start, each.end, each.tag) for row in Entities([tags], theirs).entities for each in row
    }
    assert set(strict_spans(tags, scheme)) == found


@pytest.mark.parametrize("scheme", SCHEMES)
@given(tags=st.one_of(BIO, BIOES))
def test_repaired_tags_are_legal_and_mark_the_same_spans(scheme, tags):
    made = repaired(tags, scheme)
    assert illegal_steps(made, scheme) == []
    assert spans_of(made) == spans_of(tags)
    assert repaired(made, scheme) == made


@pytest.mark.parametrize("scheme", SCHEMES)
def test_written_spans_are_legal(scheme):
    for length in (1, 2, 3):
        tags = ["O", *write(Span(1, 1 + length, "x"), scheme), "O"]
        assert illegal_steps(tags, scheme) == []
        assert strict_spans(tags, scheme) == [Span(1, 1 + length, "x")]


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        ([["B-a", "I-a", "O", "B-a"]], "bio"),
        ([["I-a", "I-a", "O", "I-b"], ["I-a", "B-a", "O"]], "iob1"),
        ([["I-a", "O", "B-a"]], "bio"),  # a mistake in BIO, not IOB1: a span begins with B after O
        ([["S-a", "B-b", "E-b"]], "bioes"),
        ([["U-a", "B-b", "L-b"]], "bilou"),
        ([["NOUN", "VERB"]], "none"),
        ([["O", "O"]], "none"),
        ([["B", "O"]], "none"),
    ],
)
def test_the_scheme_is_found(tags, scheme):
    assert find_scheme(tags) == scheme


def test_mixed_schemes_are_refused():
    with pytest.raises(ConfigError, match="different schemes"):
        find_scheme([["B-a", "E-a", "U-b"]])


def test_legal_arrays_agree_with_pairs():
    tags = ["O", "B-a", "I-a", "E-a", "S-a"]
    pairs, first, last = legal(tags, "bioes")
    assert pairs[1, 2]
    assert not pairs[1, 0]
    assert not first[2]
    assert not last[1]
    assert all(
        pairs[i, j] == may_follow(a, b, "bioes") for i, a in enumerate(tags) for j, b in enumerate(tags)
    )
