"""Word errors agree with the textbook."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nextword.evaluation.lines.error_rate import edit_distances, word_errors


def slow_distance(a, b):
    table = {(i, 0): i for i in range(len(a) + 1)} | {(0, j): j for j in range(len(b) + 1)}
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            same = table[i - 1, j - 1] + (a[i - 1] != b[j - 1])
            table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, same)
    return table[len(a), len(b)]


words = st.lists(st.integers(0, 3), max_size=8)


@given(reference=words, hypotheses=st.lists(words, min_size=1, max_size=5))
def test_edit_distance_agrees_with_the_textbook(reference, hypotheses):
    expected = [slow_distance(reference, other) for other in hypotheses]
    assert edit_distances(reference, hypotheses).tolist() == expected


def test_word_errors_count_words():
    texts = ["the cat sat", "cat sat", "a the cat sat on", ""]
    assert word_errors("the cat sat", texts).tolist() == [0, 1, 2, 3]
