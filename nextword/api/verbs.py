"""The verbs on files that need no more than a run: evaluate, compress, decompress."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from nextword.api.events import finish
from nextword.api.run import Run, load
from nextword.core import config
from nextword.core.disk import translate
from nextword.core.errors import DataError
from nextword.core.events import Done, Event, Note, Stage
from nextword.evaluate.perplexity import evaluate as measure
from nextword.evaluate.report import Report
from nextword.train.source import Source

ENDING = ".nwz"


def evaluate(run: Run | str | os.PathLike[str], *data: str | os.PathLike[str]) -> Report:
    """Measure a run on files."""
    found: Report = finish(evaluating(run, data))
    return found


def evaluating(
    run: Run | str | os.PathLike[str], data: Sequence[str | os.PathLike[str]], sets: Sequence[str] = ()
) -> Iterator[Event]:
    """`evaluate` with its progress; the last event holds the report."""
    opened = load(run)
    source = Source.for_reading(data, opened.settings.data, config.parse_sets(sets))
    yield Stage("measure", source.size, "bytes")
    report = measure(opened.model, opened.tokenizer, source.blocks())
    for message in source.notes:
        yield Note(message)
    if report.explanation:
        yield Note(report.explanation)
    yield Done(report)


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
