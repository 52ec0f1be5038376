"""Pictures of a comparison: a line for each seed, a name for each model."""

from __future__ import annotations

from nextword.comparison import pictures


def test_learning_curves_have_a_line_for_each_seed_and_a_name_for_each_model(found):
    drawn = pictures.learning(found, by_tokens=False)
    lstm = next(each for each in found if each.name == "lstm")
    assert (
        drawn.count(f">lstm {lstm.value:.3f}</text>") == 1
    )  # the number of the table, at the end of the line
    assert "bits per byte of the text for choices" in drawn
    assert drawn.count('class="line"') == 3 * 3 + 1  # three models of three seeds, and the flat one
    assert ">ngram " in drawn
    assert ">ngram " not in pictures.learning(found, by_tokens=True)
