"""Every tokenizer says where documents begin among the lines, whatever pieces the text comes in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nextword.core import catalog
from nextword.core.contracts import END, START, Block
from nextword.text import chunks, sequences, subwords
from nextword.text.settings import TextSettings
from nextword.text.tokenizers import fit_tokenizer

TEXT = b"a b\nb a\n\na a a\n"


def _tokenizer(name: str, unit: str = "line"):
    options = TextSettings(tokenizer=name, size=300) if name in ("bpe", "unigram") else TextSettings()
    return fit_tokenizer(name, [Block(TEXT * 40, True)], options, unit)


TOKENIZERS = {name: _tokenizer(name) for name in catalog.names("tokenizer")}

documents_of_lines = st.lists(
    st.lists(st.sampled_from(["", "a", "a b", "b  a"]), max_size=4), min_size=1, max_size=5
)


def _blocks(documents: list[list[str]], end: bool, size: int) -> list[Block]:
    blocks = []
    for lines in documents:
        data = "\n".join(lines).encode() + (b"\n" if lines and end else b"")
        cuts = [data[at : at + size] for at in range(0, len(data), size)] or [b""]
        blocks += [Block(cut, number == len(cuts)) for number, cut in enumerate(cuts, start=1)]
    return blocks


@pytest.mark.parametrize("name", TOKENIZERS)
@given(documents=documents_of_lines, end=st.booleans(), size=st.integers(1, 9), gather=st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_documents_begin_where_they_begin(name, documents, end, size, gather):
    tokenizer, before = TOKENIZERS[name], (chunks.GATHER, sequences.GATHER, subwords._BATCH)
    chunks.GATHER = sequences.GATHER = subwords._BATCH = gather
    try:
        pieces = list(tokenizer.encode_blocks(_blocks(documents, end, size)))
    finally:
        chunks.GATHER, sequences.GATHER, subwords._BATCH = before
    found, offset = [], 0
    for piece in pieces:
        found += [offset + place for place in piece.documents]
        offset += len(piece.ids)
    ids = np.concatenate([piece.ids for piece in pieces]) if pieces else np.zeros(0, np.int32)
    assert (ids[found] == START).all()
    starts = np.flatnonzero(ids == START)
    firsts = _first_lines(documents, end)
    assert found == starts[firsts].tolist()
    assert (ids == END).sum() == len(starts)


def _first_lines(documents: list[list[str]], end: bool) -> list[int]:
    """The number of the first line of every document that has one."""
    firsts, number = [], 0
    for lines in documents:
        data = "\n".join(lines) + ("\n" if lines and end else "")
        count = data.count("\n") + (data[-1:] not in ("\n", ""))
        firsts += [number] if count else []
        number += count
    return firsts


@pytest.mark.parametrize("name", TOKENIZERS)
def test_where_documents_are_sequences_each_start_begins_one(name):
    tokenizer = _tokenizer(name, "document")
    assert all(piece.documents is None for piece in tokenizer.encode_blocks([Block(TEXT, True)] * 2))


@pytest.mark.parametrize("limit", [0, 1])
def test_fitting_says_it_too(limit):
    kind = catalog.find("tokenizer", "words")
    fitting = kind.fit_encode([Block(TEXT, True), Block(TEXT, True)], TextSettings(max_vocab=limit), "line")
    (piece,) = list(fitting)
    starts = np.flatnonzero(piece.ids == START)
    assert piece.documents == (starts[0], starts[4])
