"""Means over seeds, the order of the models and how sure it is, in the table and on the page."""

from __future__ import annotations

import re

import numpy as np
import pytest

from nextword.comparison import pictures
from nextword.comparison.ranking import rank, table, verdict
from nextword.comparison.report import page
from nextword.comparison.rows import Row
from nextword.drawing import svg

BLOCKS = 60


def rows(model, bits, seeds=1, jitter=0.002, seed=0, **more):
    """Made-up rows of one model: blocks of 1000 bytes that cost about so many bits per byte."""
    rng = np.random.default_rng(seed)
    text = np.random.default_rng(9).normal(1, 0.1, BLOCKS)
    found = []
    for number in range(seeds):
        mean = bits + rng.normal(0, jitter) if seeds > 1 else bits
        blocks = 1000 * mean * text / text.mean() + rng.normal(0, 3, BLOCKS)
        curve = [(float(s), 1000 * s, mean + 1 / s) for s in (1, 5, 10)] if seeds > 1 else []
        found.append(
            Row(model, "", mean, 16**mean, seed=number if seeds > 1 else None, numbers=1000, size=10**6,
                train_seconds=10.0 if seeds > 1 else 1.0, tokens_per_second=1e5, blocks=blocks.tolist(),
                curve=curve, tune_bits=mean, surprise=[[("<b>", 3.0), ("世界", None)]], sentences=["so <i>"],
                tokenizer="bpe", run=model, signature=f"bits|{model}", **more)
        )  # fmt: skip
    return found


@pytest.fixture
def found():
    made = [*rows("lstm", 1.9, 3, seed=1), *rows("gru", 1.9005, 3, seed=2), *rows("ngram", 2.0),
            *rows("mixture", 1.95, 3, seed=3, note="0.30 ngram + 0.70 lstm", parts=["a", "b"])]  # fmt: skip
    made.append(Row("ngram-stupid", "", 1.0, is_probability=False, note="a score"))
    return rank(made, [1000.0] * BLOCKS)


def test_rows_of_one_model_are_ranked_as_one(found):
    by_name = {each.name: each for each in found}
    assert len(by_name["lstm"].rows) == 3
    assert by_name["lstm"].bits == pytest.approx(np.mean([row.bits_per_byte for row in by_name["lstm"].rows]))
    assert by_name["lstm"].spread > 0
    assert by_name["ngram"].spread is None
    assert found[-1].name == "ngram-stupid"


def test_the_test_tells_what_is_as_good_as_the_best(found):
    by_name = {each.name: each for each in found}
    assert found[0].is_best
    assert found[0].name in ("lstm", "gru")
    assert found[1].as_good
    assert by_name["ngram"].p < 0.05
    assert by_name["ngram"].verdict.startswith("worse, p")
    assert by_name["ngram"].test.behind == pytest.approx(0.1, abs=0.01)
    assert by_name["ngram-stupid"].p is None
    assert "not differ significantly from it" in verdict(found)


def test_one_model_needs_no_test():
    (only,) = rank(rows("lstm", 1.9, 2), [1000.0] * BLOCKS)
    assert only.p is None
    assert verdict([only]).startswith("lstm predicts the new text best")


def test_a_difference_that_nobody_sees_is_none():
    best, other = rows("a", 1.9)[0], rows("b", 1.9)[0]
    other.blocks[:] = [bits + 0.2 for bits in best.blocks]
    found = rank([best, other], [1000.0] * BLOCKS)
    assert found[1].p < 0.001
    assert found[1].as_good


def test_the_table_shows_spread_and_verdict(found):
    shown = str(table(found))
    assert " ± 0.00" in shown
    assert "the best" in shown
    assert "trained/s" in shown


def test_the_page_has_every_picture_and_escapes_every_word(found):
    text = page(found, None, "trained on x").html()
    for part in ("How they learn", "What it costs", "The same sentences", "What the models write", "Welch"):
        assert part in text
    assert "&lt;b&gt;" in text
    assert "世界" in text
    assert "<i>" not in text
    assert not re.search(r"(src|href)\s*=|url\(|@import|<script", text)
    assert "0.30 ngram + 0.70 lstm." in text


def test_learning_curves_have_a_line_for_each_seed_and_a_name_for_each_model(found):
    drawn = pictures.learning(found, by_tokens=False)
    assert drawn.count(">lstm</text>") == 1
    assert drawn.count('class="line"') == 3 * 3 + 1  # three models of three seeds, and the flat one
    assert ">ngram</text>" not in pictures.learning(found, by_tokens=True)


def test_the_front_holds_those_that_no_other_beats_in_both():
    assert svg.front([(1, 5), (2, 4), (3, 4.5), (4, 1), (4, 0.5)]) == [(1, 5), (2, 4), (4, 0.5)]
    assert svg.front([(1, 1), (1, 2), (2, 1)]) == [(1, 1)]


def test_names_beside_points_do_not_cover_each_other():
    series = [svg.Series(f"model {i}", ((1.0 + i * 1e-4, 2.0 + i * 1e-4),)) for i in range(4)]
    drawn = svg.scatter(series, "t", svg.Axis("x"), svg.Axis("y"))
    places = re.findall(r'<text class="name" x="([\d.]+)" y="([\d.]+)"', drawn)
    assert len(set(places)) == 4
