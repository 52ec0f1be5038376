"""One tokenizer for all models that share its name: trained once, kept beside the rows.

So their ids agree, their perplexities can be compared, they can be mixed, and no model's minutes go into it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

from nextword.comparison.entries import Entry
from nextword.comparison.setup import Setup
from nextword.core import catalog
from nextword.core.contracts import Cached
from nextword.core.errors import NextwordError
from nextword.core.events import Event, Stage
from nextword.data.encode import encode
from nextword.runs.settings import RunSettings
from nextword.system.disk import translate
from nextword.tasks.lm import Texts, limit_to_time
from nextword.text.tokenizers import fit_tokenizer, load_tokenizer
from nextword.training.clock import Clock


def shared(setup: Setup) -> Generator[Event, None, Setup]:
    """Train every tokenizer once, as a file; smoothings alone train their own, in their own time."""
    if setup.tune is None:
        return setup
    files: dict[str, str] = {}
    for entry in setup.entries:
        if entry.tokenizer not in files and entry.tokenizer in catalog.names("tokenizer"):
            yield Stage(f"train the tokenizer {entry.tokenizer}")
            files[entry.tokenizer] = str(_file(setup, entry))
    setup = replace(setup, tokenizers=files)
    for name, file in files.items():
        if isinstance(load_tokenizer(file), Cached):  # encode now, so that no model's time includes it
            first = next(entry for entry in setup.entries if entry.tokenizer == name)
            settings = with_file(setup, first)
            yield from encode(setup.train, settings.text, settings.data)
    return setup


def with_file(setup: Setup, entry: Entry) -> RunSettings:
    """Return the settings of an entry, its tokenizer being the shared file."""
    file = setup.tokenizers.get(entry.tokenizer, entry.tokenizer)
    text = entry.settings.text.model_copy(update={"tokenizer": file})
    return entry.settings.with_group("text", text)


def _file(setup: Setup, entry: Entry) -> Path:
    """Return the tokenizer of this name, trained now unless it exists."""
    settings, _ = limit_to_time(entry.settings, Texts(setup.train), Clock.minutes(setup.minutes).seconds)
    about = (settings.text.model_dump_json(), settings.data.model_dump_json(), setup.digest)
    digest = hashlib.sha256("\n".join(about).encode()).hexdigest()
    path = setup.out / "tokenizers" / f"{entry.tokenizer}-{digest[:12]}.json"
    try:
        load_tokenizer(path)
    except NextwordError:
        unit = None if settings.data.unit == "auto" else settings.data.unit
        setup.train.keep()
        tokenizer = fit_tokenizer(entry.tokenizer, setup.train.blocks(), settings.text, unit)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            tokenizer.save(str(path))
        except OSError as error:
            raise translate(error, path) from error
    return path
