"""Error rates agree with the textbook's distance, and take the nearest of several references."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nextword.evaluation.lines.error_rate import edit_distances, paired_distances
from nextword.evaluation.pairs.errors import PHONES, character_error_rate, exact_match, word_error_rate

ids = st.lists(st.integers(0, 3), max_size=8)


@given(st.lists(st.tuples(ids, ids), min_size=1, max_size=6))
def test_distances_of_pairs_are_those_of_each_pair(pairs):
    right, written = [one for one, _ in pairs], [two for _, two in pairs]
    assert paired_distances(right, written).tolist() == [int(edit_distances(a, [b])[0]) for a, b in pairs]


def test_word_errors_by_hand():
    # one substitution of four words, nothing written for two: 3 errors of 6 words
    found = word_error_rate(["the dog sat down", ""], [["the cat sat down"], ["good bye"]])
    assert found.value == 3 / 6
    assert found.each().tolist() == [0.25, 1.0]
    assert not found.higher


def test_more_words_than_the_reference_can_cost_more_than_one():
    assert word_error_rate(["a b c"], [["x"]]).value == 3.0


def test_character_errors_count_one_space_between_words():
    assert character_error_rate(["a  bc "], [["a bd"]]).value == 1 / 4


def test_the_nearest_of_several_references_counts():
    found = word_error_rate(["a b", "c"], [["x y", "a b c"], ["c", "d e f g"]])
    assert found.counts_NC.tolist() == [[1, 3], [0, 1]]


def test_exact_match_takes_any_reference_and_ignores_spaces():
    found = exact_match(["a  b ", "c"], [["x", "a b"], ["C"]])
    assert found.value == 0.5
    assert found.each().tolist() == [1.0, 0.0]


def test_an_empty_reference_divides_by_nothing():
    assert word_error_rate(["a"], [[""]]).value == 1.0
    assert word_error_rate([""], [[""]]).value == 0.0


def test_letters_to_sounds_count_words_and_phones():
    found = PHONES.find(["K AE T", "D AO"], [["K AE T", "K AH T"], ["D AO G"]]).counted
    assert found["word_error"].value == 0.5
    assert found["phone_error"].value == 1 / 6
