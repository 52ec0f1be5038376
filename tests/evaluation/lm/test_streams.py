"""Packed streams: the same numbers in one pass, in batches and in pieces cut anywhere."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packed_texts import pack

from nextword.core.contracts import END, Encoded
from nextword.core.errors import DamagedError
from nextword.evaluation.lm import batches
from nextword.evaluation.lm.streams import ScoreStream, gathered
from nextword.mixtures.mixture import Mixture
from nextword.ngram.model import NgramModel

sequences = st.lists(st.lists(st.integers(3, 12), max_size=9), min_size=1, max_size=8)


def one_by_one(model, rows, begin=True):
    """The definition: step through every sequence."""
    found = []
    for row in rows:
        state = model.start(1, None, begin)
        logp = model.next(state)
        found.append(0.0)
        for word in (*row, END):
            found.append(logp[0, word])
            logp, state = model.step(np.array([word]), state)
    return np.array(found)


@pytest.mark.parametrize("kind", ["packed", "plain", "packed without order"])
@settings(max_examples=25, deadline=None)
@given(rows=sequences, cuts=st.lists(st.integers(0, 80), max_size=5))
def test_a_stream_cut_anywhere_gives_what_stepping_gives(trained, plain, kind, rows, cuts):
    model, _ = trained()
    asked = model if kind == "packed" else plain(model)
    if kind == "packed without order":
        asked.score_packed = model.score_packed
    stream, ids = ScoreStream(asked), pack(rows)
    edges = [0, *sorted(min(cut, len(ids)) for cut in cuts), len(ids)]
    found = np.concatenate([stream.push(ids[a:b]) for a, b in pairwise(edges)])
    assert np.allclose(found, one_by_one(model, rows), atol=1e-9)


@pytest.mark.parametrize("mixed", [False, True])
def test_nan_is_an_error_and_never_a_score(trained, mixed):
    good = trained()[0]
    levels = [dataclasses.replace(level, probs=level.probs * np.float32("nan")) for level in good.trie.levels]
    bad = NgramModel(dataclasses.replace(good.trie, levels=tuple(levels)))
    stream = ScoreStream(Mixture([good, bad], [0.5, 0.5]) if mixed else bad)
    with pytest.raises(DamagedError, match="computed NaN instead of a probability"):
        stream.push(pack([[3, 4]]))


@settings(max_examples=15, deadline=None)
@given(rows=sequences)
def test_without_start_the_first_word_has_no_context(trained, rows):
    model, _ = trained()
    assert np.allclose(ScoreStream(model, begin=False).push(pack(rows)), one_by_one(model, rows, begin=False))


def test_long_sequences_are_scored_in_pieces_with_the_same_result(trained, plain, monkeypatch):
    model, _ = trained()
    rng = np.random.default_rng(0)
    rows = [list(rng.integers(3, 12, size=size)) for size in (50, 3, 0, 17, 16, 40)]
    expected = ScoreStream(plain(model)).push(pack(rows))
    monkeypatch.setattr(batches, "PIECE", 16)
    monkeypatch.setattr(batches, "BATCH", 24)
    assert np.allclose(ScoreStream(plain(model)).push(pack(rows)), expected)


def test_small_pieces_are_put_together_without_loss():
    pieces = [Encoded(np.full(4, i), 1, 2, 3, 1, 0.5) for i in range(5)]
    found = list(gathered(pieces, size=8))
    assert [len(piece.ids) for piece in found] == [8, 8, 4]
    assert sum(piece.words for piece in found) == 10
    assert sum(piece.side_nats for piece in found) == 2.5
    assert np.array_equal(np.concatenate([p.ids for p in found]), np.concatenate([p.ids for p in pieces]))


documents_of_rows = st.lists(sequences, min_size=1, max_size=4)


def carried(model, documents):
    """The definition: step on through the lines of a document."""
    found = []
    for rows in documents:
        state = model.start(1)
        logp = model.next(state)
        for row in rows:
            found.append(0.0)
            for word in (*row, END):
                found.append(logp[0, word])
                logp, state = model.step(np.array([word]), state)
    return np.array(found)


def pieces_of(documents, cuts):
    """The packed ids cut anywhere, each piece with the offsets of its documents."""
    ids = pack([row for rows in documents for row in rows])
    lengths = [sum(len(row) + 2 for row in rows) for rows in documents]
    begins = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(int)
    edges = [0, *sorted(min(cut, len(ids)) for cut in cuts), len(ids)]
    for a, b in pairwise(edges):
        yield ids[a:b], tuple((begins[(begins >= a) & (begins < b)] - a).tolist())


def carrier(model):
    """The model as one whose state outlives a line."""
    model.carry = lambda state: state
    return model


@settings(max_examples=30, deadline=None)
@given(documents=documents_of_rows, cuts=st.lists(st.integers(0, 80), max_size=5))
def test_a_carried_state_goes_on_within_a_document_and_begins_anew_at_the_next(
    trained, plain, documents, cuts
):
    model, _ = trained()
    stream = ScoreStream(carrier(plain(model)), carry=True)
    found = np.concatenate([stream.push(ids, begins) for ids, begins in pieces_of(documents, cuts)])
    assert np.allclose(found, carried(model, documents), atol=1e-9)


@settings(max_examples=20, deadline=None)
@given(documents=documents_of_rows, cuts=st.lists(st.integers(0, 80), max_size=5))
def test_a_mixture_is_streamed_by_its_parts(trained, plain, documents, cuts):
    model, _ = trained()
    mixture = Mixture([model, carrier(plain(model))], (0.25, 0.75))
    stream = ScoreStream(mixture, carry=True)
    found = np.concatenate([stream.push(ids, begins) for ids, begins in pieces_of(documents, cuts)])
    alone = one_by_one(model, [row for rows in documents for row in rows])
    expected = np.log(0.25 * np.exp(alone) + 0.75 * np.exp(carried(model, documents)))
    assert np.allclose(found, expected, atol=1e-9)


@settings(max_examples=10, deadline=None)
@given(documents=documents_of_rows)
def test_nothing_is_carried_unless_asked_for(trained, plain, documents):
    model, _ = trained()
    rows = [row for rows in documents for row in rows]
    (ids, begins), *_ = pieces_of(documents, [])
    assert np.allclose(ScoreStream(carrier(plain(model))).push(ids, begins), one_by_one(model, rows))


def test_long_documents_are_read_side_by_side_with_the_same_result(trained, plain, monkeypatch):
    model, _ = trained()
    rng = np.random.default_rng(0)
    documents = [[list(rng.integers(3, 12, size=9))] * count for count in (6, 7, 5, 1, 6)]
    monkeypatch.setattr(batches, "PIECE", 16)
    monkeypatch.setattr(batches, "BATCH", 24)
    (ids, begins), *_ = pieces_of(documents, [])
    assert np.allclose(
        ScoreStream(carrier(plain(model)), carry=True).push(ids, begins), carried(model, documents)
    )


def test_documents_are_put_together_with_their_places():
    pieces = [Encoded(np.full(4, i), 1, 2, 3, 1, 0.5, (0, 2)) for i in range(3)]
    assert [piece.documents for piece in gathered(pieces, size=8)] == [(0, 2, 4, 6), (0, 2)]
