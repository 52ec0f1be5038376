"""Ways to read a batch: at once, token by token, or twice."""

import torch
from tiny_networks import TinyBigram, TinyRNN

from nextword.models.training import parse_bptt, parse_forcing
from nextword.tasks.objectives.reading import AtOnce, OneByOne, OwnTokens, TwoPasses, make_reader


def test_free_running_reads_its_own_words_one_after_the_other():
    model, own = TinyRNN(), OwnTokens(0.0, "greedy")
    ids = torch.tensor([[5, 5, 5, 5]])
    features, _ = OneByOne(own=own).read(model, ids, None, model.start(1))
    state, word = model.start(1), torch.tensor([5])
    for at in range(4):
        feature, state = model.read(word[:, None], state)
        assert torch.allclose(feature[:, 0], features[:, at])
        word = own.choose(model, feature[:, 0])


def test_second_pass_reads_what_the_first_one_said():
    model, own = TinyBigram(), OwnTokens(0.0, "greedy")
    ids = torch.tensor([[5, 8, 3, 9]])
    features, _ = TwoPasses(own).read(model, ids, None, ())
    said = own.choose(model, model.embedding(ids)[0])
    assert torch.equal(features[0, 0], model.embedding.weight[5])
    assert torch.equal(features[0, 1:], model.embedding(said)[:-1])
    assert features.requires_grad


def test_reader_is_the_cheapest_that_does_it():
    own, full = OwnTokens(0.5, "sample"), parse_bptt("full")
    teacher, scheduled = parse_forcing("teacher"), parse_forcing("scheduled(linear)")
    assert isinstance(make_reader(TinyRNN(), full, teacher, own), AtOnce)
    assert isinstance(make_reader(TinyRNN(), full, scheduled, own), OneByOne)
    assert isinstance(make_reader(TinyBigram(), full, scheduled, own), TwoPasses)
    assert isinstance(make_reader(TinyRNN(), parse_bptt("random(0.5)"), teacher, own), OneByOne)
