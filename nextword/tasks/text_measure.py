"""Measure files with a language model, as ``eval`` does: perplexity and bits per byte, with fair warnings."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from nextword.core import config
from nextword.core.contracts import Block, Filler, LanguageModel, NetworkModel
from nextword.core.display import LONG, about, show_size
from nextword.core.errors import ConfigError, NextwordError
from nextword.core.events import Done, Event, Note, Stage
from nextword.data.seen import SeenText
from nextword.data.settings import DataSettings
from nextword.data.source import Source
from nextword.evaluation.lm.perplexity import evaluate

if TYPE_CHECKING:
    from nextword.evaluation.lm.dynamic import DynamicStream
    from nextword.runs.saved import Trained

_BEGINNING = 16_000  # bytes that are timed before a long text is measured
_TIMED = 20  # the time is reported for texts this many times as long as their timed beginning


def measure(run: Trained, files: Sequence[str], sets: Mapping[str, Any]) -> Iterator[Event]:
    """Measure files; the last event holds the report. Keys ``dynamic.…`` ask for dynamic evaluation."""
    if isinstance(run.model, Filler):
        from nextword.tasks.blanks import measure_blanks

        yield from measure_blanks(run, files, sets)
        return
    dynamic = {key: value for key, value in sets.items() if key.startswith("dynamic.")}
    data = cast(DataSettings, run.settings.data)
    source = Source.for_reading(files, data, {key: sets[key] for key in sets if key not in dynamic})
    stream = _dynamic_stream(run, dynamic) if dynamic else None
    if stream is None:
        yield from _announce(run, source)
    yield Stage("measure", source.size, "bytes")
    seen = SeenText(run.facts.data)
    report = evaluate(run.model, run.vocabulary, seen.watch(source.blocks()), stream)
    report = replace(report, training_text=_seen(seen, source, data))
    yield from (Note(message) for message in source.notes)
    yield Done(report)  # it shows its explanation itself


def _announce(run: Trained, source: Source) -> Iterator[Event]:
    """Say how long measuring a long text takes, by timing its beginning; a count model is quick."""
    is_slow = isinstance(run.model, NetworkModel)
    if not is_slow or source.size is None or source.size < _TIMED * _BEGINNING:
        return
    first = next(iter(source.blocks()), None)
    head = b"" if first is None else first.data[:_BEGINNING]
    began = time.perf_counter()
    try:
        evaluate(cast(LanguageModel, run.model), run.vocabulary, [Block(head, True, "its beginning")])
    except NextwordError:
        return  # it is reported with its place when the text is measured
    seconds = (time.perf_counter() - began) * source.size / max(1, len(head))
    if seconds > LONG:
        yield Note(f"measuring {show_size(source.size)} takes {about(seconds)}")


def _dynamic_stream(run: Trained, sets: Mapping[str, Any]) -> DynamicStream:
    """Make the stream of dynamic evaluation, in which a copy of the model is trained on scored text."""
    from nextword.evaluation.lm.dynamic import DynamicStream, needs_network

    if "dynamic.rule" not in sets:
        raise ConfigError(
            f"'{next(iter(sets))}' has no effect without a rule; add --dynamic sgd or --dynamic rms"
        )
    needs_network(run.model)
    from nextword.mixtures.dynamic import RATES, DynamicSettings

    rate = {"dynamic.rate": RATES.get(sets["dynamic.rule"], 0.0)}
    made: Any = config.build({"dynamic": DynamicSettings}, rate, sets)["dynamic"]
    stream = DynamicStream(run.model, made)
    if made.statistics:
        text = Source.for_reading([made.statistics], run.settings.data)
        stream.gather(run.tokenizer.encode_blocks(text.blocks()))
    return stream


def _seen(seen: SeenText, source: Source, data: DataSettings) -> str | None:
    """Say what a measured text has in common with the training text, if anything."""
    if seen.begins_the_text:
        return "the text begins with the one that this model was trained on"
    both = seen.shared_file(source, data)
    return None if both is None else f"{both} is a part of what this model was trained on"
