"""The summary of a training has the last numbers of learning and the best of measuring, not every row."""

from __future__ import annotations

from nextword.runs.facts import summarize


def test_last_learning_and_best_measurement_are_told():
    rows = [
        {"step": 10, "loss": 5.0, "rate": 0.1, "tokens_per_second": 100.0},
        {"step": 10, "valid_nll": 4.0, "valid_perplexity": 54.6, "valid_bits_per_byte": 2.0},
        {"step": 20, "loss": 3.0, "rate": 0.1, "tokens_per_second": 120.0},
        {"step": 20, "valid_nll": 4.5, "valid_perplexity": 90.0, "valid_bits_per_byte": None},
        {"step": 30, "valid_nll": None, "valid_perplexity": None},
    ]
    assert summarize(rows) == {
        "steps": 30,
        "loss": 3.0,
        "tokens_per_second": 120.0,
        "valid_nll": 4.0,
        "valid_perplexity": 54.6,
        "valid_bits_per_byte": 2.0,
        "best_step": 10,
    }


def test_numbers_of_count_models_are_told_as_they_are():
    assert summarize([{"order": 5}, {"valid_perplexity": 3.0}]) == {"order": 5, "valid_perplexity": 3.0}


def test_nothing_measured_is_nothing_told():
    assert summarize([]) == {}
