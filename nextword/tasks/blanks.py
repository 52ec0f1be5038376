"""Blanks in a text, filled by a model that sees both sides: what `predict` and `eval` do with such runs.

A blank is ``___`` (three underscores or more), ``[MASK]`` or ``<mask>``. A masked model fills each with one
token, and every blank from the text and the other blanks alone; a model of spans writes as much as it likes.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from nextword.core.contracts import BlankFiller, Filler, PieceTokenizer, Tokenizer
from nextword.core.errors import ConfigError, DataError
from nextword.core.events import Done, Event, Note, Stage
from nextword.core.task import Prediction, Predictor
from nextword.data.source import Source
from nextword.evaluation.lm import pseudo
from nextword.evaluation.lm.signature import version

if TYPE_CHECKING:
    from nextword.runs.saved import Trained

BLANK = re.compile(r"_{3,}|\[MASK\]|<mask>")
_CANDIDATES = 5  # of each blank


@dataclass(frozen=True)
class Blanked:
    """A text between its blanks, as ids; a space before a blank belongs to the token that fills it."""

    text: str
    parts: tuple[tuple[int, ...], ...]

    @property
    def blanks(self) -> int:
        """Return how many there are."""
        return len(self.parts) - 1

    def ids(self, marks: Sequence[int]) -> list[int]:
        """Return the ids with a mark for each blank."""
        found = list(self.parts[0])
        for mark, part in zip(marks, self.parts[1:], strict=True):
            found += [mark, *part]
        return found


def blanked(text: str, tokenizer: Tokenizer, number: int) -> Blanked:
    """Split a text at its blanks."""
    parts = BLANK.split(text)
    if len(parts) == 1:
        raise DataError(
            f"line {number} has no blank to fill; write ___ (three underscores) where a word is missing"
        )
    joins = isinstance(tokenizer, PieceTokenizer) and _spaces_begin(tokenizer)
    cut = [part[:-1] if joins and part.endswith(" ") else part for part in parts[:-1]]
    return Blanked(text, tuple(tuple(map(int, tokenizer.encode(part))) for part in [*cut, parts[-1]]))


def _spaces_begin(tokenizer: PieceTokenizer) -> bool:
    """Tell whether a space is a part of the token after it, as subwords have it."""
    ids = [int(index) for index in tokenizer.encode(" the the")]
    return any(len(tokenizer.data(index)) > 1 and tokenizer.data(index).startswith(b" ") for index in ids)


def filler(model: Filler, tokenizer: Tokenizer) -> Predictor:
    """Return what fills the blanks of lines."""
    if isinstance(model, BlankFiller):
        return OneToken(model, tokenizer)
    return Spans(model, tokenizer)


@dataclass(frozen=True)
class OneToken:
    """Fills every blank with a token, and names the most probable ones."""

    model: BlankFiller
    tokenizer: Tokenizer

    def predict(self, inputs: Iterable[str]) -> Iterator[Prediction]:
        """Yield one prediction for each line."""
        for number, text in enumerate(inputs, start=1):
            yield self._predict(blanked(text, self.tokenizer, number), number)

    def _predict(self, given: Blanked, number: int) -> Prediction:
        ids = np.array(given.ids([self.model.blank] * given.blanks), np.int64)
        _check_length(len(ids), self.model.context, number)
        is_blank = ids[None] == self.model.blank
        logp_NV = np.asarray(self.model.fill(ids[None], [len(ids)], is_blank), np.float64)
        best_NC = np.argsort(-logp_NV, axis=1)[:, :_CANDIDATES]
        blanks = [
            [
                {"text": _shown(self.tokenizer, int(index)), "probability": math.exp(logp_V[index])}
                for index in best_C
            ]
            for logp_V, best_C in zip(logp_NV, best_NC, strict=True)
        ]
        text = self.tokenizer.decode(given.ids(best_NC[:, 0].tolist()))
        return Prediction(text, {"text": text, "blanks": [{"candidates": each} for each in blanks]})


@dataclass(frozen=True)
class Spans:
    """Fills every blank with as many tokens as the model writes, the most probable one after the other."""

    model: Any  # a `models.spans.SpanModel`
    tokenizer: Tokenizer

    def predict(self, inputs: Iterable[str]) -> Iterator[Prediction]:
        """Yield one prediction for each line."""
        for number, text in enumerate(inputs, start=1):
            yield self._predict(blanked(text, self.tokenizer, number), number)

    def _predict(self, given: Blanked, number: int) -> Prediction:
        V, sentinels = self.model.vocab_size, self.model.sentinels
        if given.blanks > sentinels:
            raise DataError(
                f"line {number} has {given.blanks} blanks, and this run knows {sentinels} "
                "(model.spans.sentinels); use fewer"
            )
        left = given.ids([V + blank for blank in range(given.blanks)])
        _check_length(len(left) + 2 * given.blanks, self.model.context, number)
        spans = self.model.fill(left, given.blanks)
        whole = list(given.parts[0])
        for span, part in zip(spans, given.parts[1:], strict=True):
            whole += [*span.ids, *part]
        text = self.tokenizer.decode(whole)
        blanks = [
            {"text": self.tokenizer.decode(span.ids).strip(" "), "probability": math.exp(span.logprob)}
            for span in spans
        ]
        return Prediction(text, {"text": text, "blanks": blanks})


def _shown(tokenizer: Tokenizer, index: int) -> str:
    """Return a token as a word: without the space before it."""
    return tokenizer.decode([index]).strip(" ") or tokenizer.piece(index)


def _check_length(length: int, context: int, number: int) -> None:
    if length > context:
        raise DataError(
            f"line {number} has {length:,} tokens, and this run sees {context:,} at once (model.context); "
            "use a shorter text"
        )


@dataclass(frozen=True)
class SpanReport:
    """How well lost spans are written."""

    tokens: int  # of spans, marks and ends included
    span_nll: float  # nats per token of a span
    accuracy: float
    seconds: float
    signature: str

    def to_json(self) -> dict[str, Any]:
        """Return every number."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"nats per token of a span  {self.span_nll:.4f}\nmost probable token right  {self.accuracy:.1%}\n"
            f"tokens of spans  {self.tokens:,}\nseconds  {self.seconds:.2f}\nsignature  {self.signature}"
        )


