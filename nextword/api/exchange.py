"""``export`` and ``import``: runs to and from other programs' files."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nextword.api.events import finish
from nextword.api.run import Run, load
from nextword.core import catalog
from nextword.core.errors import ConfigError
from nextword.core.events import Done, Event, Stage
from nextword.data.encode import DataFacts
from nextword.formats.arpa.files import ArpaModel, read_arpa, write_arpa
from nextword.ngram.model import NgramModel
from nextword.runs import facts, saved
from nextword.runs.saved import Trained
from nextword.runs.settings import plan
from nextword.store.names import default_name, mark_latest
from nextword.store.writing import check_target, new_run
from nextword.text.words import WordTokenizer

if TYPE_CHECKING:
    from nextword.core.contracts import Tokenizer

FORMATS = ("arpa",)


def export(run: Run | str | os.PathLike[str], path: str | os.PathLike[str], to: str = "arpa") -> Path:
    """Write a run as another program's file; ``.gz`` compresses it."""
    finish(exporting(run, to, path))
    return Path(path)


def import_(
    path: str | os.PathLike[str], out: str | os.PathLike[str] | None = None, overwrite: bool = False
) -> Run:
    """A run from an ARPA file; saved in ``out`` (default: under ``runs/``)."""
    made: Run = finish(importing(path, out, overwrite=overwrite))
    return made


def exporting(run: Run | str | os.PathLike[str], to: str, path: str | os.PathLike[str]) -> Iterator[Event]:
    """`export` with its progress; the last event says what was written."""
    if to not in FORMATS:
        raise ConfigError(catalog.unknown("export format", to, FORMATS))
    opened = load(run)
    if not isinstance(opened.model, NgramModel):
        family = opened.settings.family
        raise ConfigError(f"an ARPA file holds an n-gram model, and this run is of the family '{family}'")
    yield Stage("write")
    yield from write_arpa(path, opened.model.trie, _words(opened.tokenizer))
    size = os.path.getsize(path)
    yield Done({"path": os.fspath(path), "format": to, "bytes": size, "order": opened.model.order,
                "ngrams": sum(opened.model.trie.sizes)})  # fmt: skip


def importing(
    path: str | os.PathLike[str], out: str | os.PathLike[str] | None = None, *, overwrite: bool = False
) -> Iterator[Event]:
    """`import_` with its progress; the last event holds the run."""
    began = time.perf_counter()
    target = default_name("ngram", os.fspath(path)) if out is None else out
    check_target(target, overwrite)
    yield Stage("read")
    found = read_arpa(path)
    yield from found.notes
    with new_run(target, overwrite=overwrite) as folder:
        saved.write(_trained(path, found, time.perf_counter() - began), folder)
    mark_latest(target)
    yield Done(load(target))


def open_arpa(path: str | os.PathLike[str]) -> Run:
    """An ARPA file as a run in memory."""
    began = time.perf_counter()
    return Run(_trained(path, read_arpa(path), time.perf_counter() - began))


def _trained(path: str | os.PathLike[str], found: ArpaModel, seconds: float) -> Trained:
    sums_to_one = abs(float(found.trie.levels[0].probs.sum(dtype="float64")) - 1) <= 0.01
    model = NgramModel(found.trie, "arpa", is_probability=sums_to_one)
    settings = plan("ngram", sets={"model.order": found.trie.order})
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    told = facts.collect(0, DataFacts((os.fspath(path),), digest, os.path.getsize(path)), seconds)
    return Trained(settings, model, WordTokenizer(found.vocabulary), told)


def _words(tokenizer: Tokenizer) -> Any:
    """The words with the ids 3, 4, … as they stand in texts."""
    if isinstance(tokenizer, WordTokenizer):
        return tokenizer.vocab
    return [tokenizer.piece(index) for index in range(3, tokenizer.vocab_size)]
