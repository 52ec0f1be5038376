"""Speculative decoding: the texts of plain greedy, the distribution of plain samples, whatever drafts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from letters import Letters
from table_models import TableModel, make_table_model

from nextword.core import catalog
from nextword.core.contracts import START
from nextword.core.errors import ConfigError
from nextword.decode.generate import DecodeSettings, collect, generate
from nextword.decode.limits import Written, limits_of
from nextword.decode.sampling import shape
from nextword.decode.speculate import Draft


def texts_of(model, prompts=((),), draft=None, tokenizer=None, source=None, **asked):
    asked = {"unknown": True, "max_tokens": 20, **asked}
    return collect(generate(model, prompts, DecodeSettings(**asked), tokenizer, source, draft))


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 1000),
    tokens=st.integers(1, 7),
    blur=st.sampled_from([0.0, 0.2, 1.0]),
    batch=st.sampled_from([1, 64]),
    asked=st.fixed_dictionaries(
        {}, optional={"no_repeat": st.just(2), "min_tokens": st.just(5), "repetition_penalty": st.just(1.5)}
    ),
)
def test_greedy_is_plain_greedy_token_for_token(seed, tokens, blur, batch, asked):
    model, other = make_table_model(11, seed, sharp=2), make_table_model(11, seed + 1, sharp=2)
    draft = Draft(TableModel((1 - blur) * np.exp(model.logp_VV) + blur * np.exp(other.logp_VV)), tokens)
    prompts = [[3], [], [4, 5, 6], [7]]
    asked |= {"decode": "greedy", "batch": batch}
    found, plain = texts_of(model, prompts, draft, **asked), texts_of(model, prompts, **asked)
    assert found == plain
    if not blur:
        assert draft.rate == 1.0


def exact(model, length, asked, ids=()):
    """Return the probability of every text of this length under the settings, by enumeration."""
    if len(ids) == length:
        return {ids: 1.0}
    logp_1V = model.logp_VV[[ids[-1] if ids else START]].copy()
    limits_of(asked)(logp_1V, [Written((), list(ids))])
    p_V = np.exp(shape(logp_1V, asked)[0])
    found = {}
    for word in np.flatnonzero(p_V).tolist():
        found |= {text: p_V[word] * p for text, p in exact(model, length, asked, (*ids, word)).items()}
    return found


@pytest.mark.parametrize("tokens", [1, 3])
@pytest.mark.parametrize(
    "asked",
    [{}, {"temperature": 0.7, "top_k": 3}, {"top_p": 0.8, "repetition_penalty": 1.4}, {"no_repeat": 1}],
)
def test_samples_have_the_plain_distribution_by_chi_square(asked, tokens):
    model, draft = make_table_model(6, 3), Draft(make_table_model(6, 4), tokens)
    asked = {"max_tokens": 3, "min_tokens": 3, "unknown": False, **asked}
    expected = exact(model, 3, DecodeSettings(**asked))
    assert sum(expected.values()) == pytest.approx(1)
    counts = Counter(
        text.ids for text in texts_of(model, draft=draft, samples=1_500, seed=1, batch=4096, **asked)
    )
    assert set(counts) <= set(expected)
    common = [ids for ids, p in expected.items() if p * 1_500 >= 5]
    pairs = [(counts[ids], expected[ids] * 1_500) for ids in common]
    rest = 1_500 - sum(count for count, _ in pairs), 1_500 - sum(mean for _, mean in pairs)
    statistic = sum((count - mean) ** 2 / mean for count, mean in [*pairs, rest] if mean > 1e-6)
    freedom = len(pairs)
    assert statistic < freedom + 3.3 * np.sqrt(2 * freedom) + 3  # p = 0.001, about
    assert 0 < draft.rate < 1


def test_samples_do_not_depend_on_the_batch():
    model = make_table_model(9, 7)
    asked = {"samples": 5, "seed": 4, "top_p": 0.9}
    prompts = [[3], [], [4, 5]]
    together = texts_of(model, prompts, Draft(make_table_model(9, 8)), batch=64, **asked)
    assert texts_of(model, prompts, Draft(make_table_model(9, 8)), batch=2, **asked) == together


def test_a_draft_that_is_the_model_is_always_kept():
    model = make_table_model(9, 7)
    draft = Draft(model)
    texts_of(model, draft=draft, samples=50, seed=4)
    assert draft.rate == 1.0
    assert draft.written == draft.rounds * 5


def test_stop_texts_and_prefixes_hold():
    model, draft = make_table_model(8, 9), Draft(make_table_model(8, 9))
    asked = {"tokenizer": Letters(), "stop": ("ab",), "prefix": "bc", "decode": "greedy", "unknown": False}
    assert texts_of(model, draft=draft, **asked) == texts_of(model, **asked)


class Translator(TableModel):
    """A table whose rows start from the token of their source."""

    def start(self, batch, source=None, begin=True):
        return np.asarray(source)


def test_draft_without_a_source_serves_a_model_that_reads_one():
    tables = make_table_model(9, 1), make_table_model(9, 2)
    model, draft = Translator(np.exp(tables[0].logp_VV)), Draft(tables[1])
    asked = {"source": [4, 5, 6], "decode": "greedy"}
    prompts = [[], [], []]
    assert texts_of(model, prompts, draft, **asked) == texts_of(model, prompts, **asked)


@pytest.mark.parametrize(
    ("draft", "asked", "sentence"),
    [
        (make_table_model(8), {}, "vocabulary of 8 tokens"),
        (make_table_model(7), {"decode": "beam"}, "serve greedy and sample"),
    ],
)
def test_draft_that_cannot_serve_is_refused(draft, asked, sentence):
    with pytest.raises(ConfigError, match=sentence):
        texts_of(make_table_model(7), draft=Draft(draft), **asked)


@pytest.fixture(scope="module", params=["lstm", "transformer"])
def network(request):
    torch = pytest.importorskip("torch")
    from nextword.models.network import NeuralLanguageModel

    torch.manual_seed(0)
    made = catalog.find("model", request.param)
    options = {"context": 24} if request.param == "transformer" else {}
    built = made.build(made.Settings(hidden=16, **options), 40, True)
    with torch.no_grad():
        for weight in built.parameters():
            weight.add_(0.3 * torch.randn_like(weight))  # sharp, so that few choices are close
    return NeuralLanguageModel(built)


@pytest.mark.parametrize("blur", [0.0, 1.0])
def test_network_writes_the_same_with_an_ngram_or_a_network_as_draft(network, blur):
    """Texts longer than the window, rows that keep different numbers of drafted tokens."""
    draft = network if not blur else make_table_model(40, 1, sharp=3)
    prompts = [[5], [6, 7], [], [8, 9, 10, 11]]
    asked = {"decode": "greedy", "max_tokens": 40, "min_tokens": 40}
    found, plain = texts_of(network, prompts, Draft(draft, 5), **asked), texts_of(network, prompts, **asked)
    assert [text.ids for text in found] == [text.ids for text in plain]
    assert np.allclose([text.logprobs for text in found], [text.logprobs for text in plain], atol=1e-4)


def test_kept_state_is_the_state_after_the_kept_tokens(network):
    state = network.score(np.array([[5, 6, 7], [8, 9, 0]]), np.array([3, 2]))[1]
    ids_BT, counts_B = np.array([[10, 11, 12, 13], [14, 15, 16, 17]]), np.array([2, 3])
    logp_BTV, attempt = network.attempt(ids_BT, state)
    kept = network.keep(attempt, counts_B)
    again = network.score(np.array([[5, 6, 7], [8, 9, 0]]), np.array([3, 2]))[1]
    expected = network.score(ids_BT, counts_B, again)[1]
    assert np.allclose(network.next(kept), network.next(expected), atol=1e-4)
    after, _ = network.step(np.array([20, 21]), kept)
    other, _ = network.step(np.array([20, 21]), expected)
    assert np.allclose(after, other, atol=1e-4)
    assert np.allclose(logp_BTV[0, 1], network.next(kept)[0], atol=1e-4)
