"""Every modification of the catalog writes what its distributions say, by every way to decode.

What is written is scored again by reading it at once, so that it does not matter which of two choices that
are nearly equal was made.
"""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from modified_networks import UNNORMED, V, every_row, network_of

from nextword.core.contracts import END, START, UNKNOWN
from nextword.decode.engine import Engine
from nextword.decode.generate import DecodeSettings, collect, generate
from nextword.decode.requests import Request
from nextword.decode.speculate import Draft
from nextword.models.network import NeuralLanguageModel

torch.set_num_threads(1)

PROMPTS = [(3, 4, 5), (6,), (), (7, 8, 9, 10), tuple(range(3, 25))]  # the context is 10
GREEDY = DecodeSettings(decode="greedy", max_tokens=14, min_tokens=14)


def scores(model, prompt, ids):
    """Return log p of each of these ids after a prompt."""
    row = [*prompt, *ids]
    logp_1T, _ = model.score(np.array([row], dtype=np.int64), np.array([len(row)]))
    return logp_1T[0, len(prompt) :].numpy()


def lost(model, prompt, ids):
    """Return by how many nats each of these ids is less likely than the likeliest word."""
    state, gaps = model.start(1), []
    _, state = model.score(np.array([prompt], dtype=np.int64), np.array([len(prompt)]), state)
    for word in ids:
        logp_V = model.next(state)[0].numpy().copy()
        logp_V[[START, END, UNKNOWN]] = -np.inf
        gaps.append(logp_V.max() - logp_V[word])
        _, state = model.step(np.array([word]), state)
    return np.array(gaps)


def close_to(name):
    return {"rtol": 1e-3 if name in UNNORMED else 1e-5, "atol": 1e-4}


@every_row
@pytest.mark.parametrize("trees", [True, False])
def test_texts_of_a_beam_have_the_probabilities_of_the_model(name, trees, monkeypatch):
    monkeypatch.setattr("nextword.decode.beam._BRANCHED", 8 if trees else 0)
    model, asked = NeuralLanguageModel(network_of(name)), {"beam_size": 4, "n_best": 2, "min_tokens": 3}
    for longest in (5, 14):
        settings = DecodeSettings(decode="beam", max_tokens=longest, **asked)
        for text in collect(generate(model, PROMPTS, settings)):
            expected = scores(model, PROMPTS[text.row // 2], text.ids)
            np.testing.assert_allclose(text.logprobs, expected, **close_to(name))


@every_row
def test_drafts_of_another_model_leave_the_choices_of_the_model(name):
    torch.manual_seed(5)
    other = copy.deepcopy(network_of(name))
    with torch.no_grad():
        for weight in other.parameters():
            weight += 0.02 * torch.randn_like(weight)
    model, draft = NeuralLanguageModel(network_of(name)), Draft(NeuralLanguageModel(other), 3)
    for text in collect(generate(model, PROMPTS, GREEDY, draft=draft)):
        expected = scores(model, PROMPTS[text.row], text.ids)
        np.testing.assert_allclose(text.logprobs, expected, **close_to(name))
        assert lost(model, PROMPTS[text.row], text.ids).max() < (0.05 if name in UNNORMED else 1e-3)
    assert draft.drafted


@every_row
def test_requests_that_enter_and_leave_a_batch_get_what_the_model_says(name):
    model, random = NeuralLanguageModel(network_of(name)), np.random.default_rng(1)
    engine, requests = Engine(model, rows=4, piece=9, chunk=20), []
    for number in range(9):
        prompt = np.random.default_rng(number).integers(3, V, number * 5 % 31).tolist()
        asked = DecodeSettings(decode="greedy", max_tokens=4 + number % 9, min_tokens=4 + number % 9)
        requests.append(Request(tuple(prompt), asked, scored=number % 2 == 0))
        engine.admit(requests[-1])
        for _ in range(random.integers(3)):
            engine.step()
    while not engine.is_idle:
        engine.step()
    for request in requests:
        ids = [token.id for token in request.rows[0].tokens]
        found = [token.logprob for token in request.rows[0].tokens]
        np.testing.assert_allclose(found, scores(model, request.prompt, ids), **close_to(name))
        assert lost(model, request.prompt, ids).max() < (0.05 if name in UNNORMED else 1e-3)
        if request.scored:
            found = [token.logprob for token in request.read]
            np.testing.assert_allclose(found, scores(model, (), request.prompt), **close_to(name))
