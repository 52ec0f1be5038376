"""Text with something hidden: how much, what is predicted, and the same again from the same seed."""

import numpy as np
import pytest

from nextword.core.contracts import END, SPECIALS, START
from nextword.data.batches.batch import NOT_COUNTED
from nextword.data.batches.corrupted import MaskedBatches, MaskSettings, PrefixBatches, SpanSettings
from nextword.data.batches.sentinels import SpanBatches, SpanPairs, counts_of, longest
from nextword.data.batches.windows import Windows

V = 50  # tokens; the blank or the first mark is token V


def text(lines: int = 60, words: int = 33) -> np.ndarray:
    random = np.random.default_rng(7)
    found: list[int] = []
    for _ in range(lines):
        found += [START, *random.integers(len(SPECIALS), V, words).tolist(), END]
    return np.array(found, np.int32)


def windows(length: int = 64, seed: int = 0, documents=()) -> Windows:
    return Windows(text(), documents, True, 4, length, seed)


def masked(seed: int = 0, **given) -> MaskedBatches:
    return MaskedBatches(windows(seed=seed), V, MaskSettings(**given))


KINDS = {
    "masked": lambda seed: masked(seed),
    "prefix": lambda seed: PrefixBatches(Windows(text(), None, True, 4, 64, seed), V),
    "span": lambda seed: SpanBatches(windows(seed=seed), V, SpanSettings()),
    "pairs": lambda seed: SpanPairs(windows(seed=seed), V, SpanSettings()),
}


def equal(one, other) -> bool:
    names = ("inputs_BT", "targets_BT")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


@pytest.mark.parametrize("kind", KINDS)
def test_batches_are_a_function_of_seed_epoch_and_index(kind):
    whole = list(KINDS[kind](3).batches(1))
    assert all(map(equal, whole[5:], KINDS[kind](3).batches(1, 5)))
    assert not any(map(equal, whole, KINDS[kind](4).batches(1)))
    assert not any(map(equal, whole, KINDS[kind](3).batches(2)))


@pytest.mark.parametrize("share", [0.15, 0.4])
def test_exactly_the_share_of_every_row_is_masked_and_never_an_end(share):
    for batch in masked(share=share).batches(0):
        real_BT = np.arange(64) < batch.lengths_B[:, None]
        counted_BT = batch.targets_BT != NOT_COUNTED
        assert not (counted_BT & ~real_BT).any()
        assert not (batch.targets_BT == END).any()
        visible_B = (real_BT & (np.where(counted_BT, batch.targets_BT, batch.inputs_BT) != END)).sum(axis=1)
        assert counted_BT.sum(axis=1).tolist() == [max(1, round(share * n)) for n in visible_B.tolist()]


def test_of_the_masked_tokens_eight_in_ten_are_blanks_and_one_in_ten_is_another_token():
    batches = [batch for epoch in range(20) for batch in masked().batches(epoch)]
    inputs = np.concatenate([batch.inputs_BT[batch.targets_BT != NOT_COUNTED] for batch in batches])
    targets = np.concatenate([batch.targets_BT[batch.targets_BT != NOT_COUNTED] for batch in batches])
    assert len(targets) > 5000
    assert np.mean(inputs == V) == pytest.approx(0.8, abs=0.02)
    other = np.mean((inputs != V) & (inputs != targets))
    assert other == pytest.approx(0.1 * (1 - 1 / (V - len(SPECIALS))), abs=0.015)
    assert np.mean(inputs == targets) == pytest.approx(0.1 + 0.1 / (V - len(SPECIALS)), abs=0.015)
    assert inputs.min() >= len(SPECIALS)


def test_what_is_not_masked_is_as_it_was():
    stream = masked().windows.stream
    every = stream.at(np.arange(len(stream)))
    for batch in masked(blank=1.0, other=0.0).batches(0):
        whole_BT = np.where(batch.targets_BT == NOT_COUNTED, batch.inputs_BT, batch.targets_BT)
        for row, length in zip(whole_BT, batch.lengths_B.tolist(), strict=True):
            assert _is_in(row[:length], every)


