"""``tokenizer``: train, show and compare tokenizers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from nextword.api.arguments import checked
from nextword.core import catalog, config
from nextword.core.contracts import Tokenizer
from nextword.core.errors import ConfigError
from nextword.core.events import Done, Event, Note, Progress, Stage, finish
from nextword.data.corpora import DEFAULT
from nextword.data.settings import DataSettings
from nextword.data.source import Source
from nextword.store.names import resolve
from nextword.system.disk import explaining
from nextword.text.compare import measure
from nextword.text.settings import TextSettings
from nextword.text.tokenizers import check_tokenizer, fit_tokenizer, load_tokenizer, tokenizer_from_file

_SHOWN = 12


@checked
def train_tokenizer(
    data: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    name: str = "bpe",
    out: str | os.PathLike[str] | None = None,
    *,
    size: int = 0,
    unknown: Literal["spell", "literal"] = "spell",
    min_count: int = 1,
    max_vocab: int = 0,
    fit_bytes: int = 64_000_000,
    normalize: Literal["none", "nfc"] = "none",
    lowercase: bool = False,
    pattern: Literal["qwen2", "gpt2"] = "qwen2",
    set: Mapping[str, Any] | None = None,  # noqa: A002 - as in `train`
) -> Tokenizer:
    """Train a tokenizer on text; ``out`` saves it. The keywords are settings of the group ``text``.

    >>> tokenizer = nextword.train_tokenizer("corpus.txt", "characters", out="characters.json")
    >>> tokenizer.decode(tokenizer.encode("the cat"))
    'the cat'
    """
    names = [os.fspath(each) for each in ([data] if isinstance(data, (str, os.PathLike)) else data)]
    values = {
        "size": size, "unknown": unknown, "min_count": min_count, "max_vocab": max_vocab,
        "fit_bytes": fit_bytes, "normalize": normalize, "lowercase": lowercase,
        "pattern": pattern,
    }  # fmt: skip
    given = {f"text.{key}": value for key, value in values.items()} | dict(set or {})
    made: Tokenizer = finish(_fitting(names, name, given))
    if out is not None:
        _save(made, os.fspath(out))
    return made


def _save(tokenizer: Tokenizer, out: str) -> None:
    with explaining(Path(out)):
        tokenizer.save(out)


def training(data: Sequence[str], name: str, out: str, sets: Sequence[str] = ()) -> Iterator[Event]:
    """Train a tokenizer and write it; the last event says what was made."""
    for event in _fitting(data, name, config.parse_sets(sets)):
        if isinstance(event, Done):
            _save(event.result, out)
            yield Done({"path": out, **_facts(event.result)})
        else:
            yield event


def _fitting(data: Sequence[str], name: str, sets: Mapping[str, Any]) -> Iterator[Event]:
    check_tokenizer(name)
    text, settings, unit = _settings(sets)
    source = Source.for_training(data or (DEFAULT,), settings)
    yield Stage("train the tokenizer", source.size, "bytes")
    made = fit_tokenizer(name, source.blocks(), text, unit)
    yield from (Note(message) for message in source.notes)
    yield Done(made)


def comparing(data: Sequence[str], names: Sequence[str], sets: Sequence[str] = ()) -> Iterator[Event]:
    """Compare tokenizers on one text; the last event holds the rows of the table."""
    for name in names:
        check_tokenizer(name)
    text, settings, unit = _settings(config.parse_sets(sets))
    source = Source.for_training(data or (DEFAULT,), settings)
    source.keep()
    yield Stage("compare", len(names), "tokenizers")
    rows = []
    for done, name in enumerate(names, start=1):
        known = name in catalog.names("tokenizer")
        made = (
            fit_tokenizer(name, source.blocks(), text, unit)
            if known
            else tokenizer_from_file(name, text, unit)
        )
        row = measure(made, source.blocks(), name)
        rows.append(
            {
                "name": name,
                "vocabulary": row.vocab_size,
                "tokens": row.tokens,
                "tokens_per_word": row.tokens_per_word,
                "bytes_per_token": row.bytes_per_token,
                "unknown_rate": row.unknown_rate,
                "lossless": row.lossless,
            }
        )
        yield Progress(done)
    yield Done(rows)


def show(name: str, text: str = "") -> dict[str, Any]:
    """Describe a tokenizer, and show how it splits a text."""
    tokenizer = _open(name)
    values = _facts(tokenizer)
    if text:
        ids = [int(i) for i in tokenizer.encode(text)]
        values |= {"pieces": [tokenizer.piece(i) for i in ids], "ids": ids, "text": tokenizer.decode(ids)}
    else:
        some = range(3, min(3 + _SHOWN, tokenizer.vocab_size))
        values["first_pieces"] = [tokenizer.piece(i) for i in some]
    return values


def _open(name: str) -> Tokenizer:
    """Open a tokenizer file, the tokenizer of a run, or ``bytes``, which needs no training."""
    if os.path.isfile(name):
        return load_tokenizer(name)
    if name == "bytes":
        return fit_tokenizer(name, (), TextSettings())
    if name in catalog.names("tokenizer"):
        raise ConfigError(
            f"the tokenizer '{name}' must be trained before it can be shown; run: "
            f"nextword tokenizer train DATA --tokenizer {name}"
        )
    return load_tokenizer(resolve(name))


def _facts(tokenizer: Tokenizer) -> dict[str, Any]:
    return {
        "name": tokenizer.name,
        "vocabulary": tokenizer.vocab_size,
        "unit": tokenizer.unit,
        "lossless": tokenizer.lossless,
        "closed": tokenizer.closed,
    }


def _settings(sets: Mapping[str, Any]) -> tuple[TextSettings, DataSettings, Any]:
    built = config.build({"text": TextSettings, "data": DataSettings}, sets)
    text, data = built["text"], built["data"]
    assert isinstance(text, TextSettings)
    assert isinstance(data, DataSettings)
    return text, data, None if data.unit == "auto" else data.unit
