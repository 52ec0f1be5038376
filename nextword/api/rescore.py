"""``rescore``: reorder n-best lists by a run's scores."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from nextword.api.arguments import checked
from nextword.api.opened import Name, Opened, language_model
from nextword.core.errors import ConfigError
from nextword.data.paths import read_bytes, resolve
from nextword.evaluation.lines import rescore as ordering
from nextword.evaluation.lines.nbest import read_nbest, read_references
from nextword.evaluation.lines.scores import NO_END, counts_end


@dataclass(frozen=True)
class Reordered:
    """An n-best list in its new order."""

    rescored: ordering.Rescored
    notes: tuple[str, ...] = ()  # what is left out of the model's scores

    def __repr__(self) -> str:
        return f"<Reordered: {len(self.lines):,} lines, {self.describe()}>"

    @property
    def lines(self) -> list[str]:
        """The list as it is written, in the format of the input."""
        return list(self.rescored.lines())

    @property
    def weights(self) -> tuple[float, ...]:
        """The weights of the given scores, of the model's, and of the number of words."""
        return self.rescored.weights

    def chunks(self) -> Iterator[bytes]:
        """Yield the lines as bytes."""
        for line in self.rescored.lines():
            yield line.encode("utf-8", "surrogateescape") + b"\n"

    def describe(self) -> str:
        """Say in one sentence what was done."""
        tuned = self.rescored.tuned
        weights = ",".join(f"{weight:.4g}" for weight in self.weights)
        if tuned is None:
            return f"weights: {weights}"
        return (
            f"word error rate {tuned.before:.2%} before, {tuned.after:.2%} after, {tuned.best:.2%} at best "
            f"({tuned.utterances:,} utterances); weights: {weights}"
        )

    def figures(self) -> dict[str, Any]:
        """Collect everything `--json` prints."""
        tuned = self.rescored.tuned
        return {
            "weights": list(self.weights),
            "tuned": None if tuned is None else asdict(tuned),
            "lines": [line.rstrip("\n") for line in self.lines],
        }


@checked
def rescore(
    run: Opened | Name, file: Name, *, weights: str | Sequence[float] | None = None, tune: Name | None = None
) -> Reordered:
    """Reorder n-best lists; ``tune`` names a file of references to tune the weights on.

    >>> nextword.rescore("runs/tiny", "nbest.tsv", weights=[0, 1]).lines[0].split("\\t")[-1]
    'the cat sat on the mat'
    """
    return rescored(run, file, weights, tune)


def rescored(
    run: Opened | Name, file: Name, weights: str | Sequence[float] | None = None, tune: Name | None = None
) -> Reordered:
    """Do what `rescore` does, with errors as the command line spells them."""
    numbers = _numbers(weights) if isinstance(weights, str) else weights
    found = language_model(run)
    nbest = read_nbest(_lines(file), _shown(file))
    references = None if tune is None else read_references(_lines(tune), _shown(tune))
    rescored = ordering.rescore(found.model, found.tokenizer, nbest, numbers, references)
    return Reordered(rescored, () if counts_end(found.tokenizer) else (NO_END,))


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise ConfigError(f"'--weights' is {text!r}; write numbers with commas, as in 1,0.5,0") from error


def _lines(file: Name) -> Iterator[bytes]:
    """Yield the lines of a file, decompressed if it is gzip; the last one needs no newline."""
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
