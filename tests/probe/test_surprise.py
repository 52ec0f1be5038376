"""Surprise side by side: the bits are those of scoring, whatever the tokenizers."""

from __future__ import annotations

import numpy as np
import pytest

from nextword.probe import selection

TEXT = "the cat saw the big dog .\n"


def test_bits_of_two_runs_and_their_difference(subject):
    own, other = subject("ngram"), subject("lstm", tokenizer="characters")
    own.given = other.given = TEXT
    found = selection.look("surprise", own, None, other)
    assert found.names["N"] == TEXT.split()
    row = own.rows(100)[0]
    logp, _ = own.model.score(row.ids_T[None, 1:], np.array([len(row) - 1]))
    assert found.arrays["bits_N"] == pytest.approx(-logp[0, :-1] / np.log(2), abs=1e-4)
    assert len(found.arrays["against_N"]) == len(TEXT.split())
    titles = [part.title for part in found.parts]
    assert titles[2] == "The difference: counts less lstm"
    assert "gains most at" in found.sentence


def test_one_run_alone(subject):
    found = selection.look("surprise", subject("gru"))
    assert "bits per word" in found.sentence
    assert "against_N" not in found.arrays


def test_impossible_words_are_drawn_too(subject):
    made = subject("ngram", smoothing="mle")
    made.given = "the mat dog"
    found = selection.look("surprise", made)
    assert np.isinf(found.arrays["bits_N"]).any()
    assert "inf" not in found.parts[0].svg.split("</title>")[-1]
