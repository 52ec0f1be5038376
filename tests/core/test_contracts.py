"""What callers may ask of a model beyond the contract, and what they get where it does not say."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

from nextword.core.contracts import (
    END,
    START,
    UNKNOWN,
    context_of,
    deterministic,
    is_probability,
    never_next,
    refuse_source,
)
from nextword.core.errors import ConfigError
from nextword.mixtures.recent import RecentSettings, RecentWords
from nextword.ngram.smoothing.estimate import predictable


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


def test_start_never_comes_next_and_unknown_only_in_an_open_vocabulary() -> None:
    assert set(never_next(closed=False)) == {START}
    assert set(never_next(closed=True)) == {START, UNKNOWN}
    assert END not in never_next(closed=True)


def test_counts_and_memories_mask_the_same_ids() -> None:
    for closed in (False, True):
        first_V = RecentWords(RecentSettings(), 6, closed).even_V
        np.testing.assert_array_equal(first_V > 0, predictable(6, closed))
        np.testing.assert_array_equal(np.flatnonzero(first_V == 0), sorted(never_next(closed)))
