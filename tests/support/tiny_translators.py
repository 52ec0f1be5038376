"""Small encoder-decoders with random weights, and sources and targets for them."""

from __future__ import annotations

import numpy as np
import torch

from nextword.core import catalog
from nextword.core.contracts import Block, Source
from nextword.data.paired import PairVocabulary
from nextword.models.seq2seq import Translator
from nextword.text.settings import TextSettings
from nextword.text.tokenizers import fit_tokenizer


def vocabulary(joint: bool = True) -> PairVocabulary:
    made = [
        fit_tokenizer("characters", [Block(text, True)], TextSettings(tokenizer="characters"), "document")
        for text in (b"abcdefghijklm", b"abcdefghijklmnopq")
    ]
    return PairVocabulary(made[0] if not joint else made[1], made[1])


def model(name: str, given: dict, joint: bool = True) -> Translator:
    family, words = catalog.find("translator", name), vocabulary(joint)
    torch.manual_seed(3)
    network = family.build(family.Settings(**({"hidden": 32, "layers": 2} | given)), words)
    with torch.no_grad():
        for weight in network.parameters():
            weight += 0.1 * torch.randn_like(weight)
    return Translator(network, words)


def source(lengths: list[int], seed: int = 0) -> Source:
    ids_BS = np.random.default_rng(seed).integers(3, 15, (len(lengths), max(lengths)))
    return Source(ids_BS, np.array(lengths))


IDS, LENGTHS = np.random.default_rng(1).integers(3, 15, (3, 5)), np.array([5, 3, 0])
