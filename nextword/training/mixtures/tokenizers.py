"""Choose a tokenizer if none was named: the one whose count models predict held-out text best.

A small text says more about its characters than about its subwords, most of which occur only a few times in
it. A count model of each takes seconds, and bits per byte compare them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nextword.core.contracts import Encoded
from nextword.core.events import Event, Note, Rows, Stage, recorded
from nextword.core.family import Budget, NetworkFamily
from nextword.data.encode import PackedText, encode
from nextword.data.source import Source
from nextword.runs import facts
from nextword.runs.saved import Trained
from nextword.runs.settings import RunSettings
from nextword.tasks.lm import PreparedText
from nextword.training.mixtures.weights import TuningText, log_probs
from nextword.training.order import Conditions


class TokenizerCandidate(NamedTuple):
    """A tokenizer that may be chosen, as settings, and the texts to encode with it."""

    settings: RunSettings
    source: Source
    valid: Source


class TriedTokenizer(NamedTuple):
    """A text encoded with one tokenizer, and the count models trained on it."""

    settings: RunSettings
    text: PackedText
    held_out: list[Encoded]
    parts: list[Trained]

    def bits_per_byte(self) -> float:
        """Return the bits per byte of the held-out text under the best of the count models."""
        held_out = TuningText.of(self.held_out)
        nlls = [
            -float(np.mean(each))
            for each in log_probs([part.model for part in self.parts], held_out, Conditions())
        ]
        return held_out.bits_per_byte(min(nlls))


def choose_tokenizer(
    candidates: Sequence[TokenizerCandidate], part_settings: Callable[[RunSettings, int], list[RunSettings]]
) -> Generator[Event, None, TriedTokenizer]:
    """Choose the tokenizer whose count models predict the held-out text best."""
    if len(candidates) > 1:
        candidates[0].source.keep()
    found = []
    for candidate in candidates:
        found.append((yield from _try_tokenizer(candidate, part_settings)))
    if len(found) == 1 or not found[0].parts:
        return found[0]
    bits = [each.bits_per_byte() for each in found]
    best = int(np.argmin(bits))
    each = ", ".join(f"{one.text.tokenizer.name} {value:.3f}" for one, value in zip(found, bits, strict=True))
    yield Note(
        f"auto chose the tokenizer '{found[best].text.tokenizer.name}': "
        f"held-out bits per byte of count models: {each}"
    )
    return found[best]


def _try_tokenizer(
    candidate: TokenizerCandidate, part_settings: Callable[[RunSettings, int], list[RunSettings]]
) -> Generator[Event, None, TriedTokenizer]:
    """Encode the text and train the count models among the parts."""
    text = yield from encode(candidate.source, candidate.settings.text, candidate.settings.data)
    settings = candidate.settings.with_tokenizer(text.tokenizer.name)
    held_out = list(text.tokenizer.encode_blocks(candidate.valid.blocks(), costs=True))
    parts = []
    for part in part_settings(settings, text.facts.bytes):
        if not isinstance(part.find_family(), NetworkFamily):
            yield Stage(f"{part.name}: train")
            parts.append((yield from train_count_model(part, text)))
    return TriedTokenizer(settings, text, held_out, parts)


def with_held_out(text: PackedText, held_out: Sequence[Encoded]) -> PackedText:
    """Append the held-out end to the text."""
    ids = np.concatenate([text.ids, *(np.asarray(piece.ids, text.ids.dtype) for piece in held_out)])
    sums = {
        name: getattr(text.facts, name) + sum(getattr(piece, name) for piece in held_out)
        for name in ("bytes", "words", "tokens", "sequences", "unknown")
    }
    return replace(text, ids=ids, facts=replace(text.facts, **sums))


def train_count_model(settings: RunSettings, text: PackedText) -> Generator[Event, None, Trained]:
    """Train a count model."""
    began, seed = time.perf_counter(), settings.train.seed
    metrics: Rows = []
    events = settings.find_task().fit(settings, PreparedText(text), Budget(seed))
    model = yield from recorded(events, metrics)
    about = facts.collect(seed, text.facts, time.perf_counter() - began)
    return Trained(settings, model, text.tokenizer, about, metrics)
