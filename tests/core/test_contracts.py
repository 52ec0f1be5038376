"""What callers may ask of a model beyond the contract, and what they get where it does not say."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from nextword.core.contracts import context_of, deterministic, is_probability, refuse_source
from nextword.core.errors import ConfigError


class Silent:
    """A model that says nothing of itself."""


class Stupid:
    """A model of scores that looks two tokens back."""

    context = 2
    is_probability = False

    def __init__(self) -> None:
        self.strict = False

    @contextmanager
    def deterministic(self):
        self.strict = True
        yield
        self.strict = False


def test_a_model_that_does_not_say_gives_probabilities_without_a_limit():
    assert context_of(Silent()) is None
    assert is_probability(Silent())
    with deterministic(Silent()):
        pass


def test_what_a_model_says_is_used():
    model = Stupid()
    assert context_of(model) == 2
    assert not is_probability(model)
    with deterministic(model):
        assert model.strict
    assert not model.strict


def test_a_source_is_refused_in_one_sentence_and_none_is_not():
    refuse_source(None)
    with pytest.raises(ConfigError, match="reads none; leave it out"):
        refuse_source([3, 4])
