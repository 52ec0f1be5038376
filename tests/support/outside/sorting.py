"""A task of another package, with a count family and a network family of its own: lines sorted into classes.

An example is ``text TAB label``; a text is the numbers of its letters. Nothing in nextword knows of it: the
entry points beside this file register it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from nextword.core.errors import DamagedError, DataError
from nextword.core.events import Done, Event, Stage
from nextword.core.family import Cost, Rung
from nextword.core.settings import Settings, TrainSettings
from nextword.core.task import (
    DEFAULT_OPTIONS,
    Division,
    Loss,
    Measurement,
    Prediction,
    PredictOptions,
    Scores,
    Task,
)
from nextword.data.batches.batch import Rows
from nextword.data.encode import DataFacts

LETTERS = 32
NO_LABEL = -1


class SortData(Settings):
    """How examples are read."""

    valid_share: float = Field(0.2, ge=0, lt=1, description="share of the lines that is held out")


@dataclass(frozen=True)
class Lines:
    """Texts and labels of a file."""

    name: str
    texts: list[str]
    labels: list[str]

    @property
    def size(self) -> int:
        return sum(map(len, self.texts))

    def part(self, number: int) -> Lines:
        """Return the first three quarters of the lines (0), or the rest (1)."""
        cut = 3 * len(self.texts) // 4
        lines = slice(0, cut) if number == 0 else slice(cut, None)
        return Lines(self.name, self.texts[lines], self.labels[lines])


@dataclass(frozen=True)
class Counted(Rows):
    """A batch: how often each letter occurs in a text, and its class."""

    letters_BL: Any
    labels_B: Any
    weights_B: Any  # a field that language models do not have

    @property
    def tokens(self) -> int:
        return int((self.labels_B != NO_LABEL).sum())

    def blank(self) -> Counted:
        row = self.cut(slice(0, 1))
        return Counted(row.letters_BL, np.full_like(row.labels_B, NO_LABEL), row.weights_B)


@dataclass(frozen=True)
class Ready:
    """Examples as arrays."""

    vocabulary: list[str]  # the labels
    facts: DataFacts
    learned: Counted
    measured: Counted | None

    def digest(self) -> str:
        return hashlib.sha256(self.learned.letters_BL.tobytes() + self.learned.labels_B.tobytes()).hexdigest()


class Shuffled:
    """Batches in an order drawn from (seed, epoch)."""

    def __init__(self, examples: Counted, batch: int, seed: int) -> None:
        self.examples, self.batch, self.seed = examples, min(batch, examples.rows), seed
        self.per_epoch, self.tokens = -(-examples.rows // self.batch), examples.rows

    def batches(self, epoch: int, start: int = 0) -> Iterator[Counted]:
        order = np.random.default_rng((self.seed, epoch)).permutation(self.examples.rows)
        for index in range(start, self.per_epoch):
            rows = order[index * self.batch : (index + 1) * self.batch]
            every = self.examples
            yield Counted(every.letters_BL[rows], every.labels_B[rows], every.weights_B[rows])


class CrossEntropy:
    """-log p(label), and a small auxiliary loss that is shown by its name."""

    carries = False

    def at(self, network: Any, progress: float, counts: bool = True) -> CrossEntropy:
        return self

    def pieces(self, batch: Counted) -> list[Counted]:
        return [batch]

    def __call__(self, network: Any, piece: Counted, before: Any) -> tuple[Loss, None]:
        import torch
        from torch.nn import functional as F

        logits_BC = network(torch.from_numpy(piece.letters_BL))
        labels_B = torch.from_numpy(piece.labels_B)
        nats = F.cross_entropy(logits_BC, labels_B, ignore_index=NO_LABEL, reduction="sum")
        size = 1e-3 * logits_BC.square().sum()
        return Loss(nats + size, {"size": size}), None


@dataclass
class Measured:
    """The held-out examples."""

    examples: Counted

    @property
    def tokens(self) -> int:
        return self.examples.rows

    def measure(self, network: Any, tokens: int = 0, products: Any = None, ranks: Any = None) -> Measurement:
        right = accuracy(Sums(network), self.examples)
        return Measurement({"accuracy": right}, -right, self.examples.rows)

    def describe(self, values: Any) -> str:
        return f"accuracy {values['accuracy']:.2%}"

    def digest(self) -> str:
        return hashlib.sha256(self.examples.letters_BL.tobytes()).hexdigest()


@dataclass
class Counts:
    """Naive Bayes over letters."""

    log_CL: Any

    def scores(self, letters_BL: Any) -> Any:
        return letters_BL @ self.log_CL.T


@dataclass
class Sums:
    """A trained network."""

    network: Any

    def scores(self, letters_BL: Any) -> Any:
        import torch

        with torch.no_grad():
            return self.network(torch.from_numpy(letters_BL)).numpy()


@dataclass(frozen=True)
class SortReport:
    """How many were sorted as they should be."""

    accuracy: float
    lines: int

    def to_json(self) -> dict[str, Any]:
        return {"accuracy": self.accuracy, "lines": self.lines}

    def __str__(self) -> str:
        return f"accuracy  {self.accuracy:.2%}"


class Sorting(Task):
    """The task ``sort``."""

    name, noun, decides, higher = "sort", "sorter", "accuracy", True

    def groups(self, family: Any) -> dict[str, type[Settings]]:
        return {"model": family.Settings, "text": Settings, "data": SortData, "train": family.Training}

    def examples(self, files: Sequence[str], valid: Sequence[str], settings: Any) -> list[Lines]:
        return [read(name) for name in files]

    def prepare(self, examples: list[Lines], settings: Any, how: Any) -> Generator[Event, None, Any]:
        yield Stage("count letters")
        texts = [text for each in examples for text in each.texts]
        names = [label for each in examples for label in each.labels]
        labels = how.vocabulary or sorted(set(names))
        every = counted(texts, [labels.index(name) for name in names])
        held = int(len(texts) * settings.data.valid_share)
        cut = len(texts) - held
        data = "\n".join(texts).encode()
        facts = DataFacts(
            tuple(each.name for each in examples), hashlib.sha256(data).hexdigest(), len(data), 0, len(texts)
        )
        return settings, Ready(
            labels, facts, every.cut(slice(0, cut)), every.cut(slice(cut, None)) if held else None
        )

    def build(self, settings: Any, prepared: Ready) -> Any:
        import torch

        torch.manual_seed(settings.train.seed)
        return SUMS.build(settings.model, len(prepared.vocabulary))

    def batches(self, settings: Any, prepared: Ready, network: Any) -> Generator[Event, None, Shuffled]:
        return Shuffled(prepared.learned, settings.train.batch, settings.train.seed)
        yield

    def objective(self, settings: Any, batches: Any) -> CrossEntropy:
        return CrossEntropy()

    def held_out(self, settings: Any, prepared: Ready) -> Measured | None:
        return None if prepared.measured is None else Measured(prepared.measured)

    def model(self, network: Any) -> Sums:
        return Sums(network)

    def fit(self, settings: Any, prepared: Ready, budget: Any) -> Iterator[Event]:
        return COUNTS.fit(prepared.learned, len(prepared.vocabulary), settings.model)

    def validate(self, model: Any, examples: Any, prepared: Ready) -> Generator[Event, None, Any]:
        if prepared.measured is None:
            return None
        yield Stage("measure")
        right = accuracy(model, prepared.measured)
        return Measurement({"accuracy": right}, -right, prepared.measured.rows)

    def save(self, vocabulary: list[str], folder: Any) -> None:
        folder.write("labels.json", json.dumps(vocabulary))

    def open(self, folder: Any) -> list[str]:
        return list(folder.read_json("labels.json"))

    def load(self, folder: Any, settings: Any) -> tuple[Any, list[str]]:
        labels = self.open(folder)
        return settings.find_family().load(folder, settings.model, labels), labels

    def phrase(self, vocabulary: list[str]) -> str:
        return f"{len(vocabulary)} labels"

    def evaluate(self, run: Any, files: Sequence[str], sets: Any) -> Iterator[Event]:
        (lines,) = (read(name) for name in files)
        examples = counted(lines.texts, [run.vocabulary.index(label) for label in lines.labels])
        yield Done(SortReport(accuracy(run.model, examples), len(lines.texts)))

    def predictor(self, run: Any, options: PredictOptions = DEFAULT_OPTIONS) -> Sorter:
        return Sorter(run)

    def divide(self, files: Sequence[str], valid: Sequence[str], settings: Any) -> Division:
        train = [read(name) for name in files]
        held = [read(name) for name in valid] or [each.part(1) for each in train]
        train = train if valid else [each.part(0) for each in train]
        every = [pair for each in (*train, *held) for pair in zip(each.texts, each.labels, strict=True)]
        return Division(
            train, held, hashlib.sha256(repr(every).encode()).hexdigest(),
            f"trained on {sum(len(each.texts) for each in train)} lines, measured on "
            f"{sum(len(each.texts) for each in held)}",
            [pair for each in held for pair in zip(each.texts, each.labels, strict=True)][:3],
        )  # fmt: skip

    def scores(self, run: Any, held: list[Lines]) -> Scores:
        texts = [text for each in held for text in each.texts]
        labels_B = np.array([run.vocabulary.index(label) for each in held for label in each.labels])
        right_B = run.model.scores(counted(texts, labels_B).letters_BL).argmax(axis=1) == labels_B
        return Scores({"lines": len(texts), "accuracy": float(right_B.mean())}, right_B.tolist())


@dataclass
class Sorter:
    """Sorts lines."""

    run: Any

    def predict(self, inputs: Iterable[str]) -> Iterator[Prediction]:
        for text in inputs:
            scores_C = self.run.model.scores(counted([text], [0]).letters_BL)[0]
            label = self.run.vocabulary[int(scores_C.argmax())]
            yield Prediction(label, {"label": label})


class CountSettings(Settings):
    """Nothing but the smoothing."""

    add: float = Field(1.0, gt=0, description="added to every count")


class CountLetters:
    """The family ``letter-counts``."""

    name, task, default_tokenizer = "letter-counts", "sort", ""
    Settings, Training, defaults = CountSettings, TrainSettings, {}
    holds_text, measures = False, True

    def fit(self, examples: Counted, classes: int, settings: CountSettings) -> Iterator[Event]:
        counts_CL = np.full((classes, LETTERS), settings.add)
        np.add.at(counts_CL, examples.labels_B, examples.letters_BL)
        yield Done(Counts(np.log(counts_CL / counts_CL.sum(axis=1, keepdims=True))))

    def estimate(self, settings: Any, size: int, text: Any) -> Cost:
        return Cost(size, size / 1e6, 1000, 1000)

    def save(self, model: Counts, folder: Any) -> None:
        folder.write_array("counts.npy", model.log_CL)

    def load(self, folder: Any, settings: Any, labels: list[str]) -> Counts:
        return Counts(np.load(folder.file("counts.npy"), allow_pickle=False))


class SumSettings(Settings):
    """The size of the network."""

    hidden: int = Field(8, ge=1, description="hidden size H")


class SumLetters:
    """The family ``letter-sums``."""

    name, task, default_tokenizer = "letter-sums", "sort", ""
    Settings, defaults = SumSettings, {"train.rate": 0.02, "train.steps": 60}
    holds_text, measures, row_length = False, True, 1
    ladder = (Rung("small", {"model.hidden": 4}, "4 hidden"), Rung("large", {"model.hidden": 8}, "8 hidden"))

    @property
    def Training(self) -> type[TrainSettings]:  # noqa: N802 - the protocol's name
        from nextword.models.training import NeuralTrainSettings

        return NeuralTrainSettings

    def build(self, settings: SumSettings, classes: int) -> Any:
        from torch import nn

        return nn.Sequential(
            nn.Linear(LETTERS, settings.hidden), nn.Tanh(), nn.Linear(settings.hidden, classes)
        )

    def save(self, model: Sums, folder: Any) -> None:
        from safetensors.torch import save

        folder.write("model.safetensors", save(model.network.state_dict()))

    def load(self, folder: Any, settings: SumSettings, labels: list[str]) -> Sums:
        from safetensors.torch import load_file

        network = self.build(settings, len(labels))
        try:
            network.load_state_dict(load_file(folder.file("model.safetensors")))
        except RuntimeError as error:
            raise DamagedError(f"{folder.path}: {error}") from error
        return Sums(network)


def read(name: str) -> Lines:
    """Read ``text TAB label``."""
    texts, labels = [], []
    for number, line in enumerate(Path(name).read_text().splitlines(), start=1):
        text, tab, label = line.partition("\t")
        if not tab:
            raise DataError("a line must be: text TAB label", name, number)
        texts.append(text)
        labels.append(label)
    return Lines(name, texts, labels)


def counted(texts: Sequence[str], labels: Sequence[int]) -> Counted:
    """Count the letters of each text."""
    letters_BL = np.zeros((len(texts), LETTERS), np.float32)
    for row, text in enumerate(texts):
        for letter in text:
            letters_BL[row, ord(letter) % LETTERS] += 1
    return Counted(letters_BL, np.asarray(labels, np.int64), np.ones(len(texts), np.float32))


def accuracy(model: Any, examples: Counted) -> float:
    """Return the share of examples whose best label is the right one."""
    return float((model.scores(examples.letters_BL).argmax(axis=1) == examples.labels_B).mean())


TASK, COUNTS, SUMS = Sorting(), CountLetters(), SumLetters()
