"""ROUGE by hand, and the longest common subsequence against the textbook's table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nextword.evaluation.pairs.rouge import SUMMARY, common_subsequence, words_of

words = st.lists(st.sampled_from("abc"), max_size=9)


def slow_subsequence(a, b):
    table = {}
    for i in range(len(a) + 1):
        for j in range(len(b) + 1):
            if not i or not j:
                table[i, j] = 0
            elif a[i - 1] == b[j - 1]:
                table[i, j] = table[i - 1, j - 1] + 1
            else:
                table[i, j] = max(table[i - 1, j], table[i, j - 1])
    return table[len(a), len(b)]


@given(words, words)
def test_the_common_subsequence_is_that_of_the_textbook(a, b):
    assert common_subsequence(a, b) == slow_subsequence(a, b)


def values(hypotheses, references):
    return {name: each.value for name, each in SUMMARY.find(hypotheses, references).counted.items()}


def test_rouge_by_hand():
    # the sentences of Lin 2004, section 3
    found = values(["police kill the gunman"], [["police killed the gunman"]])
    assert found == {"rouge_1": 0.75, "rouge_2": pytest.approx(1 / 3), "rouge_l": 0.75}
    assert values(["the gunman kill police"], [["police killed the gunman"]])["rouge_l"] == 0.5


def test_the_best_of_several_references_counts_and_texts_are_averaged():
    found = values(["a b", "c"], [["x y", "a b"], ["d"]])
    assert found["rouge_1"] == 0.5
    assert found["rouge_l"] == 0.5


def test_case_and_punctuation_do_not_count_and_marks_are_letters():
    assert words_of("The cat's mat, 2-3!") == ["the", "cat", "s", "mat", "2", "3"]
    assert words_of("राम ने रावण को मारा।") == ["राम", "ने", "रावण", "को", "मारा"]


def test_an_empty_summary_has_nothing():
    assert values([""], [["a b"]]) == {"rouge_1": 0.0, "rouge_2": 0.0, "rouge_l": 0.0}


@pytest.mark.agree
@pytest.mark.needs("rouge_score")
def test_rouge_agrees_with_rouge_score():
    from rouge_score.rouge_scorer import RougeScorer

    right = "The meeting about the gas contract is moved to Friday, 3 pm"
    text = "meeting on the contract moved: Friday is fine"
    other = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=False).score(right, text)
    expected = [each.fmeasure for each in other.values()]
    assert list(values([text], [[right]]).values()) == pytest.approx(expected)
