"""``predict``: labels, tags or translations of new inputs, by the task of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nextword.api.arguments import checked
from nextword.api.opened import Name, Opened, opened
from nextword.core.task import Prediction
from nextword.data.settings import DataSettings
from nextword.data.source import Source


@checked
def predict(run: Opened | Name, inputs: str | Iterable[str]) -> list[Prediction]:
    """Predict for one input or several, in order; a language model has `generate` instead.

    >>> nextword.predict("runs/tiny", ["the cat sat"])
    Traceback (most recent call last):
    nextword.core.errors.ConfigError: ... nextword.generate(RUN, prompt=TEXT)
    """
    given = [inputs] if isinstance(inputs, str) else inputs
    return list(predicting(run, given))


def predicting(run: Opened | Name, inputs: Iterable[str]) -> Iterator[Prediction]:
    """Yield one prediction per input, as soon as it is made."""
    found = opened(run)
    return found.settings.find_task().predictor(found.trained).predict(inputs)


def predict_file(run: Opened | Name, file: Name) -> Iterator[Prediction]:
    """Yield one prediction per line of a file (``-``: standard input)."""
    return predicting(run, lines_of(file))


def lines_of(file: Name) -> Iterator[str]:
    """Yield the lines of a file without their ends; a line may span blocks."""
    waiting = b""
    for block in Source.for_reading([file], DataSettings()).blocks():
        *lines, waiting = (waiting + block.data).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r").decode()
        if block.ends_document and waiting:
            yield waiting.decode()
            waiting = b""
    if waiting:
        yield waiting.decode()
