"""The three kinds of Transformer: what each reads for each use, and how it is judged."""

from __future__ import annotations

import numpy as np
import pytest

from nextword.core.contracts import START
from nextword.data.batches.batch import NOT_COUNTED
from nextword.evaluation import significance
from nextword.experiments import uses
from nextword.experiments.finding import Verdict
from nextword.experiments.small import build, settings_of
from nextword.experiments.three_kinds import (
    DISAGREE,
    LEARNED,
    SIZES,
    SMALL,
    by_bound,
    by_learning,
    by_margin,
    weights_of,
)
from nextword.experiments.uses import (
    BLANK,
    BOTH,
    CONTINUE,
    DECODER,
    ENCODER,
    FILL,
    KINDS,
    LEAST,
    LENGTH,
    SIDE,
    TURN,
    USES,
)


@pytest.fixture(scope="module")
def some_rows():
    return uses.make_rows(np.random.default_rng(0), 400)


def network_of(kind):
    return build(settings_of("transformer", 0, SMALL | SIZES[kind]), uses.VOCABULARY)


def test_what_follows_the_mark_is_the_letters_backwards_all_small_or_all_capital(some_rows):
    apart = some_rows[:, SIDE + 1 :] - some_rows[:, SIDE - 1 :: -1]
    assert (apart == apart[:, :1]).all()
    assert set(apart[:, 0].tolist()) == {0, uses.LETTERS}
    assert 150 < (apart[:, 0] == 0).sum() < 250
    assert some_rows.max() < BLANK


def test_the_least_is_the_entropy_of_the_rows():
    """All rows are equally likely, so that an entropy is the logarithm of how many there are."""
    rows_BT = uses.make_rows(np.random.default_rng(1), 200_000)
    kinds = len(np.unique(rows_BT, axis=0))
    assert LEAST[CONTINUE].nats == pytest.approx(np.log(kinds / uses.LETTERS**uses.GIVEN))
    assert LEAST[TURN].nats == pytest.approx(np.log(kinds / uses.LETTERS**SIDE))
    assert len(np.unique(rows_BT[:, 1:], axis=0)) == kinds  # what follows decides a letter that is hidden


def test_the_three_have_as_many_weights():
    sizes = [weights_of(network_of(kind)) for kind in KINDS]
    assert max(sizes) < 1.005 * min(sizes)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_reads_what_it_must_predict(kind, use, some_rows):
    """Another letter at the last place changes no cost but its own."""
    ids_BT = some_rows[:6]
    batch = uses.make_batch(np.random.default_rng(3), kind, use, 6)
    several = SIDE if use == FILL else LEAST[use].letters
    letters = 1 if kind == ENCODER and use != TURN else several
    assert (batch.targets_BT != NOT_COUNTED).sum() == 6 * letters
    if use == FILL:
        place_B = np.arange(6) % SIDE
        made = uses.fill_batch(kind, ids_BT, place_B)
        read = made.source_BS if kind == BOTH else made.inputs_BT[:, :LENGTH]
        assert (read == BLANK).sum(axis=1).tolist() == [1] * 6
        assert (read[np.arange(6), place_B] == BLANK).all()
        asked = ids_BT[np.arange(6), place_B] if kind == ENCODER else ids_BT[:, :SIDE].flatten()
        assert made.targets_BT[made.targets_BT != NOT_COUNTED].tolist() == asked.tolist()
    network = network_of(kind)
    before_BT = uses.costs(network, kind, use, ids_BT)
    assert before_BT.shape == (6, LEAST[use].letters)
    assert np.isfinite(before_BT).all()
    if use != FILL:
        changed_BT = ids_BT.copy()
        changed_BT[:, -1] = uses.MARK
        after_BT = uses.costs(network, kind, use, changed_BT)
        np.testing.assert_allclose(after_BT[:, :-1], before_BT[:, :-1], atol=1e-5)
        assert not np.allclose(after_BT[:, -1], before_BT[:, -1])


def test_what_a_decoder_reads_comes_one_place_before_what_it_predicts():
    for use, first in ((CONTINUE, uses.GIVEN), (TURN, SIDE + 1)):
        batch = uses.make_batch(np.random.default_rng(3), DECODER, use, 6)
        counted = np.flatnonzero((batch.targets_BT != NOT_COUNTED).all(axis=0))
        assert counted.tolist() == list(range(first - 1, LENGTH - 1))
        assert (batch.inputs_BT[:, 1:][:, counted[:-1]] == batch.targets_BT[:, counted[:-1]]).all()
        paired = uses.make_batch(np.random.default_rng(3), BOTH, use, 6)
        assert (paired.inputs_BT[:, 0] == START).all()
        assert (paired.inputs_BT[:, 1:] == paired.targets_BT[:, :-1]).all()


def test_an_encoder_that_continues_sees_nothing_past_its_blank(some_rows):
    batch = uses.continue_batch(ENCODER, some_rows[:3], np.array([2, 5, 8]))
    assert batch.lengths_B.tolist() == [3, 6, 9]
    assert [(row == BLANK).sum() for row in batch.inputs_BT] == [7, 4, 1]


def test_verdicts_follow_from_the_thresholds():
    assert by_learning([0.01, LEARNED - 0.01]) == Verdict.HELD
    assert by_learning([0.01, LEARNED + 0.01]) == Verdict.OPEN
    assert by_bound(DISAGREE + 0.01, DISAGREE) == Verdict.HELD
    assert by_bound(DISAGREE - 0.1, DISAGREE) == Verdict.FAILED
    assert by_bound(DISAGREE + 0.5, DISAGREE) == Verdict.OPEN
    assert by_margin(significance.Test(0.3, 0.1, 0.5, 0.01, 0.1), 0.02) == Verdict.HELD
    assert by_margin(significance.Test(-0.3, -0.5, -0.1, 0.01, 0.1), 0.02) == Verdict.FAILED
    assert by_margin(significance.Test(0.001, -0.01, 0.01, 0.8, 0.1), 1.0) == Verdict.FAILED
    assert by_margin(significance.Test(0.1, -0.2, 0.4, 0.4, 0.1), 0.4) == Verdict.OPEN
