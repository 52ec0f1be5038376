"""``import``: make a run from another program's model file."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator

from nextword.api.arguments import checked
from nextword.api.opened import Name
from nextword.api.run import Run, load
from nextword.core.events import Done, Event, Stage, finish
from nextword.data.encode import DataFacts
from nextword.formats.arpa.files import ArpaModel, read_arpa
from nextword.ngram.model import NgramModel
from nextword.runs import facts, saved
from nextword.runs.saved import Trained
from nextword.runs.settings import plan
from nextword.store.names import default_name, mark_latest
from nextword.store.writing import check_target, new_run
from nextword.text.words import WordTokenizer


@checked
def import_(path: Name, out: Name | None = None, overwrite: bool = False) -> Run:
    """Make a run from an ARPA file and save it in ``out`` (default: under ``runs/``).

    >>> file = nextword.export("runs/tiny", "tiny.arpa")
    >>> nextword.import_(file, "runs/imported")
    <Run ngram over ... in runs/imported>
    """
    made: Run = finish(importing(path, out, overwrite=overwrite))
    return made


def importing(path: Name, out: Name | None = None, *, overwrite: bool = False) -> Iterator[Event]:
    """Run `import_` and yield its progress; the last event holds the run."""
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


def _trained(path: Name, found: ArpaModel, seconds: float) -> Trained:
    sums_to_one = abs(float(found.trie.levels[0].probs.sum(dtype="float64")) - 1) <= 0.01
    model = NgramModel(found.trie, "arpa", is_probability=sums_to_one)
    settings = plan("ngram", sets={"model.order": found.trie.order})
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    data = DataFacts((os.fspath(path),), digest, os.path.getsize(path))
    return Trained(settings, model, WordTokenizer(found.vocabulary), facts.collect(0, data, seconds))
