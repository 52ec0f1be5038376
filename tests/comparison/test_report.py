"""The page of a comparison: every picture is there, and every word is escaped."""

from __future__ import annotations

import re
from dataclasses import replace

from comparisons import BLOCKS

from nextword.comparison.ranking import rank
from nextword.comparison.report import page
from nextword.comparison.rows import Row


def test_the_page_has_every_picture_and_escapes_every_word(found):
    text = page(found, None, "trained on x").html()
    for part in (
        "How they learn",
        "What it costs",
        "The same sentences",
        "Generated texts",
        "Welch",
        "detectable",
    ):
        assert part in text
    assert "&lt;b&gt;" in text
    assert "世界" in text
    assert "<i>" not in text
    assert not re.search(r"(src|href)\s*=|url\(|@import|<script", text)
    assert "0.30 ngram + 0.70 lstm." in text


def test_the_texts_of_curves_and_table_are_named(found):
    text = page(found, None, "trained on x").html()
    assert text.count("Lines are of the text for choices") == 2
    assert "Bits per byte and perplexity are of the new text" in text


def test_unk_in_the_text_is_not_a_word_that_was_never_seen(found):
    def shown(**rates):
        rows = [replace(each, rows=[replace(row, **rates) for row in each.rows]) for each in found]
        return page(rows, None, "trained on x").html()

    assert "never seen in training" not in shown(unknown_rate=0.05, unseen_rate=0.0)
    assert "5.0% of the new words were never seen" in shown(unknown_rate=0.08, unseen_rate=0.05)


def test_a_dash_of_a_model_that_was_stopped_is_not_called_infinite(found):
    def shown(**given):
        rows = [Row("ngram-mle", "", 1.0, **given), *(row for each in found for row in each.rows)]
        return page(rank(rows, [1000.0] * BLOCKS), None, "trained on x").html()

    assert "A dash means infinite" not in shown(note="stopped after 1 minutes")
    assert "A dash means infinite" in shown(tokens=9, zero_tokens=2, note="probability 0 for 2 tokens")
