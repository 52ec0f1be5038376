"""Estimation against lmplz: the same probability for every word, to 1e-5 in log10."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from packed_texts import zipf_text

from nextword.core.contracts import END, START
from nextword.ngram import estimation
from nextword.ngram.settings import NgramSettings

pytestmark = [pytest.mark.agree, pytest.mark.needs("lmplz", "kenlm")]
WORDS = 400


@pytest.fixture(scope="module")
def text() -> np.ndarray:
    """Ids in order of first occurrence, as lmplz numbers words; its quirk depends on it."""
    ids = zipf_text(4000, WORDS, seed=11)
    _, first = np.unique(ids[ids > END], return_index=True)
    order = np.unique(ids[ids > END])[np.argsort(first)]
    renumber = np.zeros(WORDS, dtype=np.int32)
    renumber[[START, END]] = START, END
    renumber[order] = 3 + np.arange(len(order))
    return renumber[ids]


def lines(ids: np.ndarray) -> list[str]:
    """The text as lmplz reads it: word 17 is "w17"."""
    pieces = np.split(ids, np.flatnonzero(ids == START)[1:])
    return [" ".join(f"w{i}" for i in piece if i not in (START, END)) for piece in pieces]


def their_scores(
    ids: np.ndarray, held_out: np.ndarray, folder: Path, order: int, *options: str
) -> np.ndarray:
    import kenlm

    command = ["lmplz", "-o", str(order), "-S", "20%", "-T", str(folder), *options]
    arpa = subprocess.run(
        command, input="\n".join(lines(ids)) + "\n", capture_output=True, text=True, check=True
    ).stdout
    (folder / "model.arpa").write_text(arpa)
    model = kenlm.Model(str(folder / "model.arpa"))
    return np.array([score for line in lines(held_out) for score, _, _ in model.full_scores(line)])


@pytest.mark.parametrize("order", [2, 3, 5])
def test_every_word_has_the_probability_that_lmplz_gives(order, text, tmp_path):
    held_out = text[: np.flatnonzero(text == START)[400]].copy()
    held_out[5::23][held_out[5::23] > END] = 0  # "w0" is unknown to both
    model = estimation.build(text, int(text.max()) + 1, NgramSettings(order=order, kenlm_compat=True))
    ours = model.score_packed(held_out)[held_out != START] / np.log(10)
    np.testing.assert_allclose(ours, their_scores(text, held_out, tmp_path, order), atol=1e-5)


def test_pruning_by_counts_is_that_of_lmplz(text, tmp_path):
    settings = NgramSettings(order=3, kenlm_compat=True, prune=[0, 0, 1])
    model = estimation.build(text, int(text.max()) + 1, settings)
    ours = model.score_packed(text)[text != START] / np.log(10)
    theirs = their_scores(text, text, tmp_path, 3, "--prune", "0", "0", "1")
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
