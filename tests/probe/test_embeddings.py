"""Embeddings of the words of a text."""

from __future__ import annotations

from nextword.probe import selection
from nextword.probe.settings import ProbeSettings


def test_embeddings_of_the_words_of_the_text(subject):
    found = selection.look("embeddings", subject("window"), ProbeSettings(words=4, neighbours=2))
    assert found.names["Q"][0] == "the"
    assert found.arrays["near_QK"].shape == (4, 2)
    assert (found.arrays["near_QK"] > 2).all()
    assert "A map of the embeddings" in found.parts[1].svg
