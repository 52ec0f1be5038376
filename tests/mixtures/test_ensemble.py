"""Ensembles: means of probabilities or of their logarithms, on the contract, with sources and attention."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joined_rows import check_joined, states_after
from table_models import TableModel, make_table_model

from nextword.core import catalog
from nextword.core.contracts import START, Aligner, LanguageModel, PackedScorer
from nextword.core.errors import ConfigError
from nextword.decode.generate import DecodeSettings, collect, generate
from nextword.mixtures.ensemble import Ensemble

TABLES = [make_table_model(seed=1), make_table_model(seed=2)]


@pytest.mark.parametrize("mean", ["arithmetic", "geometric"])
def test_distribution_is_the_mean_of_the_members(mean):
    ensemble = Ensemble(TABLES, mean=mean)
    found_BV = np.exp(ensemble.next(ensemble.start(2)))
    parts = [np.exp(model.next(model.start(2))) for model in TABLES]
    expected_BV = sum(parts) / 2 if mean == "arithmetic" else np.sqrt(parts[0] * parts[1])
    assert np.allclose(found_BV, expected_BV / expected_BV.sum(axis=1, keepdims=True))
    assert (found_BV[:, START] == 0).all()
    assert isinstance(ensemble, LanguageModel)
    assert isinstance(ensemble, PackedScorer) == (mean == "arithmetic")


@pytest.mark.parametrize("mean", ["arithmetic", "geometric"])
@settings(max_examples=20, deadline=None)
@given(ids=st.lists(st.sampled_from([0, 2, 3, 4, 5, 6]), min_size=1, max_size=8), cut=st.integers(0, 8))
def test_step_after_step_equals_score_in_pieces(mean, ids, cut):
    ensemble = Ensemble(TABLES, [0.25, 0.75], mean)
    state, steps = ensemble.start(1), []
    logp = ensemble.next(state)
    for word in ids:
        steps.append(logp[0, word])
        logp, state = ensemble.step(np.array([word]), state)
    cut = min(cut, len(ids))
    row = np.array([ids])
    first, middle = ensemble.score(row[:, :cut], [cut])
    second, after = ensemble.score(row[:, cut:], [len(ids) - cut], middle)
    assert np.allclose(np.concatenate([first[0], second[0]]), steps, atol=1e-12)
    assert np.allclose(ensemble.next(after), logp)


def test_rows_past_their_length_do_not_move():
    ensemble = Ensemble(TABLES, mean="geometric")
    logp_BT, after = ensemble.score(np.array([[3, 4, 2], [3, 0, 0]]), np.array([3, 1]))
    assert logp_BT[1, 1] == logp_BT[1, 2] == 0.0
    alone = ensemble.score(np.array([[3]]), np.array([1]))[1]
    assert np.allclose(ensemble.next(after)[1], ensemble.next(alone)[0])


@pytest.mark.parametrize("mean", ["arithmetic", "geometric"])
def test_states_join_and_reorder(mean):
    ensemble = Ensemble(TABLES, mean=mean)
    states = states_after(ensemble, [[[3], [4, 5]], [[]], [[6, 3, 4]]], [True, False, True])
    check_joined(ensemble, states, [[3], [4, 5], [6], [3, 3]], 1e-12)


class Translator(TableModel):
    """A table that starts from its source's token and looks at one place."""

    def start(self, batch, source=None, begin=True):
        return np.asarray(source)

    def attention(self, state):
        return np.eye(7)[state]


def test_language_model_joins_translators_and_attention_is_their_mean():
    translators = [Translator(np.exp(table.logp_VV)) for table in TABLES]
    ensemble = Ensemble([*translators, make_table_model(seed=3)])
    state = ensemble.start(2, [4, 5])
    parts = [np.exp(TABLES[0].logp_VV[[4, 5]]), np.exp(TABLES[1].logp_VV[[4, 5]])]
    last = np.exp(ensemble.models[2].logp_VV[[START, START]])
    assert np.allclose(np.exp(ensemble.next(state)), (sum(parts) + last) / 3)
    assert isinstance(ensemble, Aligner)
    assert np.array_equal(ensemble.attention(state), np.eye(7)[[4, 5]])
    assert not isinstance(Ensemble(TABLES), Aligner)


def test_source_that_no_member_reads_is_refused():
    with pytest.raises(ConfigError, match="source"):
        Ensemble(TABLES).start(1, [4])


def test_vocabularies_must_agree():
    with pytest.raises(ConfigError, match="7, 9 tokens"):
        Ensemble([make_table_model(7), make_table_model(9)])


@pytest.mark.parametrize("mean", ["arithmetic", "geometric"])
def test_networks_stay_tensors_and_agree_with_numpy(mean):
    torch = pytest.importorskip("torch")
    from nextword.models.network import NeuralLanguageModel

    torch.manual_seed(0)
    families = [catalog.find("model", name) for name in ("lstm", "transformer")]
    models = [NeuralLanguageModel(made.build(made.Settings(hidden=8), 30, True)) for made in families]
    ensemble = Ensemble(models, [0.3, 0.7], mean)
    found = ensemble.next(ensemble.start(2))
    assert isinstance(found, torch.Tensor)
    plain = Ensemble.mix(ensemble, [model.next(model.start(2)).double().numpy() for model in models])
    assert np.allclose(found.numpy(), plain, atol=1e-6)
    texts = collect(generate(ensemble, [[4], [5]], DecodeSettings(decode="beam", max_tokens=5)))
    assert len(texts) == 2
