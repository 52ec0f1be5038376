"""``filter`` and ``rescore``: lines chosen, and n-best lists put in order, by a run's scores."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import IO, Any, cast

from nextword.api.events import quietly
from nextword.api.run import Run, load
from nextword.core import config
from nextword.core.errors import ConfigError, DataError
from nextword.core.events import Event
from nextword.core.sizes import show_size
from nextword.data.files import read_bytes
from nextword.data.paths import resolve
from nextword.evaluation.lines import rescore as ordering
from nextword.evaluation.lines.filter import Filtered, FilterSettings, Scorer, filter_lines
from nextword.evaluation.lines.nbest import read_nbest, read_references

Name = str | os.PathLike[str]


def filter(  # noqa: A001 - the verb's name
    run: Run | Name, file: Name, out: Name, *, against: Run | Name | None = None, keep: str = "best"
) -> Filtered:
    """Copy the lines of a file that the rule keeps; a job that was stopped goes on where it was."""
    found: Filtered = quietly(filtering(run, os.fspath(file), os.fspath(out), against=against, keep=keep))
    return found


def filtering(
    run: Run | Name,
    file: str,
    out: str | IO[bytes] | None = None,
    *,
    against: Run | Name | None = None,
    keep: str = "best",
    sets: Sequence[str] = (),
) -> Iterator[Event]:
    """`filter` with its progress, to a file or a stream (standard output where none is given)."""
    given = {"filter.keep": keep} | config.parse_sets(sets)
    settings = cast(FilterSettings, config.build({"filter": FilterSettings}, given)["filter"])
    first = load(run)
    second = None if against is None else load(against)
    identity = first.fingerprint + ("" if second is None else second.fingerprint)
    pair = None if second is None else (second.model, second.tokenizer)
    source = resolve([file])
    if len(source) != 1:
        raise DataError(f"filter reads one file at a time, and this names {len(source)}", file)
    target = _output(source[0].path, sys.stdout.buffer if out is None else out)
    scorer = Scorer(first.model, first.tokenizer, pair, identity)
    yield from filter_lines(scorer, source[0].path, target, settings)


def _output(source: str, out: str | IO[bytes]) -> str | IO[bytes]:
    both = isinstance(out, str) and os.path.exists(out) and os.path.exists(source)
    if isinstance(out, str) and both and os.path.samefile(source, out):
        raise ConfigError(f"'{out}' is the text that is filtered; choose another --out")
    return out


def describe(done: Filtered) -> str:
    """One sentence about a finished filter."""
    share = done.kept / done.lines if done.lines else 0.0
    return (
        f"kept {done.kept:,} of {done.lines:,} lines ({share:.1%}), {show_size(done.kept_bytes)}, "
        f"in {done.seconds:.1f} s ({show_size(done.bytes / max(done.seconds, 1e-9))}/s)"
    )


def figures(done: Filtered) -> dict[str, Any]:
    """Everything `--json` prints."""
    return asdict(done)


@dataclass(frozen=True)
class Ordered:
    """An n-best list in its new order."""

    rescored: ordering.Rescored

    @property
    def lines(self) -> list[str]:
        """The list as it is written, in the format it came in."""
        return list(self.rescored.lines())

    @property
    def weights(self) -> tuple[float, ...]:
        """Of the given scores, the model's, and the number of words."""
        return self.rescored.weights

    def chunks(self) -> Iterator[bytes]:
        """The lines as bytes."""
        for line in self.rescored.lines():
            yield line.encode("utf-8", "surrogateescape") + b"\n"

    def describe(self) -> str:
        """One sentence about what was done."""
        tuned = self.rescored.tuned
        weights = ",".join(f"{weight:.4g}" for weight in self.weights)
        if tuned is None:
            return f"weights: {weights}"
        return (
            f"word error rate {tuned.before:.2%} before, {tuned.after:.2%} after, {tuned.best:.2%} at best "
            f"({tuned.utterances:,} utterances); weights: {weights}"
        )

    def figures(self) -> dict[str, Any]:
        """Everything `--json` prints."""
        tuned = self.rescored.tuned
        return {
            "weights": list(self.weights),
            "tuned": None if tuned is None else asdict(tuned),
            "lines": [line.rstrip("\n") for line in self.lines],
        }


def rescore(
    run: Run | Name, file: Name, *, weights: str | Sequence[float] | None = None, tune: Name | None = None
) -> Ordered:
    """Put an n-best list in a new order; ``tune`` names references to learn the weights from."""
    numbers = _numbers(weights) if isinstance(weights, str) else weights
    opened = load(run)
    nbest = read_nbest(_lines(file), _shown(file))
    references = None if tune is None else read_references(_lines(tune), _shown(tune))
    return Ordered(ordering.rescore(opened.model, opened.tokenizer, nbest, numbers, references))


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise ConfigError(f"'--weights' is {text!r}; write numbers with commas, as in 1,0.5,0") from error


def _lines(file: Name) -> Iterator[bytes]:
    """The lines of a file, unpacked where it is gzip; the last one needs no end."""
    rest = b""
    for source in resolve([file]):
        for piece in read_bytes(source):
            *lines, rest = (rest + piece).split(b"\n")
            yield from lines
        if rest:
            yield rest
            rest = b""


def _shown(file: Name) -> str:
    return "standard input" if os.fspath(file) == "-" else os.fspath(file)
