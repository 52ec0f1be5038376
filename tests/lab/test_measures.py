"""What the experiments measure with: each against a slower or plainer way."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from table_models import make_table_model

from nextword.core.contracts import END, START, UNKNOWN
from nextword.data.batches.batch import NOT_COUNTED
from nextword.experiments import clipping, exact, exposure_bias, initial_state, reach, small, window
from nextword.experiments.bidirectional import TwoWays
from nextword.experiments.random_truncation import places
from nextword.experiments.vanishing import gradient_norms, relative
from nextword.models.network import NeuralLanguageModel

SETS = {
    "rnn": {"model.layers": 1, "model.hidden": 8},
    "lstm": {"model.layers": 2, "model.hidden": 8},
    "transformer": {"model.layers": 1, "model.hidden": 8, "model.heads": 1, "model.context": 32,
                    "model.init": "gpt2"},
    "window": {"model.context": 3, "model.embedding": 8, "model.hidden": 8},
}  # fmt: skip
ROWS = np.random.default_rng(0).integers(3, 12, (3, 7))


def make(family):
    return small.build(small.settings_of(family, 0, {**SETS[family], "model.tied": False}), 12)


@pytest.mark.parametrize("family", SETS)
def test_the_gradient_by_distance_is_that_of_moving_a_words_vector(family):
    """Against finite differences: move the vector of one word of one row, alone."""
    network = make(family).double().eval()
    norms = gradient_norms(network, ROWS)
    assert norms.shape == (3, 6)
    row = ROWS[:1].copy()
    row[0, :-1] = [3, 4, 5, 6, 7, 8]  # every word once, so that its vector is one place
    slopes = gradient_norms(network, row)[0]
    for back in range(6):
        vector = network.embedding.weight_VE[8 - back]  # the word so far back
        found = []
        for place in range(8):
            losses = []
            for push in (-1e-6, 1e-6):
                with torch.no_grad():
                    vector[place] += push
                    losses.append(loss_of(network, row))
                    vector[place] -= push
            found.append((losses[1] - losses[0]) / 2e-6)
        scale = getattr(network, "scale_words", 1.0)  # vectors are multiplied by it
        assert np.linalg.norm(found) == pytest.approx(scale * slopes[back], rel=2e-3, abs=1e-6)


def loss_of(network, row):
    ids = torch.from_numpy(row)
    features, _ = network.read(ids[:, :-1], network.start(1), torch.tensor([6]))
    return -float(network.head.score(features[:, -1], ids[:, -1]))


def test_a_window_hears_nothing_from_outside_and_an_rnn_does():
    assert (gradient_norms(make("window"), ROWS)[:, 3:] == 0).all()
    assert (gradient_norms(make("rnn"), ROWS) > 0).all()


def test_a_text_longer_than_a_transformers_context_is_measured_within_it():
    rows = np.random.default_rng(1).integers(3, 12, (2, 41))
    norms = gradient_norms(make("transformer"), rows)
    assert (norms[:, :32] > 0).all()
    assert (norms[:, 32:] == 0).all()


def test_measuring_a_gradient_leaves_the_network_as_it_was():
    network = make("lstm")
    before = [weight.clone() for weight in network.parameters()]
    gradient_norms(network, ROWS)
    assert all(torch.equal(a, b) for a, b in zip(before, network.parameters(), strict=True))
    assert all(weight.grad is None for weight in network.parameters())
    assert network.training


def test_relative_gradients_begin_at_one():
    assert relative(np.array([[2.0, 1.0], [4.0, 0.0]])).tolist() == [1.0, pytest.approx(1 / 6)]


@given(st.integers(0, 50), st.integers(1, 4))
def test_exact_search_finds_what_trying_everything_finds(seed, length):
    model = make_table_model(5, seed, sharp=3.0)
    best = exact.search(model, (), length, (UNKNOWN,))
    found = {}
    for n in range(1, length + 1):
        for ids in itertools.product(range(2, 5), repeat=n):
            if END in ids[:-1] or (n < length and ids[-1] != END):
                continue
            found[ids] = float(np.sum(model.score(np.array([ids]), np.array([n]))[0]))
    assert best.logprob == pytest.approx(max(found.values()))
    assert found[best.ids] == pytest.approx(best.logprob)


def test_exact_search_gives_up_where_it_was_told_to():
    assert exact.search(make_table_model(6, 0), (), 6, (UNKNOWN, END), most=3) is None


def test_the_slope_of_the_cliff_is_that_of_its_loss():
    for w in (4.5, 4.99, 5.3):
        numeric = (clipping.unit_loss(w + 1e-6)[0] - clipping.unit_loss(w - 1e-6)[0]) / 2e-6
        assert clipping.unit_loss(w)[1] == pytest.approx(numeric, rel=1e-3, abs=1e-6)


def test_the_noun_stands_as_far_back_as_it_should():
    for distance in (5, 9, 40):
        ids, nouns = reach.make_rows(np.random.default_rng(0), 6, distance)
        assert (ids[:, -distance] == nouns).all()
        others = np.delete(ids, ids.shape[1] - distance, axis=1)
        assert (others >= reach.FIRST_WORD).all()


def test_reach_ends_at_the_first_distance_that_is_not_recalled():
    assert reach.reach(np.array([0.9, 0.6, 0.5, 1.0]), (5, 7, 10, 14)) == 7
    assert reach.reach(np.array([0.1, 0.9]), (5, 7)) == 0
    assert reach.reach(np.array([1.0, 1.0]), (5, 7)) == 7


def test_only_the_noun_is_learned_from():
    batch = reach.make_batch(np.random.default_rng(3))
    assert (batch.targets_BT[:, :-1] == NOT_COUNTED).all()
    assert ((batch.targets_BT[:, -1] >= 3) & (batch.targets_BT[:, -1] < reach.FIRST_WORD)).all()


def test_new_words_stand_at_the_first_place_only_while_the_networks_learn():
    ids, answers = window.make_rows(np.random.default_rng(0), 500)
    kind = window.OLD + window.NEW
    number = (ids - window.FIRST) % kind
    is_new = (ids < window.FIRST + 2 * kind) & (number >= window.OLD)
    assert is_new[:, 0].any()
    assert not is_new[:, 1:].any()
    moved, told = window.make_rows(np.random.default_rng(0), 500, place=3)
    assert ((moved[:, 3] - window.FIRST) // kind == told - window.ANSWERS[0]).all()
    assert set(answers) == set(window.ANSWERS)


def test_sentences_of_the_proctor_follow_their_scene_mostly():
    rows = window.sentences(np.random.default_rng(0), 400)
    proctor = window.encode("proctor")[1]
    exams = window.encode("exams")[1]
    share = np.mean(rows[(rows == proctor).any(axis=1), -1] == exams)
    assert 0.82 < share < 0.97


def test_a_push_of_nothing_changes_nothing_and_a_contraction_forgets(monkeypatch):
    rows = np.random.default_rng(0).integers(3, 12, (4, 20))
    curve = initial_state.distances(initial_state._scaled(0.5, 12), rows)
    assert curve[0] == 1
    assert curve[-1] < 1e-3
    assert initial_state.distances(initial_state._scaled(3.0, 12), rows)[-1] > 1


def test_a_two_way_network_sees_the_word_it_has_to_predict_and_a_one_way_network_does_not():
    torch.manual_seed(0)
    ids = torch.randint(3, 9, (1, 6))
    other = ids.clone()
    other[0, 4] = 3 + (ids[0, 4] - 2) % 6
    for both in (False, True):
        network = TwoWays(9, both)
        same = torch.equal(network(ids)[:, 3], network(other)[:, 3])
        assert same is not both


def test_small_networks_learn_and_count_their_steps():
    settings = small.settings_of("rnn", 0, {**SETS["rnn"], "train.steps": 30})
    count = small.Count()
    made = small.Made(reach.make_batch, 0)
    events = small.learn(settings, small.build(settings, reach.VOCABULARY), made, count)
    while True:
        try:
            next(events)
        except StopIteration as end:
            learnt = end.value
            break
    assert len(learnt.losses) == len(learnt.norms) == count.done == 30
    assert learnt.losses[-1] < learnt.losses[0]
    assert isinstance(learnt.model, NeuralLanguageModel)


def test_nats_are_counted_after_the_skipped_words():
    model = make_table_model(7, 1)
    rows = np.random.default_rng(0).integers(3, 7, (5, 8))
    whole = small.nats(model, rows, batch=2)
    assert small.nats(model, rows, skip=3) == pytest.approx(whole[:, 3:])
    state = model.start(5, begin=False)
    assert whole == pytest.approx(-model.score(rows, np.full(5, 8), state)[0])


def test_the_running_mean_is_looked_at_in_rounded_steps():
    assert places(40) == [1, 2, 5, 10, 20, 40]
    assert places(100) == [1, 2, 5, 10, 20, 50, 100]


def test_starts_are_put_before_every_sequence_again():
    ids = np.array([5, 6, END, 7, END])
    assert exposure_bias._packed(ids).tolist() == [START, 5, 6, END, START, 7, END]
