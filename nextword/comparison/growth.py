"""Order by order: unseen n-grams, bytes and perplexity of the compared n-gram models.

[XMU "Main weaknesses of n-gram models"] Kept as JSON beside the rows, since it takes as long as they do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from nextword.comparison.entries import Entry
from nextword.comparison.rows import finite, key_of, read_json, write_json
from nextword.comparison.setup import Setup
from nextword.comparison.tokenizers import with_file
from nextword.core.events import Event, Note, Progress, Stage
from nextword.data.encode import PackedText, encode
from nextword.evaluation.lm import orders
from nextword.evaluation.lm.orders import OrderFacts
from nextword.evaluation.lm.signature import version
from nextword.ngram import estimation
from nextword.ngram.family import is_closed
from nextword.ngram.settings import NgramSettings
from nextword.runs.settings import RunSettings

Array = np.ndarray[Any, np.dtype[Any]]
MOST = 3_000_000  # ids of the training text that are counted again for these pictures
ORDERS = 5


@dataclass(frozen=True)
class Growth:
    """Costs and benefits of a longer n; perplexities by model, None where one is infinite."""

    facts: list[OrderFacts]
    perplexities: dict[str, list[float | None]]
    text_bytes: int
    tokens: int
    is_part: bool  # only the beginning of the training text was counted


def growth(setup: Setup) -> Generator[Event, None, Growth | None]:
    """Measure what was not measured before; None where no n-gram model is compared."""
    entries = _ngrams(setup)
    if not entries:
        return None
    most = max(ORDERS, *(entry.settings.model.order for entry in entries))  # type: ignore[attr-defined]
    path = setup.out / "rows" / ".orders.json"
    store = _Store(read_json(path), setup.digest + entries[0].tokenizer, most)
    missing = [entry.settings for entry in entries if store.find(entry.settings) is None]
    if missing or store.text is None:
        settings = with_file(setup, entries[0])
        text = yield from encode(setup.train, settings.text, settings.data)
        yield from _measure(store, missing, text, setup)
        write_json(path, store.values)
    found = store.text
    assert found is not None
    if found["is_part"]:
        yield Note(f"the plots by order cover the first {found['tokens']:,} tokens of the training text")
    facts = [OrderFacts(**each) for each in found["facts"]]
    perplexities = {entry.name: store.find(entry.settings) or [] for entry in entries}
    return Growth(facts, perplexities, found["bytes"], found["tokens"], found["is_part"])


def _ngrams(setup: Setup) -> list[Entry]:
    """Return the n-gram models of the first tokenizer; the pictures are of one text cut in one way."""
    found = [entry for entry in setup.entries if isinstance(entry.settings.model, NgramSettings)]
    return [entry for entry in found if entry.tokenizer == found[0].tokenizer]


class _Store:
    """What was measured before, each result under the key of what it depends on."""

    def __init__(self, values: Any, digest: str, most: int) -> None:
        self.values: dict[str, Any] = values if isinstance(values, dict) else {}
        self.digest, self.most = digest, most

    def key(self, entry: RunSettings | None = None) -> str:
        """Make the key of a model's perplexities, or of the facts of the text."""
        summary = key_of(entry, self.digest) if entry else self.digest + version()
        return hashlib.sha256(f"{summary} {self.most} {MOST}".encode()).hexdigest()

    def find(self, entry: RunSettings) -> list[float | None] | None:
        """Return the perplexities of a model by order."""
        found = self.values.get(self.key(entry))
        return found if isinstance(found, list) else None

    @property
    def text(self) -> dict[str, Any] | None:
        """The facts of the text."""
        found = self.values.get(self.key())
        return found if isinstance(found, dict) else None


def _measure(
    store: _Store, entries: list[RunSettings], text: PackedText, setup: Setup
) -> Generator[Event, None, None]:
    ids = orders.sample(np.asarray(text.ids), MOST)
    held = orders.sample(_held(text, setup))
    size = text.tokenizer.vocab_size
    yield Stage("unseen n-grams and bytes, order by order")
    facts = [asdict(each) for each in orders.look(ids, held, size, store.most)]
    share = len(ids) / max(1, len(text.ids))
    store.values[store.key()] = {
        "facts": facts, "bytes": round(text.facts.bytes * share), "tokens": len(ids), "is_part": share < 1,
    }  # fmt: skip
    yield Stage("perplexity, order by order", len(entries) * store.most, "models")
    done = 0
    for entry in entries:
        found: list[float | None] = []
        for n in range(1, store.most + 1):
            settings = entry.model.model_copy(update={"order": n})
            assert isinstance(settings, NgramSettings)
            model = estimation.build(ids, size, settings, is_closed(text.tokenizer, settings))
            found.append(finite(orders.measure(model, held).perplexity))
            done += 1
            yield Progress(done)
        store.values[store.key(entry)] = found


def _held(text: PackedText, setup: Setup) -> Array:
    found: list[Array] = []
    for piece in text.tokenizer.encode_blocks(setup.held.blocks()):
        found.append(np.asarray(piece.ids))
        if sum(map(len, found)) > orders.MOST_HELD:
            break
    return np.concatenate(found)
