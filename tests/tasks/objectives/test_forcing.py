"""What a model reads while it learns: schedules, own words, and reading twice."""

import numpy as np
import pytest
import torch
from tiny_networks import TinyRNN

from nextword.core.contracts import START
from nextword.models.training import parse_forcing
from nextword.tasks.objectives.reading import OwnTokens, truth_share


def test_teacher_reads_the_text_and_free_running_never_does():
    assert truth_share(parse_forcing("teacher"), 0.7) == 1.0
    assert truth_share(parse_forcing("free"), 0.0) == 0.0


@pytest.mark.parametrize("schedule", ["linear", "exponential", "inverse-sigmoid"])
def test_share_of_true_words_falls_from_nearly_one(schedule):
    forcing = parse_forcing(f"scheduled({schedule})")
    shares = [truth_share(forcing, i / 50) for i in range(51)]
    assert shares[0] > 0.95
    assert shares == sorted(shares, reverse=True)
    assert 0.2 < shares[-1] < 0.6


def test_schedules_are_those_of_the_paper():
    assert truth_share(parse_forcing("scheduled(linear, 0.2)"), 0.5) == pytest.approx(0.6)
    assert truth_share(parse_forcing("scheduled(exponential, 0.98)"), 0.1) == pytest.approx(0.98**10)
    k = 10.0
    share = truth_share(parse_forcing("scheduled(inverse-sigmoid, 10)"), 0.3)
    assert share == pytest.approx(k / (k + np.exp(30 / k)))


def test_own_word_is_what_the_model_finds_likeliest_and_never_start():
    model = TinyRNN()
    features = torch.randn(50, 6)
    greedy = OwnTokens(0.0, "greedy").choose(model, features)
    assert torch.equal(greedy, model.head.log_probs(features).argmax(-1))
    sampled = OwnTokens(0.0, "sample").choose(model, torch.zeros(5000, 6))
    assert START not in sampled
    assert len(torch.unique(sampled)) == 10


def test_document_begins_with_start_whatever_the_model_would_say():
    own = OwnTokens(0.0, "greedy")
    mixed = own.mix(torch.tensor([START, 5, 6]), torch.tensor([7, 7, 7]))
    assert mixed.tolist() == [START, 7, 7]
    assert OwnTokens(1.0, "greedy").mix(torch.tensor([3, 4]), torch.tensor([7, 7])).tolist() == [3, 4]


def test_share_of_true_words_is_kept():
    true, own = torch.zeros(20_000, dtype=torch.int64), torch.ones(20_000, dtype=torch.int64)
    assert OwnTokens(0.3, "greedy").mix(true, own).double().mean() == pytest.approx(0.7, abs=0.02)
