"""Which pieces a text is cut into, where nobody has said: count models of each cutting predict held-out text.

A small text says more about its letters than about its subwords, most of which it shows a few times only.
What a count model makes of each is known in seconds, and bits per byte compare them.
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
from nextword.training.mixtures.weights import HeldOut, log_probs
from nextword.training.order import Conditions


class Draft(NamedTuple):
    """A tokenizer that may be chosen, as settings, and the texts it would be used on."""

    settings: RunSettings
    source: Source
    valid: Source


class Cut(NamedTuple):
    """A text cut into pieces, and the count models of it."""

    settings: RunSettings
    text: PackedText
    held_out: list[Encoded]
    parts: list[Trained]

    def bits_per_byte(self) -> float:
        """What the best of the count models makes of the held-out text."""
        held_out = HeldOut.of(self.held_out)
        nlls = [
            -float(np.mean(each))
            for each in log_probs([part.model for part in self.parts], held_out, Conditions())
        ]
        return held_out.bits_per_byte(min(nlls))


def cut_best(
    drafts: Sequence[Draft], part_settings: Callable[[RunSettings, int], list[RunSettings]]
) -> Generator[Event, None, Cut]:
    """The cutting whose count models predict the held-out text best; the only one, where there is one."""
    if len(drafts) > 1:
        drafts[0].source.keep()
    found = []
    for draft in drafts:
        found.append((yield from _cut(draft, part_settings)))
    if len(found) == 1 or not found[0].parts:
        return found[0]
    bits = [each.bits_per_byte() for each in found]
    best = int(np.argmin(bits))
    each = ", ".join(f"{one.text.tokenizer.name} {value:.3f}" for one, value in zip(found, bits, strict=True))
    yield Note(
        f"auto chose the tokenizer '{found[best].text.tokenizer.name}': "
        f"bits per byte of held-out text under count models: {each}"
    )
    return found[best]


def _cut(
    draft: Draft, part_settings: Callable[[RunSettings, int], list[RunSettings]]
) -> Generator[Event, None, Cut]:
    """The text in pieces, and the count models among the parts."""
    text = yield from encode(draft.source, draft.settings.text, draft.settings.data)
    settings = draft.settings.with_tokenizer(text.tokenizer.name)
    held_out = list(text.tokenizer.encode_blocks(draft.valid.blocks(), costs=True))
    parts = []
    for part in part_settings(settings, text.facts.bytes):
        if not isinstance(part.find_family(), NetworkFamily):
            yield Stage(f"{part.name}: learn")
            parts.append((yield from count(part, text)))
    return Cut(settings, text, held_out, parts)


def with_held_out(text: PackedText, held_out: Sequence[Encoded]) -> PackedText:
    """The text with the end that was held out of it."""
    ids = np.concatenate([text.ids, *(np.asarray(piece.ids, text.ids.dtype) for piece in held_out)])
    sums = {
        name: getattr(text.facts, name) + sum(getattr(piece, name) for piece in held_out)
        for name in ("bytes", "words", "tokens", "sequences", "unknown")
    }
    return replace(text, ids=ids, facts=replace(text.facts, **sums))


def count(settings: RunSettings, text: PackedText) -> Generator[Event, None, Trained]:
    """A count model, trained."""
    began, seed = time.perf_counter(), settings.train.seed
    metrics: Rows = []
    events = settings.find_task().fit(settings, PreparedText(text), Budget(seed))
    model = yield from recorded(events, metrics)
    about = facts.collect(seed, text.facts, time.perf_counter() - began)
    return Trained(settings, model, text.tokenizer, about, metrics)
