"""``export``: write a run as another program's file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nextword.api.arguments import checked
from nextword.api.opened import Name, Opened, language_model, opened
from nextword.core.errors import ConfigError
from nextword.core.events import Done, Event, Stage, finish
from nextword.core.suggestions import unknown
from nextword.formats.arpa.files import write_arpa
from nextword.ngram.model import NgramModel
from nextword.text.words import WordTokenizer

if TYPE_CHECKING:
    from nextword.core.contracts import Tokenizer

FORMATS = ("arpa", "ctranslate2")


@checked
def export(run: Opened | Name, path: Name, to: str = "arpa") -> Path:
    """Write a run as another program's file; ``.gz`` compresses an ARPA file, CTranslate2 reads a folder.

    >>> nextword.export("runs/tiny", "tiny.arpa").name
    'tiny.arpa'
    """
    finish(exporting(run, to, path))
    return Path(path)


def exporting(run: Opened | Name, to: str, path: Name) -> Iterator[Event]:
    """Run `export` and yield its progress; the last event says what was written."""
    if to not in FORMATS:
        raise ConfigError(unknown("export format", to, FORMATS))
    if to == "ctranslate2":
        yield from _translator(opened(run), path)
        return
    found = language_model(run)
    if not isinstance(found.model, NgramModel):
        family = found.settings.family
        raise ConfigError(f"an ARPA file holds an n-gram model, and this run is of the family '{family}'")
    yield Stage("write")
    yield from write_arpa(path, found.model.trie, _words(found.tokenizer))
    size = os.path.getsize(path)
    yield Done({"path": os.fspath(path), "format": to, "bytes": size, "order": found.model.order,
                "ngrams": sum(found.model.trie.sizes)})  # fmt: skip


def _translator(run: Opened, path: Name) -> Iterator[Event]:
    """Write a Transformer encoder-decoder."""
    from nextword.formats.ctranslate2 import write_ctranslate2

    if run.settings.task != "translate" or run.settings.family != "transformer":
        raise ConfigError(
            f"CTranslate2 is for Transformer encoder-decoders, and this run is a '{run.settings.family}' of "
            f"the task '{run.settings.task}'; train one with --task translate --model transformer"
        )
    yield from write_ctranslate2(path, run.model, run.settings.model, run.trained.vocabulary)


def _words(tokenizer: Tokenizer) -> Any:
    """Return the words with the ids 3, 4, … as they stand in texts."""
    if isinstance(tokenizer, WordTokenizer):
        return tokenizer.vocab
    return [tokenizer.piece(index) for index in range(3, tokenizer.vocab_size)]
