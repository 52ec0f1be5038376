"""``predict``: labels, tags or translations of new inputs, by the task of a run."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

from nextword.api.arguments import checked
from nextword.api.beside import ALONE, Beside, changed, draft_of, names_in, shown
from nextword.api.opened import Name, Opened, opened
from nextword.core import catalog, config
from nextword.core.errors import ConfigError
from nextword.core.task import DEFAULT_OPTIONS, FilePredictor, Prediction, PredictOptions, Predictor
from nextword.data.lines import read_lines
from nextword.decode.settings import DecodeSettings
from nextword.decode.speculate import Draft
from nextword.tasks.translation import DECODING, SENTENCES

JSON = "jsonl"
_log = logging.getLogger("nextword")


@checked
def predict(
    run: Opened | Name,
    inputs: str | Iterable[str],
    *,
    format: str = "",  # noqa: A002 - as the option is called
    pretokenized: bool = False,
    decode: str | None = None,
    beam_size: int | None = None,
    n_best: int | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int | None = None,
    alignment: bool = False,
    split: str = "",
    beside: Name | Sequence[Name] | None = None,
    draft: Name | None = None,
    precision: Literal["fp32", "int8"] = "fp32",
    set: Mapping[str, Any] | None = None,  # noqa: A002 - as in `train`
) -> list[Prediction]:
    """Predict for one input or several, in order; a language model has `generate` instead.

    ``format`` is what the ``text`` of a prediction is written in; ``pretokenized``: words are what white
    space separates. A translation model takes the settings of `generate`, as in ``decode="greedy"`` or
    ``n_best=3``, also in ``set``; ``alignment`` adds where in the source each token looked, and
    ``split="sentences"`` translates each sentence of an input alone. ``beside``, ``draft`` and ``precision``
    are those of `generate`.

    >>> nextword.predict("runs/tiny", ["the cat sat"])
    Traceback (most recent call last):
    nextword.core.errors.ConfigError: ... nextword.generate(RUN, prompt=TEXT)
    """
    given = [inputs] if isinstance(inputs, str) else inputs
    decoding = {
        "decode": decode, "beam_size": beam_size, "n_best": n_best, "max_tokens": max_tokens,
        "temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed,
    }  # fmt: skip
    chosen = decoding_of({**{k: value for k, value in decoding.items() if value is not None}, **(set or {})})
    asked = Beside(names_in(beside), draft, precision)
    options = PredictOptions(format, pretokenized, chosen, alignment, split=split)
    return list(predicting(run, given, options, asked))


def decoding_of(
    asked: Mapping[str, Any], sets: Iterable[str] = (), defaults: Mapping[str, Any] = DECODING
) -> DecodeSettings | None:
    """Return how texts are written, if anything about it was asked for; ``sets`` are ``key=value``."""
    given = {**asked, **config.parse_sets(sets)}
    if not given:
        return None
    dotted = {f"decode.{key.removeprefix('decode.')}": value for key, value in given.items()}
    below = {f"decode.{key}": value for key, value in defaults.items()}
    if "decode.max_tokens" in dotted:
        below.pop("decode.max_ratio", None)
    if dotted.get("decode.n_best", 1) > below.get("decode.beam_size", 1):
        below["decode.beam_size"] = dotted["decode.n_best"]
    built = cast(DecodeSettings, config.build({"decode": DecodeSettings}, below, dotted)["decode"])
    catalog.find_path("decode", built.decode)
    return built.seeded()


def predicting(
    run: Opened | Name,
    inputs: Iterable[str],
    options: PredictOptions = DEFAULT_OPTIONS,
    asked: Beside = ALONE,
) -> Iterator[Prediction]:
    """Yield one prediction per input; some inputs are read ahead, so that batches have similar lengths."""
    return _predictor(run, options, asked).predict(inputs)


def _predictor(run: Opened | Name, options: PredictOptions, asked: Beside) -> Predictor:
    """Return what predicts, with what was asked to stand beside the run."""
    found = opened(run)
    if asked != ALONE and not found.settings.find_task().writes:
        noun = found.settings.find_task().noun
        raise ConfigError(
            f"'{found.place}' is a {noun}, which writes no text of its own; leave out --with, --draft and "
            "--precision"
        )
    found, notes = changed(found, asked)
    for note in notes:
        _log.warning(note)
    tokens = (options.decode or DecodeSettings()).draft_tokens
    return predictor_of(found, replace(options, draft=draft_of(found, asked, tokens)))


def predictor_of(run: Opened, options: PredictOptions) -> Predictor:
    """Return what predicts, if the task of the run allows these options."""
    task = run.settings.find_task()
    made: Predictor = task.predictor(run.trained, options)
    if options.format and options.format not in task.formats:
        raise ConfigError(
            f"'--format' is '{options.format}', and a {task.noun} writes one of: {', '.join(task.formats)}"
        )
    if options.decode is not None and not task.writes:
        raise ConfigError(
            f"'{run.place}' is a {task.noun}, which writes no text of its own; leave out what says how text "
            "is written, such as --decode"
        )
    if options.split not in ("", SENTENCES) or (options.split and not task.writes):
        said = f"only '{SENTENCES}' is known" if task.writes else f"a {task.noun} reads inputs as they are"
        raise ConfigError(f"'--split' is '{options.split}', and {said}; leave it out")
    if options.pretokenized and not task.splits_words:
        raise ConfigError(
            f"'--pretokenized' is for runs that split text into words, and '{run.place}' is a {task.noun}, "
            "which does not; leave it out"
        )
    return made


def written(
    run: Opened | Name, file: Name, options: PredictOptions = DEFAULT_OPTIONS, asked: Beside = ALONE
) -> Iterator[str]:
    """Yield what `nextword predict` writes for a file (``-``: standard input), piece by piece."""
    predictor = _predictor(run, options, asked)
    named = os.fspath(file)
    if isinstance(predictor, FilePredictor):
        found = predictor.predict_file(named)
        pieces = _as_json(found) if options.format == JSON else predictor.write(found)
    else:
        found = predictor.predict(read_lines(named))
        pieces = _as_json(found) if options.format == JSON else (f"{each.text}\n" for each in found)
    return _reported(pieces, getattr(getattr(predictor, "options", None), "draft", None))


def _reported(pieces: Iterator[str], draft: Draft | None) -> Iterator[str]:
    """Yield the pieces, then say how well a draft served."""
    yield from pieces
    if draft is not None:
        _log.warning(shown(draft))


def _as_json(found: Iterable[Prediction]) -> Iterator[str]:
    for each in found:
        yield json.dumps(dict(each.values), ensure_ascii=False, allow_nan=False) + "\n"
