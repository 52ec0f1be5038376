"""One training of a bench: a row, a seed, its steps; the text is encoded once for all of them."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from nextword.comparison.bench.setup import BenchSetup
from nextword.comparison.entries import Entry
from nextword.comparison.tokenizers import with_file
from nextword.core.errors import TrainingError
from nextword.core.events import Event, Measure, Note, Stage, Step, Valid
from nextword.core.task import Preparation
from nextword.runs import facts, saved
from nextword.runs.saved import Trained
from nextword.runs.settings import RunSettings, changed
from nextword.store.checkpoints import Checkpoint, find_last
from nextword.store.writing import new_run
from nextword.tasks.lm import PreparedText, Texts
from nextword.training.checkpointing import BEGUN, Checkpointer
from nextword.training.fit import train_network
from nextword.training.order import Conditions

RUNS = "runs"  # the folder of the trained models
EARLY = 8  # the early loss is that after this part of the steps, as in the table
_MEASURED = 200  # tokens trained on for each token of the text for choices that is measured
_FEWEST, _MOST = 2_000, 50_000  # tokens measured each time


@dataclass(frozen=True)
class Text:
    """The training text as ids, and the text for choices."""

    prepared: PreparedText

    @property
    def vocab_size(self) -> int:
        """The size of the vocabulary."""
        return self.prepared.vocabulary.vocab_size


def prepare(setup: BenchSetup) -> Generator[Event, None, Text]:
    """Encode the text once for all rows, which share the tokenizer."""
    settings = with_file(setup.setup, setup.setup.entries[0])
    texts = Texts(setup.setup.train, setup.setup.tune)
    how = Preparation(None, None, None, True, None)
    _, prepared = yield from settings.find_task().prepare(texts, settings, how)
    text = cast(PreparedText, prepared)
    return Text(replace(text, encoded=list(text.encoded or ())))


def tokens_of(settings: RunSettings) -> int:
    """Return the tokens of one step."""
    train, model = _any(settings.train), _any(settings.model)
    return int(train.batch * train.accumulate * length_of(train, model))


def length_of(train: Any, model: Any) -> int:
    """Return the positions of a row of a batch."""
    return int(train.length or getattr(model, "context", 64))


def with_budget(settings: RunSettings, steps: int, rate: float, early: bool = True) -> RunSettings:
    """Return settings that train for this many steps; ``early``: measure also on the way."""
    measured = max(_FEWEST, min(_MOST, steps * tokens_of(settings) // _MEASURED))
    return changed(
        settings,
        {
            "train.steps": steps,
            "train.rate": rate,
            "train.valid_every": -(-steps // EARLY) if early else steps,
            "train.valid_tokens": measured,
            "train.log_every": max(1, steps // 50),
        },
    )


@dataclass(frozen=True)
class Learned:
    """What came out of a training: the model, and what was measured on the way."""

    settings: RunSettings
    model: Any
    facts: dict[str, Any]
    metrics: list[dict[str, Any]]
    seconds: float  # by the clock

    @property
    def curve(self) -> list[tuple[float, int, float, float]]:
        """Seconds, tokens, nats per token and bits per byte of the text for choices at each measurement."""
        a, b, c, d = names = ("seconds", "tokens", "valid_nll", "valid_bits_per_byte")
        rows = [row for row in self.metrics if all(row.get(name) is not None for name in names)]
        return [(float(row[a]), int(row[b]), float(row[c]), float(row[d])) for row in rows]

    @property
    def early(self) -> float | None:
        """The loss of the text for choices after about an eighth of the steps."""
        wanted = int(self.facts["tokens"]) / EARLY
        return min(self.curve, key=lambda each: abs(each[1] - wanted))[2] if self.curve else None

    @property
    def loss(self) -> float | None:
        """The last loss of the text for choices, in nats per token."""
        return self.curve[-1][2] if self.curve else None


def learn(
    settings: RunSettings, text: Text, name: str, conditions: Conditions | None = None
) -> Generator[Event, None, Learned]:
    """Train a network; notes that every run would repeat are left out."""
    metrics: list[dict[str, Any]] = []
    began = time.perf_counter()
    events = train_network(settings, text.prepared, conditions or Conditions(), metrics)
    while True:
        try:
            event = next(events)
        except StopIteration as end:
            final, model, about = end.value
            return Learned(final, model, about, metrics, time.perf_counter() - began)
        if isinstance(event, Stage):
            yield Stage(f"{name}: {event.name}", event.total, event.unit)
        elif isinstance(event, Step | Valid | Measure):
            yield event


def try_rate(settings: RunSettings, text: Text, name: str) -> Generator[Event, None, float | None]:
    """Train for a short time; return the loss of the text for choices, None if it diverged."""
    try:
        learned = yield from learn(settings, text, name)
    except TrainingError as error:
        yield Note(f"{name}: {error}")
        return None
    return learned.loss


def train(
    setup: BenchSetup, entry: Entry, settings: RunSettings, text: Text, key: str
) -> Generator[Event, None, tuple[Learned, Trained]]:
    """Train a run and write it as `train` would; one that was killed is resumed from its last checkpoint."""
    target, title = setup.setup.out / RUNS / entry.label, setup.rows.find(entry.model).title
    checkpoint = _checkpoint(target, key)
    with new_run(target, overwrite=True, resumes=checkpoint is not None) as new:
        checkpointer = Checkpointer(new, settings.find_task(), {"bench": key}, checkpoint)
        learned = yield from learn(settings, text, title, Conditions(checkpointer=checkpointer))
        data, seed = text.prepared.facts, learned.settings.train.seed
        about = facts.collect(seed, data, learned.seconds, dict(learned.facts))
        tokenizer = text.prepared.vocabulary
        final = learned.settings.with_tokenizer(tokenizer.name)  # the run holds it: its file may go
        trained = Trained(final, learned.model, tokenizer, about, learned.metrics)
        saved.write(trained, new)
    return learned, trained


def _checkpoint(target: Path, key: str) -> Checkpoint | None:
    """Return the last checkpoint of this very run, if it was not finished."""
    found = find_last(target).checkpoint
    if found is None or found.folder.read_json(BEGUN).get("asked") != {"bench": key}:
        return None
    return found


def _any(value: Any) -> Any:
    return value
