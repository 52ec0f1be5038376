"""Pictures of a comparison: a line for each seed, a name for each model."""

from __future__ import annotations

from nextword.comparison import pictures


def test_learning_curves_have_a_line_for_each_seed_and_a_name_for_each_model(found):
    drawn = pictures.learning(found, by_tokens=False)
    assert drawn.count(">lstm</text>") == 1
    assert drawn.count('class="line"') == 3 * 3 + 1  # three models of three seeds, and the flat one
    assert ">ngram</text>" not in pictures.learning(found, by_tokens=True)
