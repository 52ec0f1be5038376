"""Dynamic evaluation: honest, on a copy, and worth something on a text that repeats itself."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch
from small_texts import SENTENCES

from nextword.core import catalog
from nextword.core.contracts import Block
from nextword.core.errors import ConfigError
from nextword.evaluation.lm.dynamic import DynamicStream
from nextword.evaluation.lm.perplexity import evaluate
from nextword.mixtures.cache import CacheSettings, NeuralCache
from nextword.mixtures.dynamic import Adapting, DynamicSettings
from nextword.mixtures.mixture import Mixture
from nextword.mixtures.remembering import Remembering
from nextword.models.network import NeuralLanguageModel
from nextword.ngram.estimation import build
from nextword.ngram.settings import NgramSettings
from nextword.text.settings import TextSettings
from nextword.text.tokenizers import fit_tokenizer

torch.set_num_threads(1)

TEXT = (SENTENCES * 6).encode()
FAMILIES = ["window", "rnn", "lstm", "gru", "mingru", "transformer"]


@functools.cache
def _tokenizer():
    return fit_tokenizer("words", [Block(TEXT, True)], TextSettings())


@functools.cache
def _model(name: str) -> NeuralLanguageModel:
    torch.manual_seed(1)
    kind = catalog.find("model", name).Settings
    small = {"layers": 2, "hidden": 16, "context": 12, "dropout": 0.5}
    chosen = kind(**{key: value for key, value in small.items() if key in kind.model_fields})
    network = catalog.find("model", name).build(chosen, _tokenizer().vocab_size, False)
    with torch.no_grad():
        for weight in network.parameters():
            weight += 0.05 * torch.randn_like(weight)
    return NeuralLanguageModel(network)


def _nll(model, **given) -> float:
    stream = DynamicStream(model, DynamicSettings(**given)) if given else None
    return evaluate(model, _tokenizer(), [Block(TEXT, True)], stream).nll


@pytest.mark.parametrize("rule", ["sgd", "rms"])
@pytest.mark.parametrize("name", FAMILIES)
def test_a_network_that_adapts_does_better_and_the_run_stays_as_it_was(name, rule):
    model = _model(name)
    before = {key: value.clone() for key, value in model.network.state_dict().items()}
    plain = _nll(model)
    adapted = _nll(model, rule=rule, rate=0.1 if rule == "sgd" else 0.01, segment=8)
    assert adapted < plain - 0.05
    assert all(torch.equal(value, before[key]) for key, value in model.network.state_dict().items())
    assert not any(module.training for module in model.network.modules())
    assert _nll(model) == plain


@pytest.mark.parametrize("name", FAMILIES)
def test_without_a_rate_it_is_plain_evaluation(name):
    assert _nll(_model(name), rate=0.0, segment=7) == pytest.approx(_nll(_model(name)), abs=1e-6)


def test_the_first_segment_is_scored_before_anything_is_learned():
    model, ids = _model("lstm"), torch.from_numpy(np.random.default_rng(0).integers(2, 12, 24))
    adapting = Adapting(model, DynamicSettings(rate=0.5, segment=8))
    plain = model.score(ids[None], np.array([24]))[0][0]
    found = adapting.push(ids)
    torch.testing.assert_close(found[:8], plain[:8], atol=1e-6, rtol=0)
    assert not torch.allclose(found[8:], plain[8:], atol=1e-3)


def test_one_update_is_the_equation():
    model, ids = _model("gru"), torch.from_numpy(np.random.default_rng(0).integers(2, 12, 8))
    adapting = Adapting(model, DynamicSettings(rate=0.5, decay=0.2, segment=8, clip=1e9))
    adapting.push(ids)
    adapting.begin()
    once = [weight.detach().clone() for weight in adapting.network.parameters()]
    adapting._differentiate(adapting._read(ids)[0], ids)
    gradients = [weight.grad.clone() for weight in adapting.weights]
    adapting._update()
    for weight, before, start, gradient in zip(
        adapting.weights, once, adapting.starts, gradients, strict=True
    ):
        torch.testing.assert_close(weight.detach(), before - 0.5 * gradient + 0.2 * (start - before))


def test_one_update_of_rms_is_the_equation():
    model, ids = _model("gru"), torch.from_numpy(np.random.default_rng(0).integers(2, 12, 8))
    adapting = Adapting(model, DynamicSettings(rule="rms", rate=0.01, decay=0.1, segment=4, clip=1e9))
    adapting.gather(ids)
    adapting.begin()
    adapting.push(ids[:4])
    before = [weight.detach().clone() for weight in adapting.weights]
    adapting._differentiate(adapting._read(ids[4:])[0], ids[4:])
    gradients = [weight.grad.clone() for weight in adapting.weights]
    adapting._update()
    roots = [(square / 2).sqrt() for square in adapting.squares]  # two segments were gathered
    mean = torch.cat([root.flatten() for root in roots]).mean()
    for at, weight in enumerate(adapting.weights):
        pull = torch.clamp(0.1 * roots[at] / mean, max=1.0) * (adapting.starts[at] - before[at])
        expected = before[at] - 0.01 * gradients[at] / (roots[at] + 1e-3) + pull
        torch.testing.assert_close(weight.detach(), expected)


def test_parts_of_a_mixture_and_memories_adapt_along():
    ids = np.concatenate([piece.ids for piece in _tokenizer().encode_blocks([Block(TEXT, True)])])
    counts = build(ids, _tokenizer().vocab_size, NgramSettings(order=2))
    remembering = Remembering(_model("lstm"), [NeuralCache(CacheSettings(size=20, theta=0.1))], [0.8, 0.2])
    for model in (remembering, Mixture([counts, remembering], [0.2, 0.8])):
        assert _nll(model, rate=0.0, segment=9) == pytest.approx(_nll(model), abs=1e-5)
        assert _nll(model, rate=0.1, segment=8) < _nll(model)


def test_pieces_of_a_text_go_on_from_each_other():
    (piece,) = _tokenizer().encode_blocks([Block(TEXT, True)])
    settings = DynamicSettings(rate=0.1, segment=5)
    whole = DynamicStream(_model("lstm"), settings).push(piece.ids, piece.documents)
    first = int(np.flatnonzero(piece.ids != 1)[19]) + 1  # 20 words are four segments
    stream = DynamicStream(_model("lstm"), settings)
    parts = [stream.push(piece.ids[:first], (0,)), stream.push(piece.ids[first:], ())]
    np.testing.assert_allclose(np.concatenate(parts), whole, atol=1e-6)


def test_the_signature_says_that_it_was_dynamic():
    stream = DynamicStream(_model("lstm"), DynamicSettings(rate=0.1, segment=8))
    report = evaluate(_model("lstm"), _tokenizer(), [Block(TEXT, True)], stream)
    assert "|dynamic:sgd/0.1/0.001/8|" in report.signature
    assert report.to_json()["dynamic"] == "sgd/0.1/0.001/8"
    plain = evaluate(_model("lstm"), _tokenizer(), [Block(TEXT, True)])
    assert "dynamic" not in plain.signature
    assert "dynamic" not in plain.to_json()


def test_counts_have_nothing_that_adapts():
    ids = np.concatenate([piece.ids for piece in _tokenizer().encode_blocks([Block(TEXT, True)])])
    counts = build(ids, _tokenizer().vocab_size, NgramSettings(order=2))
    with pytest.raises(ConfigError, match="this run has none; leave --dynamic out"):
        DynamicStream(counts, DynamicSettings())
