"""Small networks, count models and subjects that the tests of the probes share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from nextword.core import catalog
from nextword.core.contracts import END, START, Block
from nextword.evaluation.lm.surprise import by_word
from nextword.models.network import Network, NeuralLanguageModel
from nextword.ngram import estimation
from nextword.ngram.settings import NgramSettings
from nextword.probe.subject import Subject
from nextword.text.settings import TextSettings
from nextword.text.tokenizers import fit_tokenizer

torch.set_num_threads(1)
TEXT = 'the cat sat on "the mat" .\nthe dog (a big one) saw the cat .\nA dog ran and ran .\n' * 4
SMALL = {"layers": 2, "hidden": 8, "embedding": 6, "context": 24, "heads": 2}


def _settings(name: str, given: dict[str, Any]) -> Any:
    kind = catalog.find("model", name).Settings
    small = {key: value for key, value in SMALL.items() if key in kind.model_fields}
    return kind(**{**small, **given})


def make_network(name: str, vocab_size: int = 20, **given: Any) -> Network:
    """A network with random weights in float64, every part of it doing something."""
    torch.manual_seed(3)
    network: Network = catalog.find("model", name).build(_settings(name, given), vocab_size, False)
    network = network.double().eval()
    with torch.no_grad():
        for weight in network.parameters():
            weight += 0.15 * torch.randn_like(weight)
    return network


def make_subject(name: str, text: str | None = TEXT, tokenizer: str = "words", **given: Any) -> Subject:
    """A model of a small text, in float32 as runs are."""
    made = fit_tokenizer(
        tokenizer, [Block((text or TEXT).encode(), True)], TextSettings(tokenizer=tokenizer, size=300)
    )
    if name == "ngram":
        ids = np.concatenate([piece.ids for piece in made.encode_blocks([Block(TEXT.encode(), True)])])
        settings = NgramSettings(**{"order": 3, **given})
        model: Any = estimation.build(ids, made.vocab_size, settings)
        facts = {"tokens": int((ids != START).sum()), "settings": settings}
        return Subject("counts", model, made, text, 0, facts, by_word)
    network = make_network(name, made.vocab_size, **given).float()
    return Subject(name, NeuralLanguageModel(network), made, text, 0, None, by_word)


@pytest.fixture(scope="session")
def network() -> Callable[..., Network]:
    return make_network


@pytest.fixture(scope="session")
def subject() -> Callable[..., Subject]:
    return make_subject


@pytest.fixture(scope="session")
def ids_of() -> Callable[[int], np.ndarray]:
    """START and so many random words."""

    def make(count: int, vocab_size: int = 20) -> np.ndarray:
        words = np.random.default_rng(count).integers(END + 1, vocab_size, count - 1)
        return np.concatenate([[START], words])

    return make
