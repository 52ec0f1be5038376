"""Which models of a comparison are mixed."""

from __future__ import annotations

from nextword.comparison import mixed
from nextword.comparison.entries import entries
from nextword.comparison.rows import Row


def test_the_best_of_each_kind_is_mixed_and_chosen_without_the_measured_text():
    able = entries(["ngram", "ngram-katz", "lstm", "gru", "mixture"], (), 2, {}, None)
    bits = {"ngram": 2.0, "ngram-katz": 2.1, "lstm": 1.9, "lstm-seed1": 1.8, "gru": 1.85, "gru-seed1": 1.95}
    made = [
        (entry, Row(entry.name, "", 5 - bits[entry.label], tune_bits=bits[entry.label], run=entry.label))
        for entry in able
        if not entry.is_mixture
    ]
    first, second = (entry for entry in able if entry.is_mixture)
    assert [row.run for row in mixed.parts_of(first, made)] == ["ngram", "gru"]
    assert [row.run for row in mixed.parts_of(second, made)] == ["ngram", "lstm-seed1"]
    networks = [pair for pair in made if pair[0].is_neural]
    assert [row.run for row in mixed.parts_of(first, networks)] == ["gru", "lstm"]