def _is_in(row: np.ndarray, whole: np.ndarray) -> bool:
    around = np.concatenate([whole[:-1], whole])  # the text is shifted: it goes on at its beginning
    return any(np.array_equal(around[at : at + len(row)], row) for at in range(len(whole)))


def test_spans_put_back_after_their_marks_give_the_text():
    made = SpanBatches(windows(), V, SpanSettings())
    ids_T = made.windows.stream.at(np.arange(64))
    for seed in range(20):
        [(left, lost)] = made.split(np.arange(64)[None], np.array([64]), np.random.default_rng(seed))
        assert lost[-1] == END
        marks = [at for at, index in enumerate(lost) if index >= V]
        spans = {
            lost[at]: lost[at + 1 : end] for at, end in zip(marks, [*marks[1:], len(lost) - 1], strict=True)
        }
        assert list(spans) == [V + n for n in range(len(spans))]
        assert [index for index in left if index >= V] == list(spans)
        whole = [index for each in left for index in spans.get(each, [each])]
        assert whole == ids_T.tolist()
        assert (sum(map(len, spans.values())), len(spans)) == counts_of(64, SpanSettings())


def test_fifteen_in_a_hundred_tokens_are_lost_in_spans_of_three():
    assert counts_of(512, SpanSettings(sentinels=100)) == (77, 26)
    assert counts_of(512, SpanSettings(sentinels=10)) == (77, 10)
    assert counts_of(2, SpanSettings()) == (1, 1)


@pytest.mark.parametrize("positions", [2, 3, 10, 64, 257])
def test_text_and_spans_together_fit_into_the_positions(positions):
    length = longest(positions, SpanSettings())
    made = SpanBatches(Windows(text(), (), True, 4, length, 0), V, SpanSettings())
    assert max(batch.inputs_BT.shape[1] for batch in made.batches(0)) <= max(positions, 3)


def test_only_spans_are_predicted_behind_the_prefix():
    for batch in KINDS["span"](0).batches(0):
        for targets_T, ahead, length in zip(
            batch.targets_BT, batch.ahead_B.tolist(), batch.lengths_B.tolist(), strict=True
        ):
            counted = np.flatnonzero(targets_T != NOT_COUNTED)
            assert counted.tolist() == list(range(ahead - 1, length))
            assert targets_T[ahead - 1] == V
            assert targets_T[length - 1] == END


def test_pairs_have_the_same_spans_as_targets_after_start():
    for pairs, rows in zip(KINDS["pairs"](2).batches(0), KINDS["span"](2).batches(0), strict=True):
        assert (pairs.inputs_BT[:, 0] == START).all()
        for row in range(pairs.rows):
            counted = rows.targets_BT[row] != NOT_COUNTED
            targets_T = pairs.targets_BT[row][: pairs.lengths_B[row]]
            assert targets_T.tolist() == rows.targets_BT[row][counted].tolist()


def test_what_follows_a_prefix_is_predicted_and_nothing_else():
    jumps = 0  # the text is shifted: at one place its end is followed by its beginning
    for batch in KINDS["prefix"](0).batches(0):
        for row in range(batch.rows):
            ahead, length = int(batch.ahead_B[row]), int(batch.lengths_B[row])
            counted = np.flatnonzero(batch.targets_BT[row] != NOT_COUNTED)
            assert set(counted) <= set(range(ahead - 1, length))
            inside = counted[counted < length - 1]
            jumps += int((batch.targets_BT[row][inside] != batch.inputs_BT[row][inside + 1]).sum())
    assert jumps <= 1


def test_rank_without_rows_learns_nothing():
    blank = next(iter(KINDS["masked"](0).batches(0))).blank()
    assert (blank.rows, blank.tokens) == (1, 0)
