"""Experiments about Transformers: what they learn from."""

from __future__ import annotations

import numpy as np

from nextword.experiments import many_changes, phrases
from nextword.models import presets


def test_a_row_is_a_sentence_and_its_translation():
    rows_BT = phrases.make_rows(np.random.default_rng(0), 50)
    assert rows_BT.shape == (50, phrases.LENGTH)
    assert (rows_BT[:, phrases.SIDE] == phrases.MARK).all()
    words = [phrases.WORDS[index - phrases.MARK - 1] for index in rows_BT[0] if index != phrases.MARK]
    assert words[5] == words[1][::-1]  # the noun comes first there
    assert rows_BT.max() < phrases.VOCABULARY


def test_the_changes_are_presets_of_the_ablations():
    assert {f"ablations/{name}" for name in many_changes.CHANGES} <= set(presets.names())
