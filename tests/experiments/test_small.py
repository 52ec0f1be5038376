"""Small networks of experiments: learned and measured."""

from __future__ import annotations

import numpy as np
import pytest
from event_streams import until_return
from table_models import make_table_model

from nextword.experiments import reach, small
from nextword.models.network import NeuralLanguageModel


def test_small_networks_learn_and_count_their_steps():
    settings = small.settings_of("rnn", 0, {"model.layers": 1, "model.hidden": 8, "train.steps": 30})
    count = small.Count()
    made = small.Made(reach.make_batch, 0)
    network = small.build(settings, reach.VOCABULARY)
    learnt, _ = until_return(small.learn(settings, network, made, count))
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
