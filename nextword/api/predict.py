"""``predict``: labels, tags or translations of new inputs, by the task of a run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator

from nextword.api.arguments import checked
from nextword.api.opened import Name, Opened, opened
from nextword.core.errors import ConfigError
from nextword.core.task import DEFAULT_OPTIONS, FilePredictor, Prediction, PredictOptions, Predictor
from nextword.data.lines import read_lines

JSON = "jsonl"


@checked
def predict(
    run: Opened | Name,
    inputs: str | Iterable[str],
    *,
    format: str = "",  # noqa: A002 - as the option is called
    pretokenized: bool = False,
) -> list[Prediction]:
    """Predict for one input or several, in order; a language model has `generate` instead.

    ``format`` is what the ``text`` of a prediction is written in; ``pretokenized``: words are what white
    space separates.

    >>> nextword.predict("runs/tiny", ["the cat sat"])
    Traceback (most recent call last):
    nextword.core.errors.ConfigError: ... nextword.generate(RUN, prompt=TEXT)
    """
    given = [inputs] if isinstance(inputs, str) else inputs
    return list(predicting(run, given, PredictOptions(format, pretokenized)))


def predicting(
    run: Opened | Name, inputs: Iterable[str], options: PredictOptions = DEFAULT_OPTIONS
) -> Iterator[Prediction]:
    """Yield one prediction per input; some inputs are read ahead, so that batches have similar lengths."""
    return predictor_of(opened(run), options).predict(inputs)


def predictor_of(run: Opened, options: PredictOptions) -> Predictor:
    """Return what predicts, if the task of the run allows these options."""
    task = run.settings.find_task()
    made: Predictor = task.predictor(run.trained, options)
    if options.format and options.format not in task.formats:
        raise ConfigError(
            f"'--format' is '{options.format}', and a {task.noun} writes one of: {', '.join(task.formats)}"
        )
    if options.pretokenized and not task.splits_words:
        raise ConfigError(
            f"'--pretokenized' is for runs that split text into words, and '{run.place}' is a {task.noun}, "
            "which does not; leave it out"
        )
    return made


def written(run: Opened | Name, file: Name, options: PredictOptions = DEFAULT_OPTIONS) -> Iterator[str]:
    """Yield what `nextword predict` writes for a file (``-``: standard input), piece by piece."""
    predictor = predictor_of(opened(run), options)
    named = os.fspath(file)
    if isinstance(predictor, FilePredictor):
        found = predictor.predict_file(named)
        return _as_json(found) if options.format == JSON else predictor.write(found)
    found = predictor.predict(read_lines(named))
    return _as_json(found) if options.format == JSON else (f"{each.text}\n" for each in found)


def _as_json(found: Iterable[Prediction]) -> Iterator[str]:
    for each in found:
        yield json.dumps(dict(each.values), ensure_ascii=False, allow_nan=False) + "\n"
