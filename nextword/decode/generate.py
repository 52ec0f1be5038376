"""The only generation loop: read the prompt, then yield token by token.

p(w1 … wn) = Π p(wi | w1 … wi-1), used to generate: choose wi, read it, get the next distribution
[XMU "Recap: next token prediction and auto-regressive models"]. Greedy, sample and beam are ways to choose.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nextword.core.catalog import find
from nextword.core.contracts import (
    Aligner,
    Branching,
    LanguageModel,
    Preparable,
    Source,
    State,
    Tokenizer,
    start_beside,
)
from nextword.core.errors import ConfigError
from nextword.decode.choose import Chooser, GeneratedToken, Prompt, Watcher
from nextword.decode.limits import Limits, limits_of, stops_of
from nextword.decode.peaks import checked
from nextword.decode.sampling import Ints
from nextword.decode.settings import DecodeSettings
from nextword.decode.speculate import Draft, Speculation
from nextword.decode.text import TextStream
from nextword.models.distributions import Floats, as_numpy

__all__ = ["DecodeSettings", "Generated", "GeneratedToken", "collect", "generate"]


@dataclass(frozen=True)
class Generated:
    """One finished text."""

    row: int
    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    text: str
    reason: str
    score: float | None = None  # what beam search ranked it by

    @property
    def logprob(self) -> float:
        """log p of the whole text by the model."""
        return float(sum(self.logprobs))


def generate(
    model: LanguageModel,
    prompts: Sequence[Sequence[int]] = ((),),
    settings: DecodeSettings | None = None,
    tokenizer: Tokenizer | None = None,
    source: Any = None,
    draft: Draft | None = None,
) -> Iterator[GeneratedToken]:
    """Continue each prompt (ids without START); tokens come as they are chosen, rows interleaved.

    Text t of prompt i has row ``i * texts + t``, where `texts` is the number of samples (sample), of best
    hypotheses (beam, mbr) or 1 (greedy). With a tokenizer the tokens carry their text, cut before a stop
    text. A draft makes greedy and sample faster and counts how many of its tokens were kept.
    """
    settings = (settings or DecodeSettings()).seeded()
    way: type[Chooser] = find("decode", settings.decode)
    limits, stop = limits_of(settings, tokenizer), stops_of(settings, tokenizer)
    streams: dict[int, TextStream] = {}
    for each in (model,) if draft is None else (model, draft.model):
        if isinstance(each, Preparable):
            each.ready()
    if draft is not None:
        draft.check(model, settings)
    lengths = source_lengths(source, len(prompts))
    for jobs, places in _batches(prompts, lengths, settings, way):
        read = [prompts[place] for place in places]
        state = _read(model, read, source, places)
        if draft is None:
            chooser = way(settings, jobs, stop, tokenizer)
            if isinstance(model, Branching) and getattr(chooser, "branches", False):
                state = model.branch(state)
            tokens = _loop(model, chooser, limits, state)
        else:
            beside = _read(draft.model, read, source, places, is_beside=True)
            tokens = Speculation(model, draft, settings, limits, stop, jobs).run(state, beside)
        for token in tokens:
            if tokenizer is None:
                yield token
                continue
            if token.row not in streams:
                prompt = prompts[token.row // way.texts(settings)]
                streams[token.row] = TextStream(tokenizer, prompt, settings.stop)
            yield _with_text(token, streams)


def texts_and_rows(settings: DecodeSettings) -> tuple[int, int]:
    """Return how many texts come out for each prompt, and how many rows it takes meanwhile."""
    way: type[Chooser] = find("decode", settings.decode)
    texts = way.texts(settings)
    return texts, way.width(settings) or texts


def collect(tokens: Iterable[GeneratedToken]) -> list[Generated]:
    """Return all tokens as whole texts, in the order of their rows."""
    rows: dict[int, list[GeneratedToken]] = {}
    for token in tokens:
        rows.setdefault(token.row, []).append(token)
    return [
        Generated(
            row,
            tuple(token.id for token in found),
            tuple(token.logprob for token in found),
            "".join(token.text for token in found),
            found[-1].reason,
            found[-1].score,
        )
        for row, found in sorted(rows.items())
    ]


def _loop(model: LanguageModel, chooser: Chooser, limits: Limits, state: State) -> Iterator[GeneratedToken]:
    """Repeat distribution, limits, choice and step until every row has stopped."""
    logp_RV = checked(model.next(state))
    watcher = chooser if isinstance(chooser, Watcher) and chooser.watches else None
    while True:
        if watcher is not None:
            watcher.look(_attention(model, state))
        choice = chooser.choose(logp_RV, limits.applied(logp_RV, chooser.rows))
        yield from choice.tokens
        if not len(choice.ids):
            return
        if not np.array_equal(choice.parents, np.arange(len(logp_RV))):
            state = model.reorder(state, choice.parents)
        step, state = model.step(choice.ids, state)
        logp_RV = checked(step)


def _attention(model: LanguageModel, state: State) -> Floats:
    """Return where the next prediction of each row looks in its source."""
    if not isinstance(model, Aligner):
        raise ConfigError(
            "'decode.coverage_penalty' is above 0, but this model does not attend to a source; set it to 0"
        )
    return as_numpy(model.attention(state), np.float64)


def source_lengths(source: Any, count: int) -> list[int]:
    """Return how many tokens the source of each prompt has; 0 where there is none."""
    if not isinstance(source, Source):
        return [0] * count
    return [int(length) for length in as_numpy(source.lengths_B)]


def _batches(
    prompts: Sequence[Sequence[int]], lengths: list[int], settings: DecodeSettings, way: type[Chooser]
) -> Iterator[tuple[list[Prompt], list[int]]]:
    """Yield prompts in batches of a bounded number of rows, and the prompt that each row continues."""
    texts = way.texts(settings)
    width = way.width(settings)
    starts = list(range(0, len(prompts) * texts, texts if width else 1))
    size = max(1, settings.batch // max(1, width))
    for first in range(0, len(starts), size):
        rows = starts[first : first + size]
        places = [row // texts for row in rows]
        pairs = zip(rows, places, strict=True)
        yield [Prompt(row, tuple(map(int, prompts[i])), lengths[i]) for row, i in pairs], places


def _read(
    model: LanguageModel,
    prompts: Sequence[Sequence[int]],
    source: Any,
    places: list[int],
    is_beside: bool = False,
) -> State:
    """Return the state after the prompts: one parallel `score` of each, then copied to its rows.

    A model beside the one that writes need not read the source.
    """
    distinct = sorted(set(places))
    rows = np.array([distinct.index(place) for place in places], dtype=np.int64)
    prompts = [prompts[places.index(place)] for place in distinct]
    own = None if source is None else _sources(source, distinct)
    B = len(distinct)
    state = start_beside(model, B, own)[0] if is_beside else model.start(B, own)
    lengths = np.array([len(prompt) for prompt in prompts], dtype=np.int64)
    if lengths.any():
        ids: Ints = np.zeros((len(prompts), int(lengths.max())), dtype=np.int64)
        for row, prompt in enumerate(prompts):
            ids[row, : len(prompt)] = prompt
        state = model.score(ids, lengths, state)[1]
    return state if np.array_equal(rows, np.arange(len(prompts))) else model.reorder(state, rows)


def _sources(source: Any, places: list[int]) -> Any:
    """Return the sources of these prompts, none longer than the longest of them."""
    if not isinstance(source, Source):
        return [source[place] for place in places]
    lengths_B = source.lengths_B[places]
    return Source(source.ids_BS[places][:, : max(int(lengths_B.max()), 1)], lengths_B)


def _with_text(token: GeneratedToken, streams: dict[int, TextStream]) -> GeneratedToken:
    text = streams[token.row].push(token.id)
    if token.reason:
        text += streams.pop(token.row).flush()
    return GeneratedToken(token.row, token.id, token.logprob, text, token.reason, token.score)
