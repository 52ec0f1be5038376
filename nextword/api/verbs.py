"""The verbs on files that need no more than a run: evaluate, compress, decompress."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nextword.api.events import finish
from nextword.api.run import Run, load
from nextword.core import config
from nextword.core.errors import ConfigError, DataError
from nextword.core.events import Done, Event, Note, Stage
from nextword.data.source import Source
from nextword.evaluation.lm.dynamic import DynamicStream, needs_network
from nextword.evaluation.lm.perplexity import evaluate as measure
from nextword.evaluation.lm.report import Report
from nextword.store.disk import translate

ENDING = ".nwz"


def evaluate(
    run: Run | str | os.PathLike[str],
    *data: str | os.PathLike[str],
    dynamic: str | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002 - as in `train`
) -> Report:
    """Measure a run on files; ``dynamic`` ("sgd" or "rms"): a neural model learns from what it has read.

    ``set`` takes settings of the groups ``data`` and ``dynamic``, as in ``{"dynamic.rate": 0.1}``.
    """
    found: Report = finish(measuring(run, data, dict(set or {}), dynamic))
    return found


def evaluating(
    run: Run | str | os.PathLike[str],
    data: Sequence[str | os.PathLike[str]],
    sets: Sequence[str] = (),
    dynamic: str | None = None,
) -> Iterator[Event]:
    """`evaluate` with its progress; the last event holds the report."""
    return measuring(run, data, config.parse_sets(sets), dynamic)


def measuring(
    run: Run | str | os.PathLike[str],
    data: Sequence[str | os.PathLike[str]],
    sets: Mapping[str, Any],
    dynamic: str | None,
) -> Iterator[Event]:
    """`evaluating` with settings that are parsed already."""
    opened = load(run)
    own = {key: value for key, value in sets.items() if not key.startswith("dynamic.")}
    source = Source.for_reading(data, opened.settings.data, own)
    stream = dynamic_stream(opened, dynamic, {key: sets[key] for key in sets if key not in own})
    yield Stage("measure", source.size, "bytes")
    report = measure(opened.model, opened.tokenizer, source.blocks(), stream)
    for message in source.notes:
        yield Note(message)
    if report.explanation:
        yield Note(report.explanation)
    yield Done(report)


def dynamic_stream(run: Run, rule: str | None, sets: Mapping[str, Any]) -> DynamicStream | None:
    """A stream that adapts by this rule; its settings are checked, and a text for its statistics is read."""
    if rule is None:
        if sets:
            raise ConfigError(
                f"'{next(iter(sets))}' is set, and no rule is; add --dynamic sgd or --dynamic rms"
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


def compress(run: Run | str | os.PathLike[str], data: bytes) -> bytes:
    """Bytes coded with a run."""
    return load(run).compress(data)


def decompress(run: Run | str | os.PathLike[str], data: bytes) -> bytes:
    """What `compress` was given."""
    return load(run).decompress(data)


def compress_file(run: Run | str, file: str, out: str | None = None) -> dict[str, Any]:
    """Code a file; the new one is ``FILE.nwz`` unless it is named."""
    opened = load(run)
    data = _read(file)
    coded = opened.compress(data)
    path = _write(out or file + ENDING, coded)
    rate = 8 * len(coded) / len(data) if data else 0.0
    return {"path": path, "file": file, "bytes": len(data), "compressed": len(coded), "bits_per_byte": rate}


def decompress_file(run: Run | str, file: str, out: str | None = None) -> dict[str, Any]:
    """Give a file back; it loses the ending ``.nwz`` unless it is named."""
    opened = load(run)
    coded = _read(file)
    target = out or (file.removesuffix(ENDING) if file.endswith(ENDING) else file + ".out")
    data = opened.decompress(coded, file)
    return {"path": _write(target, data), "file": file, "bytes": len(data), "compressed": len(coded)}


def _read(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise DataError(f"the file cannot be read: {error.strerror}", file) from error


def _write(path: str, data: bytes) -> str:
    """Whole or not at all: a neighbour is written and takes the place."""
    target = Path(path)
    temporary = target.with_name(f".{target.name}.new-{os.getpid()}")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise translate(error, target) from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return path
