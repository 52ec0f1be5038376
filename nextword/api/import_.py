"""``import``: make a run from another program's model file."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Generator, Iterator, Mapping
from typing import Any

from nextword.api.arguments import checked
from nextword.api.opened import Name
from nextword.api.run import Run, load
from nextword.core.errors import ConfigError
from nextword.core.events import Done, Event, Stage, finish, recorded
from nextword.data.encode import DataFacts
from nextword.formats.arpa.files import ArpaModel, read_arpa
from nextword.ngram.model import NgramModel
from nextword.ngram.quantizing import at_end
from nextword.ngram.settings import NgramSettings
from nextword.runs import facts, saved
from nextword.runs.saved import Trained
from nextword.runs.settings import RunSettings, plan
from nextword.store.names import default_name, mark_latest
from nextword.store.writing import check_target, new_run
from nextword.text.vocab import Vocabulary
from nextword.text.words import WordTokenizer


@checked
def import_(
    path: Name,
    out: Name | None = None,
    overwrite: bool = False,
    set: Mapping[str, Any] | None = None,  # noqa: A002 - as in train
) -> Run:
    """Make a run from an ARPA file and save it in ``out`` (default: under ``runs/``).

    ``set={"model.bits": 8}`` stores each probability in 8 bits.

    >>> file = nextword.export("runs/tiny", "tiny.arpa")
    >>> nextword.import_(file, "runs/imported")
    <Run ngram over ... in runs/imported>
    """
    made: Run = finish(importing(path, out, overwrite=overwrite, sets=set))
    return made


def importing(
    path: Name, out: Name | None = None, *, overwrite: bool = False, sets: Mapping[str, Any] | None = None
) -> Iterator[Event]:
    """Run `import_` and yield its progress; the last event holds the run."""
    began = time.perf_counter()
    given = dict(sets or {})
    _check(given)
    plan("ngram", sets=given)  # a mistake in it ends here, before the file is read
    target = default_name("ngram", os.fspath(path)) if out is None else out
    check_target(target, overwrite)
    yield Stage("read")
    found = read_arpa(path)
    yield from found.notes
    settings = plan("ngram", sets={"model.order": found.trie.order, **given})
    assert isinstance(settings.model, NgramSettings)
    model = yield from _model(found, settings.model.bits)
    with new_run(target, overwrite=overwrite) as folder:
        saved.write(_trained(path, settings, model, found.vocabulary, began), folder)
    mark_latest(target)
    yield Done(load(target))


def _check(given: Mapping[str, Any]) -> None:
    """Refuse settings of training: what an ARPA file holds is fixed, only how it is stored is not."""
    for name in given:
        if name != "model.bits":
            raise ConfigError(
                f"'{name}' cannot be set when a model is imported; only 'model.bits' can, remove the other"
            )


def _model(found: ArpaModel, bits: int) -> Generator[Event, None, NgramModel]:
    """Return the model of the file, in few bits if so wanted."""
    sums_to_one = abs(float(found.trie.levels[0].probs.sum(dtype="float64")) - 1) <= 0.01
    model = NgramModel(found.trie, "arpa", is_probability=sums_to_one)
    if bits:
        model = yield from recorded(at_end([Done(model)], bits), [])
    return model


def _trained(
    path: Name, settings: RunSettings, model: NgramModel, words: Vocabulary, began: float
) -> Trained:
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    data = DataFacts((os.fspath(path),), digest, os.path.getsize(path))
    about = facts.collect(0, data, time.perf_counter() - began)
    return Trained(settings, model, WordTokenizer(words), about)
