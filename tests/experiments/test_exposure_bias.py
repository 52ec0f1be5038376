"""Generated sequences, packed like those of a text."""

from __future__ import annotations

import numpy as np

from nextword.core.contracts import END, START
from nextword.experiments import exposure_bias


def test_starts_are_put_before_every_sequence_again():
    ids = np.array([5, 6, END, 7, END])
    assert exposure_bias._packed(ids).tolist() == [START, 5, 6, END, START, 7, END]
