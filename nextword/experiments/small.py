"""Small networks that train within seconds, by the trainer's own steps.

An experiment needs many training runs of few steps: one thread, single precision, no file. The text is the
beginning of the embedded corpus, letter by letter, or sequences that the experiment generates.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch

from nextword.core.contracts import START, Block, LanguageModel
from nextword.core.errors import TrainingError
from nextword.core.events import Done, Event, Measure, Progress, Stage
from nextword.core.task import Batches
from nextword.data.batches.batch import Batch
from nextword.data.corpora import DEFAULT
from nextword.data.settings import DataSettings
from nextword.data.source import Source
from nextword.models.distributions import as_numpy
from nextword.models.network import Network
from nextword.models.randomness import INITIAL, seeded
from nextword.models.training import NeuralTrainSettings
from nextword.runs.settings import RunSettings, plan
from nextword.tasks.objectives.next_token import NextToken
from nextword.text.characters import CharacterTokenizer
from nextword.text.settings import TextSettings
from nextword.training import loop
from nextword.training.job import Job
from nextword.training.loop import Outcome

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_SETS = {"train.threads": 1, "train.precision": "fp32", "train.log_every": 1}


@dataclass
class Count:
    """How many steps of all training runs of an experiment are done."""

    done: int = 0


@dataclass(frozen=True)
class Learned:
    """A trained network, and what its steps reported."""

    model: Any  # a `NeuralLanguageModel`, or what fills blanks
    losses: list[float] = field(default_factory=list)  # nats per token of every step
    norms: list[float] = field(default_factory=list)  # of the gradient, before clipping
    seconds: float = 0.0  # of processor time
    broke: str = ""  # why it ended early: the loss was NaN or infinite


def settings_of(family: str, seed: int, sets: dict[str, Any]) -> RunSettings:
    """Return a family's settings for a short training run."""
    return plan(family, seed=seed, sets=_SETS | sets)


def build(settings: RunSettings, vocab_size: int, counts_V: Ints | None = None) -> Network:
    """Build a new network; ``counts_V``: how often each token occurs, for the initial output bias."""
    family: Any = settings.find_family()
    with seeded(torch.device("cpu"), settings.train.seed, INITIAL):
        network: Network = family.build(settings.model, vocab_size, True)
    if counts_V is not None:
        network.prepare(torch.from_numpy(counts_V))
    return network


def learn(
    settings: RunSettings, network: Network, source: Batches, count: Count, objective: Any = None
) -> Generator[Event, None, Learned]:
    """Train to the end of ``train.steps``; the progress continues that of earlier training runs.

    ``objective``: another than that of the next token.
    """
    began, first = time.process_time(), count.done
    learned = Learned(network.model())
    network.train()
    train = cast(NeuralTrainSettings, settings.train)
    job = Job(network, train, source, objective or NextToken(train), model=lambda each: each.model())
    events = loop.fit(job)
    while True:
        try:
            event = next(events)
        except TrainingError as error:
            network.eval()
            count.done = first + cast(NeuralTrainSettings, settings.train).steps
            return replace(learned, broke=str(error), seconds=time.process_time() - began)
        if isinstance(event, Measure):
            learned.losses.append(float(event.values["loss"]))
            learned.norms.append(float(event.values["norm"]))
            count.done = first + int(event.values["step"])
            if len(learned.losses) % 10 == 0:
                yield Progress(count.done)
        elif isinstance(event, Done):
            outcome: Outcome = event.result
            return replace(learned, model=outcome.model, seconds=time.process_time() - began)


def drain(events: Generator[Event, None, Learned]) -> Learned:
    """Train to the end and return the result."""
    while True:
        try:
            next(events)
        except StopIteration as end:
            learned: Learned = end.value
            return learned


class Made:
    """Batches that an experiment generates: a function of the number of the batch."""

    def __init__(self, make: Callable[[np.random.Generator], Batch], seed: int) -> None:
        self.per_epoch, self.tokens = 1 << 30, 1 << 30
        self._make, self._seed = make, seed

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """Yield batches one after another, from a number on."""
        for index in range(start, self.per_epoch):
            yield self._make(np.random.default_rng((self._seed, index)))


@dataclass(frozen=True)
class Letters:
    """A text letter by letter, in two parts."""

    tokenizer: CharacterTokenizer
    ids: Ints
    held: Ints
    about: str

    @property
    def vocab_size(self) -> int:
        """The vocabulary size V, specials included."""
        return self.tokenizer.vocab_size

    @property
    def counts(self) -> Ints:
        """How often each letter occurs."""
        return np.bincount(self.ids, minlength=self.vocab_size)


def read_letters(most: int = 400_000, held: int = 40_000) -> Generator[Event, None, Letters]:
    """Read the first letters of the embedded corpus, and hold out the last of them."""
    yield Stage("read the embedded corpus")
    data = b""
    for block in Source.for_training((DEFAULT,), DataSettings()).blocks():
        data += block.data
        if len(data) > most + held:
            break
    text = data[: most + held].decode("utf-8", "ignore")
    split = max(1, len(text) - held)
    parts = [Block(part.encode(), True) for part in (text[:split], text[split:])]
    tokenizer = CharacterTokenizer.fit(parts, TextSettings())  # no letter is unknown later
    ids, rest = (
        np.concatenate([np.asarray(piece.ids, np.int64) for piece in tokenizer.encode_blocks([part])])
        for part in parts
    )
    about = f"{DEFAULT}, its first {len(text):,} letters, the last {held:,} of them held out"
    return Letters(tokenizer, ids, rest[rest != START], about)


def rows_of(ids: Ints, length: int, most: int) -> Ints:
    """Cut into rows of this many tokens, at most this many rows."""
    count = min(most, len(ids) // length)
    return ids[: count * length].reshape(count, length)


def nats(model: LanguageModel, rows_BT: Ints, skip: int = 0, batch: int = 128) -> Floats:
    """Return ``nats_BT``: -log p of the tokens of each row, read from nothing, without the first ``skip``."""
    found = []
    for first in range(0, len(rows_BT), batch):
        part_BT = rows_BT[first : first + batch]
        state = model.start(len(part_BT), begin=False)
        lengths_B = np.full(len(part_BT), part_BT.shape[1])
        found.append(-as_numpy(model.score(part_BT, lengths_B, state)[0], np.float64)[:, skip:])
    return np.concatenate(found)


def mean_and_spread(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean over seeds and its standard deviation (0 for a single one)."""
    array = np.asarray(values, np.float64)
    return float(array.mean()), float(array.std(ddof=1)) if len(array) > 1 else 0.0


def next_words(model: LanguageModel, rows_BT: Ints, begin: bool = False) -> Floats:
    """Return ``logp_BV``: what comes after each row, read from nothing or from START."""
    B, T = rows_BT.shape
    state = model.score(rows_BT, np.full(B, T), model.start(B, begin=begin))[1]
    return as_numpy(model.next(state), np.float64)
