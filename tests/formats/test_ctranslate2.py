"""An exported encoder-decoder translates as ours does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from nextword.core import catalog
from nextword.core.contracts import Block, Source
from nextword.core.errors import ConfigError
from nextword.core.events import finish
from nextword.data.paired import PairVocabulary
from nextword.decode.generate import collect, generate
from nextword.decode.settings import DecodeSettings
from nextword.models.seq2seq import Translator
from nextword.text.settings import TextSettings
from nextword.text.tokenizers import fit_tokenizer

pytestmark = pytest.mark.needs("ctranslate2")
KINDS: list[dict[str, Any]] = [
    {},
    {"norm": "layernorm", "bias": True, "ffn": "relu", "qk_norm": "none"},
    {"ffn": "swish", "encoder_layers": 1, "heads": 4},
]  # fmt: skip


def made(given: dict[str, Any]) -> tuple[Translator, Any]:
    settings = TextSettings(tokenizer="characters")
    tokenizer = fit_tokenizer("characters", [Block(b"abcdefghijklm", True)], settings, "document")
    words, family = PairVocabulary(tokenizer, tokenizer), catalog.find("translator", "transformer")
    torch.manual_seed(0)
    chosen = family.Settings(**({"hidden": 32, "layers": 2, "inner": 48, "context": 64} | given))
    network = family.build(chosen, words)
    with torch.no_grad():
        for weight in network.parameters():
            weight += 0.3 * torch.randn_like(weight)
    return Translator(network, words), chosen


@pytest.mark.parametrize("given", KINDS)
@pytest.mark.parametrize("beam", [1, 3])
def test_both_write_the_same(given, beam, tmp_path):
    import ctranslate2

    from nextword.formats.ctranslate2 import token_names, write_ctranslate2

    model, settings = made(given)
    words = PairVocabulary(model.source_tokenizer, model.target_tokenizer)
    finish(write_ctranslate2(tmp_path / "out", model, settings, words))
    names = token_names(words.target)
    draw = np.random.default_rng(0)
    sources = [[*draw.integers(3, len(names), length).tolist(), 2] for length in (3, 7, 5)]
    peer = ctranslate2.Translator(str(tmp_path / "out"), device="cpu", intra_threads=1)
    theirs = peer.translate_batch(
        [[names[index] for index in source[:-1]] for source in sources], beam_size=beam, length_penalty=0,
        min_decoding_length=0, max_decoding_length=12, return_scores=True,
    )  # fmt: skip
    ids_BS = np.zeros((3, 8), np.int64)
    for row, source in enumerate(sources):
        ids_BS[row, : len(source)] = source
    decode = DecodeSettings(
        decode="greedy" if beam == 1 else "beam", beam_size=max(beam, 1), length_penalty=0, max_tokens=12
    )
    lengths_B = np.array([len(source) for source in sources])
    found = collect(generate(model, [()] * 3, decode, None, Source(ids_BS, lengths_B)))
    for own, other in zip(found, theirs, strict=True):
        written = [names[index] for index in own.ids if index != 2]
        assert written == other.hypotheses[0]
        if own.reason == "end":
            assert own.logprob == pytest.approx(other.scores[0], abs=1e-3)


def test_parts_that_it_does_not_have_are_refused(tmp_path):
    from nextword.formats.ctranslate2 import write_ctranslate2

    model, settings = made({"ffn": "swiglu"})
    words = PairVocabulary(model.source_tokenizer, model.target_tokenizer)
    with pytest.raises(ConfigError, match=r"'model\.ffn' is 'swiglu', and CTranslate2 has only"):
        finish(write_ctranslate2(tmp_path / "out", model, settings, words))
