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
    {"embedding_kind": "scaled"},
    {"norm_place": "post"},
    {"position": "sinusoidal"},
    {"position": "learned"},
    {"position": "sinusoidal", "norm_place": "post", "norm": "layernorm", "bias": True, "ffn": "relu",
     "qk_norm": "none"},
    {"ffn": "gelu", "embedding_kind": "scaled", "position": "learned", "norm_eps": 1e-3, "heads": 2,
     "kv_heads": 1, "tied": False},
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


@pytest.fixture(scope="module", params=KINDS, ids=str)
def both(request, tmp_path_factory):
    """Our model, its settings, and the folder that CTranslate2 reads."""
    from nextword.formats.ctranslate2 import write_ctranslate2

    model, settings = made(request.param)
    words = PairVocabulary(model.source_tokenizer, model.target_tokenizer)
    folder = tmp_path_factory.mktemp("ctranslate2") / "out"
    finish(write_ctranslate2(folder, model, settings, words))
    return model, folder


def sources_of(model: Translator) -> list[list[int]]:
    draw = np.random.default_rng(0)
    size = model.source_tokenizer.vocab_size
    return [[*draw.integers(3, size, length).tolist(), 2] for length in (3, 7, 5)]


def read_by_ours(sources: list[list[int]]) -> Source:
    ids_BS = np.zeros((len(sources), max(map(len, sources))), np.int64)
    for row, source in enumerate(sources):
        ids_BS[row, : len(source)] = source
    return Source(ids_BS, np.array([len(source) for source in sources]))


def written_by_both(both: Any, beam: int, unknown: bool) -> Any:
    """Return what both write: our texts as pieces and ours, theirs."""
    import ctranslate2

    from nextword.formats.ctranslate2 import token_names

    model, folder = both
    names, sources = token_names(model.target_tokenizer), sources_of(model)
    peer = ctranslate2.Translator(str(folder), device="cpu", intra_threads=1)
    theirs = peer.translate_batch(
        [[names[index] for index in source[:-1]] for source in sources], beam_size=beam, length_penalty=0,
        min_decoding_length=0, max_decoding_length=12, return_scores=True, disable_unk=not unknown,
    )  # fmt: skip
    decode = DecodeSettings(
        decode="greedy" if beam == 1 else "beam", beam_size=beam, length_penalty=0, max_tokens=12,
        unknown=unknown,
    )  # fmt: skip
    found = collect(generate(model, [()] * 3, decode, None, read_by_ours(sources)))
    return [
        ([names[index] for index in own.ids if index != 2], own, other)
        for own, other in zip(found, theirs, strict=True)
    ]


@pytest.mark.parametrize("beam", [1, 3])
def test_both_write_the_same_with_the_same_scores(both, beam):
    for pieces, own, other in written_by_both(both, beam, unknown=True):
        assert pieces == other.hypotheses[0]
        assert own.logprob == pytest.approx(other.scores[0], abs=1e-4)


def test_both_write_the_same_where_the_unknown_symbol_is_not_allowed(both):
    for pieces, _, other in written_by_both(both, 1, unknown=False):
        assert pieces == other.hypotheses[0]
        assert "<unk>" not in pieces


def test_both_give_the_same_score_to_a_given_target(both):
    import ctranslate2

    from nextword.formats.ctranslate2 import token_names

    model, folder = both
    names, sources = token_names(model.target_tokenizer), sources_of(model)
    targets = [[3, 4, 5, 6, 7, 8, 9, 10], [4], [15, 14, 13]]
    peer = ctranslate2.Translator(str(folder), device="cpu", intra_threads=1)
    theirs = peer.score_batch(
        [[names[index] for index in source[:-1]] for source in sources],
        [[names[index] for index in target] for target in targets],
    )
    given = read_by_ours([[*target, 2] for target in targets])
    logp_BT, _ = model.score(*given, model.start(3, read_by_ours(sources)))
    for row, (target, other) in enumerate(zip(targets, theirs, strict=True)):
        assert logp_BT[row, : len(target) + 1].tolist() == pytest.approx(other.log_probs, abs=1e-4)


@pytest.mark.parametrize(("name", "value"), [("ffn", "swiglu"), ("copying", True), ("link", "transparent")])
def test_parts_that_it_does_not_have_are_refused(name, value, tmp_path):
    from nextword.formats.ctranslate2 import write_ctranslate2

    model, settings = made({name: value})
    words = PairVocabulary(model.source_tokenizer, model.target_tokenizer)
    with pytest.raises(ConfigError, match=rf"'model\.{name}' is '{value}', and CTranslate2 has only"):
        finish(write_ctranslate2(tmp_path / "out", model, settings, words))
