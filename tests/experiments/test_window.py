"""Texts for the window model: where new words stand, and what follows the proctor."""

from __future__ import annotations

import numpy as np

from nextword.experiments import window


def test_new_words_stand_at_the_first_place_only_while_the_networks_learn():
    ids, answers = window.make_rows(np.random.default_rng(0), 500)
    kind = window.OLD + window.NEW
    number = (ids - window.FIRST) % kind
    is_new = (ids < window.FIRST + 2 * kind) & (number >= window.OLD)
    assert is_new[:, 0].any()
    assert not is_new[:, 1:].any()
    moved, told = window.make_rows(np.random.default_rng(0), 500, place=3)
    assert ((moved[:, 3] - window.FIRST) // kind == told - window.ANSWERS[0]).all()
    assert set(answers) == set(window.ANSWERS)


def test_sentences_of_the_proctor_follow_their_scene_mostly():
    rows = window.sentences(np.random.default_rng(0), 400)
    proctor = window.encode("proctor")[1]
    exams = window.encode("exams")[1]
    share = np.mean(rows[(rows == proctor).any(axis=1), -1] == exams)
    assert 0.82 < share < 0.97
