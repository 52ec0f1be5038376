"""The probe of memories: shares that add up, places that are told, and one sentence where there is none."""

from __future__ import annotations

import numpy as np
import pytest

from nextword.core.errors import ConfigError
from nextword.mixtures.cache import CacheSettings, NeuralCache
from nextword.mixtures.family import SavedMixture
from nextword.mixtures.members import Attached
from nextword.mixtures.recent import RecentSettings, RecentWords
from nextword.models.distributions import as_numpy
from nextword.probe import selection
from nextword.probe.settings import ProbeSettings
from nextword.probe.subject import Subject


@pytest.fixture
def remembering(subject) -> Subject:
    network, counts = subject("lstm"), subject("ngram")
    cache = Attached(NeuralCache(CacheSettings(size=60, theta=0.2)), 0)
    recent = Attached(RecentWords(RecentSettings(size=60), network.tokenizer.vocab_size), None)
    model = SavedMixture([network.model, counts.model, cache, recent], [0.3, 0.3, 0.2, 0.2], [])
    return Subject("mixed", model, network.tokenizer, network.given)


def test_shares_of_parts_add_up_to_the_probability(remembering):
    seen = selection.look("memory", remembering, ProbeSettings(tokens=30))
    shares = seen.arrays["share_KN"]
    assert seen.names["K"] == ["network", "counts", "cache", "recent"]
    np.testing.assert_allclose(shares.sum(axis=0), seen.arrays["p_N"])
    row = remembering.row(30)
    logp = remembering.model.score(row.ids_T[None, 1:8], np.array([7]))[0]  # within the first line
    np.testing.assert_allclose(np.log(seen.arrays["p_N"][:7]), as_numpy(logp)[0], atol=1e-5)
    assert seen.arrays["memory_N"][25] > seen.arrays["memory_N"][0]


def test_places_are_told_and_the_picture_is_drawn(remembering):
    seen = selection.look("memory", remembering, ProbeSettings(tokens=40))
    table = seen.parts[0].table
    assert "tokens ago" in table.rows[-1][3]
    assert seen.parts[0].svg.startswith("<svg")
    assert "share from memory" in str(seen)


def test_a_model_without_memory_is_refused_with_what_fits_it(subject):
    with pytest.raises(ConfigError, match="made by nextword mix with --cache") as caught:
        selection.look("memory", subject("lstm"))
    assert "what fits it: gradients" in str(caught.value)
