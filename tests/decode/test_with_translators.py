"""Encoder-decoders are decoded like any model: in any batch, with coverage, beside others, with drafts."""

from __future__ import annotations

import numpy as np
import pytest
from table_models import make_table_model

from nextword.core import catalog
from nextword.core.contracts import Block, Source
from nextword.data.paired import PairVocabulary
from nextword.decode.generate import DecodeSettings, collect, generate
from nextword.decode.speculate import Draft
from nextword.mixtures.ensemble import Ensemble
from nextword.text.settings import TextSettings
from nextword.text.tokenizers import fit_tokenizer

torch = pytest.importorskip("torch")
LENGTHS = [7, 2, 5, 9, 1, 6, 3, 8, 4, 7]


@pytest.fixture(scope="module")
def words():
    text = [Block(b"abcdefghijklmnopqrstu", True)]
    made = fit_tokenizer("characters", text, TextSettings(tokenizer="characters"), "document")
    return PairVocabulary(made, made)


def translator(name, words, seed=0):
    """A network whose weights are large enough that few choices are close."""
    from nextword.models.seq2seq import Translator

    torch.manual_seed(seed)
    family = catalog.find("translator", name)
    network = family.build(family.Settings(hidden=32, layers=2), words)
    with torch.no_grad():
        for weight in network.parameters():
            weight += 0.2 * torch.randn_like(weight)
    network.fixed = True
    return Translator(network, words)


@pytest.fixture(scope="module", params=["transformer", "lstm"])
def model(request, words):
    return translator(request.param, words)


def texts_of(model, lengths=LENGTHS, draft=None, first=0, **asked):
    ids_BS = np.random.default_rng(2).integers(3, 20, (len(LENGTHS), max(LENGTHS)))
    source = Source(ids_BS[first : first + len(lengths), : max(lengths)], np.array(lengths))
    settings = DecodeSettings(**{"max_tokens": 14, "max_ratio": 2.0, "batch": 512, **asked})
    found = collect(generate(model, [()] * len(lengths), settings, None, source, draft))
    return [text.ids for text in found]


@pytest.mark.parametrize(
    "asked",
    [
        {"decode": "greedy"},
        {"decode": "beam", "beam_size": 5},
        {"decode": "beam", "beam_size": 5, "coverage_penalty": 0.4, "length_penalty": 1.0},
        {"decode": "beam", "beam_size": 6, "groups": 2},
    ],
)
def test_a_source_alone_is_translated_as_among_others(model, asked):
    together = texts_of(model, **asked)
    assert texts_of(model, batch=1, **asked) == together
    for place in (1, 4, 9):  # also without the room that longer neighbours need
        assert texts_of(model, [LENGTHS[place]], first=place, **asked) == [together[place]]


def test_ensemble_of_translators_and_a_language_model_keeps_to_itself_in_any_batch(model, words):
    beside = make_table_model(words.target.vocab_size, 1)
    ensemble = Ensemble([model, translator("gru", words, 1), beside])
    asked = {"decode": "beam", "beam_size": 4, "coverage_penalty": 0.2}
    assert texts_of(ensemble, batch=1, **asked) == texts_of(ensemble, **asked)


@pytest.mark.parametrize("kind", ["itself", "translator", "table"])
def test_drafts_change_no_greedy_translation(model, words, kind):
    drafts = {
        "itself": model,
        "translator": translator("gru", words, 1),
        "table": make_table_model(words.target.vocab_size, 1),
    }
    draft = Draft(drafts[kind], 3)
    plain = texts_of(model, decode="greedy")
    assert texts_of(model, draft=draft, decode="greedy") == plain
    assert texts_of(model, draft=draft, decode="greedy", batch=1) == plain
    if kind == "itself":
        assert draft.rate == 1.0


def test_int8_translations_do_not_depend_on_the_batch(words):
    from nextword.models.int8 import find_steps, use_int8

    if not find_steps():
        pytest.skip("this machine has no int8 products")
    model = translator("transformer", words)
    assert use_int8(model.network) == ""
    asked = {"decode": "beam", "beam_size": 5}
    assert texts_of(model, batch=1, **asked) == texts_of(model, **asked)
