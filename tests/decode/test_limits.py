"""Limits and stop rules: each does what its name says, alone and together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from nextword.core.contracts import END, START, UNKNOWN
from nextword.core.errors import ConfigError
from nextword.decode.limits import (
    AtEnd,
    Banned,
    Bias,
    FirstOf,
    Forced,
    Limits,
    MaxTokens,
    MinTokens,
    Never,
    NoRepeat,
    Penalty,
    Repetition,
    StopStrings,
    Written,
    limits_of,
    stops_of,
)
from nextword.decode.settings import DecodeSettings


def flat(rows=1, size=8):
    return np.full((rows, size), -np.log(size))


@given(ids=st.lists(st.integers(0, 7), max_size=20), size=st.integers(1, 4), cut=st.integers(0, 20))
def test_no_repeat_forbids_exactly_the_words_that_would_repeat(ids, size, cut):
    logp = flat()
    NoRepeat(size)(logp, [Written(tuple(ids[:cut]), ids[cut:])])
    grams = {tuple(ids[i : i + size]) for i in range(len(ids) - size + 1)}
    last = tuple(ids[len(ids) - size + 1 :]) if size > 1 else ()
    for word in range(8):
        assert np.isneginf(logp[0, word]) == (len(ids) >= size and (*last, word) in grams)


def test_min_tokens_forbids_end_in_short_rows_only():
    logp = flat(2)
    MinTokens(2)(logp, [Written((), [3]), Written((), [3, 4])])
    assert np.isneginf(logp[0, END])
    assert np.isfinite(logp[1, END])


def test_banned_sequences_are_not_completed():
    logp = flat(3)
    Banned([[5], [3, 4], [3, 4, 6], []])(logp, [Written((3,), []), Written((), [3, 4]), Written()])
    assert np.isneginf(logp[:, 5]).all()
    assert np.isneginf(logp[0, 4])
    assert np.isneginf(logp[1, 6])
    assert np.isneginf(logp[2]).sum() == 1


def test_a_row_without_any_word_left_may_end():
    logp = flat()
    Limits((Never(tuple(range(8))),))(logp, [Written()])
    assert logp[0, END] == 0.0
    assert np.isneginf(np.delete(logp[0], END)).all()


def test_penalty_counts_prompt_and_text():
    logp = flat()
    Penalty(2.0)(logp, [Written((3,), [4])])
    assert logp[0, 3] == logp[0, 4] < logp[0, 5]


def kinds(logp):
    """The same numbers as an array and as a tensor."""
    torch = pytest.importorskip("torch")
    return logp, torch.from_numpy(logp.astype(np.float32))


def test_repetition_penalty_lowers_seen_words_only_and_sums_to_one():
    for logp in kinds(flat(2)):
        Penalty(2.0)(logp, [Written((3,), [3]), Written()])
        assert logp[0, 3] < logp[0, 0] == logp[0, 1]
        assert np.allclose(np.exp(np.asarray(logp)).sum(axis=1), 1)
        assert np.allclose(np.asarray(logp)[1], flat()[0])


def test_presence_and_frequency_are_taken_from_generated_tokens_only():
    for logp in kinds(flat()):
        Repetition(0.5, 0.25)(logp, [Written((7,), [3, 4, 4])])
        assert float(logp[0, 5] - logp[0, 3]) == pytest.approx(0.75, abs=1e-5)
        assert float(logp[0, 5] - logp[0, 4]) == pytest.approx(1.0, abs=1e-5)
        assert logp[0, 7] == logp[0, 5]
        assert np.exp(np.asarray(logp)).sum() == pytest.approx(1, abs=1e-5)


def test_bias_is_added_and_an_id_outside_the_vocabulary_is_refused():
    for logp in kinds(flat(2)):
        Bias((3, 5), (2.0, -1000.0))(logp, [Written(), Written()])
        assert np.allclose(np.asarray(logp[:, 3] - logp[:, 4]), 2.0, atol=1e-5)
        assert (np.exp(np.asarray(logp[:, 5])) == 0).all()
    with pytest.raises(ConfigError, match="ids end at 7"):
        Bias((8,), (1.0,))(flat(), [Written()])


@pytest.mark.parametrize(
    "limit",
    [
        Never((0, 1)), MinTokens(3), NoRepeat(2), Banned([[5], [3, 4]]), Penalty(1.3), Forced((6, 4, 5)),
        Repetition(1.0, 0.5), Bias((3,), (1.0,)), Limits((Never(tuple(range(8))),)),
    ],
)  # fmt: skip
def test_limits_change_tensors_as_they_change_arrays(limit):
    logp = np.log(np.random.default_rng(0).dirichlet(np.ones(8), size=3))
    rows = [Written((3, 4), [3]), Written((), [5, 3, 4, 3]), Written((7,), [])]
    array, tensor = kinds(logp)
    limit(array, rows)
    limit(tensor, rows)
    assert np.allclose(np.asarray(tensor), array, atol=1e-5)


def test_limits_that_are_an_addition_do_the_same_as_one():
    limits = limits_of(DecodeSettings(logit_bias={4: 2.0, END: -100.0}), normalizes=False)
    logp = flat(2)
    added_V = limits.added(8)
    expected = logp + added_V
    limits(logp, [Written(), Written()])
    np.testing.assert_array_equal(logp, expected)
    assert np.isneginf(added_V[[START, UNKNOWN]]).all()
    with pytest.raises(ConfigError, match="logit_bias"):
        limits.added(3)


@pytest.mark.parametrize(
    "sets", [{"no_repeat": 2}, {"presence_penalty": 1.0}, {"repetition_penalty": 1.2, "logit_bias": {4: 1.0}}]
)
def test_limits_that_look_at_the_row_are_no_addition(sets):
    assert limits_of(DecodeSettings(**sets), normalizes=False).added(8) is None


def test_stop_rules_give_their_reason_first_come():
    rule = FirstOf((AtEnd(), MaxTokens(2)))
    assert rule(Written((END,), [])) == ""
    assert rule(Written((), [3])) == ""
    assert rule(Written((), [3, END])) == "end"
    assert rule(Written((), [3, 4])) == "length"


def test_stop_strings_look_at_the_text_only_and_across_tokens():
    letters = StopStrings(("ab",), lambda ids: "".join(chr(96 + i) for i in ids))
    assert letters(Written((1, 2), [3])) == ""
    assert letters(Written((), [3, 1, 2])) == "stop"


def _bytes_as_text(ids):
    return bytes(ids).decode("utf-8", "replace")


LETTERS = "ab:é😀 "


@given(
    st.text(LETTERS, max_size=12),
    st.lists(st.text(LETTERS, min_size=1, max_size=3), min_size=1, max_size=3),
)
def test_stop_is_seen_at_the_byte_that_completes_it(text, strings):
    rule, ids = StopStrings(tuple(strings), _bytes_as_text), []
    for byte in text.encode():
        ids.append(byte)
        is_there = any(string in _bytes_as_text(ids) for string in strings)
        assert bool(rule(Written((), ids))) == is_there
        if is_there:
            break


def test_settings_make_the_limits_they_name():
    limits = limits_of(DecodeSettings(min_tokens=1, no_repeat=2, repetition_penalty=1.5))
    assert [type(part) for part in limits.parts] == [Never, Penalty, MinTokens, NoRepeat]
    assert limits.parts[0].ids == (START, UNKNOWN)
    assert limits_of(DecodeSettings(unknown=True)).parts[0].ids == (START,)


def test_texts_without_a_tokenizer_are_refused():
    with pytest.raises(ConfigError, match=r"decode\.stop"):
        stops_of(DecodeSettings(stop=("x",)))
    with pytest.raises(ConfigError, match=r"decode\.ban"):
        limits_of(DecodeSettings(ban=("x",)))


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_tokens": 0},
        {"temperature": -1},
        {"temperature": float("nan")},
        {"top_p": 0},
        {"top_p": 1.1},
        {"min_p": -0.1},
        {"typical": 0},
        {"top_k": -1},
        {"seed": -1},
        {"seed": 2**63},
        {"beam_size": 0},
        {"n_best": 5},
        {"min_tokens": 200},
        {"stop": ("",)},
        {"repetition_penalty": 0.5},
        {"presence_penalty": 1e9},
        {"logit_bias": {-1: 1.0}},
        {"logit_bias": {3: float("nan")}},
        {"samples": 0},
        {"no_such_setting": 1},
    ],
)
def test_values_outside_their_limits_are_refused(wrong):
    with pytest.raises(ValidationError):
        DecodeSettings(**wrong)


def test_a_seed_is_drawn_once_and_kept():
    drawn = DecodeSettings().seeded()
    assert drawn.seed is not None
    assert drawn.seeded() is drawn
