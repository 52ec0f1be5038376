"""Trials: weights are counted and steps timed, and nothing is kept."""

import time

import numpy as np
import pytest
from event_streams import until_return

from nextword.data.encode import DataFacts, PackedText, encode
from nextword.models.ladders import LADDERS
from nextword.models.presets import PRESETS
from nextword.runs.settings import plan
from nextword.tasks.lm import PreparedText
from nextword.text.words import WordTokenizer
from nextword.training.budget.trial import count_weights, try_steps
from nextword.training.order import Conditions
from nextword.training.update import Learner


def test_every_rung_is_larger_than_the_one_below_and_is_a_preset():
    for family, rungs in LADDERS.items():
        weights = [count_weights(plan(f"{family}-{rung.name}"), random_text(500)).inner for rung in rungs[:4]]
        assert weights == sorted(weights), family
        assert all(f"{family}-{rung.name}" in PRESETS for rung in rungs)


def random_text(size):
    """A text over so many tokens, of which only the vocabulary matters."""
    tokenizer = WordTokenizer.from_words([f"w{number}" for number in range(size - 3)])
    return PreparedText(PackedText(tokenizer, np.arange(tokenizer.vocab_size, dtype=np.int32), DataFacts()))


def test_inner_weights_leave_out_embedding_and_output_layer():
    for family in LADDERS:
        small, large = (count_weights(plan(f"{family}-nano"), random_text(words)) for words in (100, 1000))
        assert small.inner == large.inner, family
        assert small.all < large.all


@pytest.mark.slow
def test_a_trial_times_steps_and_keeps_nothing(meetings):
    settings = plan("lstm-nano", tokenizer="characters", sets={"train.threads": 1, "train.length": 16})
    text, _ = until_return(encode(meetings, settings.text, settings.data))
    trial = try_steps(settings, PreparedText(text), Conditions(), 0.5)
    assert trial.tokens_per_second > 0
    assert trial.epoch == text.facts.tokens
    assert np.isclose(trial.tokens_per_second * trial.seconds_per_step, trial.tokens_per_step)


def test_waiting_is_no_work(meetings, monkeypatch):
    settings = plan("lstm-nano", tokenizer="characters", sets={"train.threads": 1, "train.length": 16})
    text, _ = until_return(encode(meetings, settings.text, settings.data))
    update = Learner.update

    def interrupted(*args):  # as by another program that has the processor
        time.sleep(0.2)
        return update(*args)

    monkeypatch.setattr(Learner, "update", interrupted)
    trial = try_steps(settings, PreparedText(text), Conditions(), 0.5)
    assert trial.seconds_per_step >= 0.2
    assert trial.work_per_step <= trial.seconds_per_step - 0.19
    assert trial.speed > trial.tokens_per_second
