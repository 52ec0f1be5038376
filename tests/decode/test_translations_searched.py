"""Search on encoder-decoders themselves: exhaustive, greedy, and one source at a time."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from nextword.core import catalog
from nextword.core.contracts import END, Block, Source
from nextword.data.paired import PairVocabulary
from nextword.decode.generate import DecodeSettings, collect, generate
from nextword.text.settings import TextSettings
from nextword.text.tokenizers import fit_tokenizer

torch = pytest.importorskip("torch")
KINDS = [
    ("lstm", {}), ("transformer", {}), ("gru", {"copying": True, "coverage": True}),
    ("transformer", {"copying": True}),
]  # fmt: skip
every_kind = pytest.mark.parametrize(("name", "given"), KINDS, ids=[f"{name} {how}" for name, how in KINDS])


def translator(name, given, letters):
    """A network whose weights are large enough that few choices are close."""
    from nextword.models.seq2seq import Translator

    settings = TextSettings(tokenizer="characters")
    tokenizer = fit_tokenizer("characters", [Block(letters, True)], settings, "document")
    words, family = PairVocabulary(tokenizer, tokenizer), catalog.find("translator", name)
    torch.manual_seed(1)
    network = family.build(family.Settings(**{"hidden": 32, "layers": 1, **given}), words)
    with torch.no_grad():
        for weight in network.parameters():
            weight += 0.4 * torch.randn_like(weight)
    network.fixed = True
    return Translator(network, words)


def sources(model, lengths):
    draw = np.random.default_rng(2)
    ids_BS = draw.integers(3, model.vocab_size, (len(lengths), max(lengths)))
    return Source(ids_BS, np.array(lengths))


def written(model, source, **asked):
    settings = DecodeSettings(**{"max_tokens": 10, "batch": 512, **asked})
    return collect(generate(model, [()] * len(source.lengths_B), settings, None, source))


@every_kind
@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_a_beam_as_wide_as_the_space_finds_what_exhaustive_search_finds(name, given, alpha):
    model, longest = translator(name, given, b"abc"), 3
    source = sources(model, [5])
    texts = [
        (*ids, last)
        for length in range(1, longest + 1)
        for ids in itertools.product((3, 4, 5), repeat=length - 1)
        for last in [END, *((3, 4, 5) if length == longest else [])]
    ]
    ids_BT, lengths_B = np.zeros((len(texts), longest), np.int64), np.array([len(text) for text in texts])
    for row, text in enumerate(texts):
        ids_BT[row, : len(text)] = text
    state = model.reorder(model.start(1, source), np.zeros(len(texts), np.int64))
    logp_B = model.score(ids_BT, lengths_B, state)[0].sum(dim=1).tolist()
    scored = {text: logp / ((5 + len(text)) / 6) ** alpha for text, logp in zip(texts, logp_B, strict=True)}
    best = sorted(scored, key=lambda text: -scored[text])[:10]
    found = written(
        model, source, decode="beam", beam_size=len(texts), n_best=10, max_tokens=longest,
        length_penalty=alpha,
    )  # fmt: skip
    assert [text.ids for text in found] == best
    assert [text.score for text in found] == pytest.approx([scored[text] for text in best], abs=1e-4)


@every_kind
def test_greedy_is_a_beam_of_one(name, given):
    model = translator(name, given, b"abcdefghijklmnop")
    source = sources(model, [7, 2, 5, 9, 1, 6])
    greedy = written(model, source, decode="greedy")
    beam = written(model, source, decode="beam", beam_size=1)
    assert [(text.ids, text.reason) for text in greedy] == [(text.ids, text.reason) for text in beam]
    assert [text.logprob for text in greedy] == pytest.approx([text.logprob for text in beam], abs=1e-4)


@every_kind
@pytest.mark.parametrize("beam", [1, 4])
def test_a_source_alone_is_translated_as_among_64(name, given, beam):
    model = translator(name, given, b"abcdefghijklmnop")
    lengths = [1 + (7 * row) % 13 for row in range(64)]
    source = sources(model, lengths)
    asked = {"decode": "greedy" if beam == 1 else "beam", "beam_size": beam, "max_tokens": 7}
    together = written(model, source, **asked)
    assert len({text.ids for text in together}) > 10
    for row in range(0, 64, 1 if beam == 1 else 4):
        alone = Source(source.ids_BS[row : row + 1, : lengths[row]], source.lengths_B[row : row + 1])
        assert written(model, alone, **asked)[0].ids == together[row].ids
