"""``eval``: measure a run on files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nextword.api.opened import Name, Opened, opened
from nextword.core import config
from nextword.core.errors import ConfigError
from nextword.core.events import Done, Event, Note, Stage, finish
from nextword.data.source import Source
from nextword.evaluation.lm.dynamic import DynamicStream, needs_network
from nextword.evaluation.lm.perplexity import evaluate as measure
from nextword.evaluation.lm.report import Report


def evaluate(
    run: Opened | Name,
    *data: Name,
    dynamic: str | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002 - as in `train`
) -> Report:
    """Measure a run on files; ``dynamic`` ("sgd" or "rms"): a neural model learns from what it has read.

    ``set`` takes settings of the groups ``data`` and ``dynamic``, as in ``{"dynamic.rate": 0.1}``.
    """
    found: Report = finish(evaluating(run, data, set or {}, dynamic))
    return found


def evaluating(
    run: Opened | Name,
    data: Sequence[Name],
    sets: Mapping[str, Any] | Sequence[str] = (),
    dynamic: str | None = None,
) -> Iterator[Event]:
    """`evaluate` with its progress; the last event holds the report. ``sets``: or ``key=value`` as typed."""
    given = dict(sets) if isinstance(sets, Mapping) else config.parse_sets(sets)
    found = opened(run)
    own = {key: value for key, value in given.items() if not key.startswith("dynamic.")}
    source = Source.for_reading(data, found.settings.data, own)
    stream = dynamic_stream(found, dynamic, {key: given[key] for key in given if key not in own})
    yield Stage("measure", source.size, "bytes")
    report = measure(found.model, found.tokenizer, source.blocks(), stream)
    for message in source.notes:
        yield Note(message)
    if report.explanation:
        yield Note(report.explanation)
    yield Done(report)


def dynamic_stream(run: Opened, rule: str | None, sets: Mapping[str, Any]) -> DynamicStream | None:
    """Make the stream of dynamic evaluation by this rule; None: the weights stay as they are."""
    if rule is None:
        if sets:
            raise ConfigError(
                f"'{next(iter(sets))}' has no effect without a rule; add --dynamic sgd or --dynamic rms"
            )
        return None
    needs_network(run.model)
    from nextword.mixtures.dynamic import RATES, DynamicSettings

    own = {"dynamic.rule": rule, "dynamic.rate": RATES.get(rule, 0.0)}
    made: Any = config.build({"dynamic": DynamicSettings}, own, sets)["dynamic"]
    stream = DynamicStream(run.model, made)
    if made.statistics:
        text = Source.for_reading([made.statistics], run.settings.data)
        stream.gather(run.tokenizer.encode_blocks(text.blocks()))
    return stream