def measure_blanks(run: Trained, files: Sequence[str], sets: Mapping[str, Any]) -> Iterator[Event]:
    """Measure files with a model that fills blanks; the last event holds the report."""
    if dynamic := [key for key in sets if key.startswith("dynamic.")]:
        raise ConfigError(
            f"'{dynamic[0]}' is for models that read from left to right, and this run {run.model.fills}; "
            "leave it out"
        )
    source = Source.for_reading(files, run.settings.data, sets)
    yield Stage("measure", source.size, "bytes")
    report: Any
    if isinstance(run.model, BlankFiller):
        report = pseudo.evaluate(run.model, run.vocabulary, source.blocks())
        if report.measured < report.tokens:
            yield Note(f"{report.measured:,} of {report.tokens:,} tokens are measured, evenly spread")
    else:
        report = _measured_spans(run, source)
    yield from (Note(message) for message in source.notes)
    yield Done(report)


def _measured_spans(run: Trained, source: Source) -> SpanReport:
    """Take spans out of a text, always the same ones, and predict them."""
    from nextword.tasks.networks import join
    from nextword.tasks.objectives.corrupted import make_held_out

    began = time.perf_counter()
    ids, documents, _, _ = join(run.vocabulary.encode_blocks(source.blocks()))
    rows = make_held_out(run.settings, ids, documents, run.vocabulary.vocab_size)
    if rows is None:
        raise DataError("the text is too short to take spans out of it; give a longer one")
    found = rows.measure(run.model.network)
    tokenizer = run.vocabulary
    signature = f"span|tok:{tokenizer.name}|ctx:{run.model.context}|nextword:{version()}"
    values = cast("dict[str, float]", found.values)
    return SpanReport(found.count, values["nll"], values["accuracy"], time.perf_counter() - began, signature)
