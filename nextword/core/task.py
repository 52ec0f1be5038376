"""What a task is: what one example is, and how it is read, batched, learned from, measured and predicted.

The slot "task" of the catalog names them. Everything else (trainer, checkpoints, resume, minutes, model
cards, `eval`, `predict`) knows a task through this protocol alone, so a new task gets all of it.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from nextword.core.errors import ConfigError
from nextword.core.events import Event, returned
from nextword.core.learning import Batch as Batch
from nextword.core.learning import Batches as Batches
from nextword.core.learning import BatchLoss as BatchLoss
from nextword.core.learning import FinalFacts as FinalFacts
from nextword.core.learning import HeldOut as HeldOut
from nextword.core.learning import Loss as Loss
from nextword.core.learning import Measurement as Measurement
from nextword.core.learning import Objective as Objective
from nextword.core.learning import Ranks as Ranks
from nextword.core.learning import Sampler as Sampler

if TYPE_CHECKING:
    from nextword.core.family import Budget, Family
    from nextword.core.settings import Settings
    from nextword.decode.settings import DecodeSettings
    from nextword.runs.settings import RunSettings
    from nextword.store.reading import RunFolder
    from nextword.store.writing import NewRun


_PASSES = 8  # over the examples: a size that has not the time for this many is too large


@runtime_checkable
class PagedReport(Protocol):
    """What `Task.evaluate` measured, with pictures for ``eval --html``."""

    def page(self) -> Any:
        """Return a `nextword.drawing.page.Page`."""
        ...


class DataFacts(Protocol):
    """What ``training.json`` and the model card say about the data."""

    names: tuple[str, ...]
    sha256: str
    bytes: int
    words: int
    tokens: int


class Prepared(Protocol):
    """Examples that are ready to be learned from, with the vocabularies that turn them into numbers."""

    @property
    def vocabulary(self) -> Any:
        """Return what a run needs to read its input and write its output: for text, the tokenizer."""
        ...

    @property
    def facts(self) -> Any:
        """Return the `DataFacts` of the examples."""
        ...

    def digest(self) -> str:
        """Return the SHA-256 of what is learned from: a resumed training must see the same."""
        ...


@dataclass(frozen=True)
class Preparation:
    """Where and within which limits examples are prepared."""

    scratch: Path | None = None  # a folder for arrays that memory must not hold
    vocabulary: Any = None  # that of a checkpoint, which is not made a second time
    seconds: float | None = None  # of the whole command: how much can be read
    whole: bool = False  # everything is read, whatever the time
    known: Any = None  # the vocabulary of the run whose weights training starts from


@dataclass(frozen=True)
class Choice:
    """A model, settings that go with it, and the reason for it."""

    model: str
    why: str
    sets: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Sample:
    """The beginning of the examples, prepared, and what all of them will take."""

    prepared: Any
    scale: float  # all examples are so many times as many
    seconds: float  # for preparing all of them


@dataclass(frozen=True)
class PredictOptions:
    """How `predict` reads inputs and writes predictions."""

    format: str = ""  # one of `Task.formats`; "": the first of them
    pretokenized: bool = False  # words are what whitespace separates
    decode: DecodeSettings | None = None  # how text is written; None: as the task does
    alignment: bool = False  # also where in the source each token looked
    draft: Any = None  # a `decode.speculate.Draft` that makes greedy and sample faster
    split: str = ""  # "sentences": each sentence of an input is translated alone


DEFAULT_OPTIONS = PredictOptions()


class Predictor(Protocol):
    """A trained model as `predict` uses it."""

    def predict(self, inputs: Iterable[str]) -> Iterator[Prediction]:
        """Yield one prediction for each input, in order."""
        ...


@runtime_checkable
class FilePredictor(Predictor, Protocol):
    """A predictor that reads more than lines from a file, or writes more than a line for each input."""

    def predict_file(self, file: str) -> Iterator[Prediction]:
        """Yield the predictions for a file (``-``: standard input), in order and in bounded memory."""
        ...

    def write(self, predictions: Iterable[Prediction]) -> Iterator[str]:
        """Yield what the output file holds, piece by piece."""
        ...


@dataclass(frozen=True)
class Prediction:
    """One prediction: as text in the format that was asked for, and as a JSON object."""

    text: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Division:
    """Examples for `compare`: some to train on, others to measure every model on."""

    train: Any  # as `Task.examples` returns them
    held: Any  # what `Task.scores` measures
    digest: str  # SHA-256 of all of them: a comparison resumes only on the same
    about: str  # how they were divided, as in "trained on 90 lines of x.tsv, measured on 10"
    samples: Sequence[tuple[str, str]] = ()  # some that are measured: as `predict` reads them, and the answer


class Inspected(NamedTuple):
    """Sentences that `inspect` looks at: words, and a tag for each word or a label for each text."""

    words: Sequence[Sequence[str]] = ()
    targets: Sequence[Any] = ()
    are_own: bool = False  # the model itself predicted the targets


@dataclass(frozen=True)
class Scores:
    """What was measured of a run, and how it did on each example."""

    values: Mapping[str, float | None]  # by name, as in ``eval --json``; `Task.deciding` is among them
    each: Sequence[float]  # one number for each example, in the direction of `Task.higher`
    of: str = ""  # the measure that is their mean, where that is not the one that decides


@runtime_checkable
class Task(Protocol):
    """One task: ``TASK`` in its module."""

    name: str
    noun: str  # what a model of it is, as in "a language model"
    decides: str  # the measure that says which model is better
    higher: bool  # whether more of it is better
    families: str = "model"  # the slot that names its families: --model lstm means another one for each task
    formats: Sequence[str] = ("text", "jsonl")  # that `predict` can write; the first is the default
    writes: bool = False  # it writes text token by token, so that `predict` takes settings of decoding
    starts_from: Sequence[str] = ()  # other tasks whose runs may begin a part of a model, with --from
    shared_sizes: Collection[str] = ()  # settings that such a run decides
    features_of: Sequence[str] = ()  # other tasks whose runs, with --from, are read as features of words
    splits_words: bool = False  # it splits text into words, unless `predict --pretokenized` says they are
    unit: str = "tokens"  # what is predicted, as progress and estimates count it

    def groups(self, family: Family) -> dict[str, type[Settings]]:
        """Return the settings tree: ``model``, ``train``, and what says how examples are read."""
        ...

    def idle(self, family: Family) -> Collection[str]:
        """Return settings of the tree that change nothing for this family: setting them is refused."""
        return ()

    def choose(self, keys: Iterable[str], minutes: float | None) -> Choice:
        """Choose a model where none is named; ``keys`` are the settings that were."""
        raise ConfigError(f"the task '{self.name}' has no model of its own choice; name one with --model")

    def examples(self, files: Sequence[str], valid: Sequence[str], settings: RunSettings) -> Any:
        """Open the files and check what can be checked; raises with file and line."""
        ...

    def prepare(
        self, examples: Any, settings: RunSettings, how: Preparation
    ) -> Generator[Event, None, tuple[RunSettings, Prepared]]:
        """Make vocabularies and arrays; returns the settings with what was decided on the way."""
        ...

    def sample(self, examples: Any, settings: RunSettings, how: Preparation) -> tuple[RunSettings, Sample]:
        """Prepare the beginning, for an estimate."""
        began = time.perf_counter()
        settings, prepared = returned(self.prepare(examples, settings, how))
        return settings, Sample(prepared, 1.0, time.perf_counter() - began)

    def fitting(self, settings: RunSettings, prepared: Any) -> Mapping[str, Any]:
        """Return settings that follow from the data where nobody has named them."""
        return {}

    def sized(self, settings: RunSettings, prepared: Any, tokens: float) -> Mapping[str, Any]:
        """Return the batch size for a training on about so many predictions, where nobody has named it."""
        return {}

    def is_enough(self, settings: RunSettings, tokens: float, epoch: int, weights: int) -> bool:
        """Return whether so many predictions, ``epoch`` of them a pass, can train so many inner weights."""
        return tokens >= _PASSES * epoch

    def most_epochs(self, settings: RunSettings, steps: float) -> float | None:
        """Return the epochs, of this many steps each, after which more do not help; None: they always do."""
        return None

    def regularized(self, settings: RunSettings, epochs: float) -> Mapping[str, Any]:
        """Return settings that follow from the number of epochs, where nobody has named them."""
        return {}

    def measured_again(self, prepared: Any) -> int:
        """Return how many held-out predictions `finish` makes, so that ``--minutes`` leaves time for them."""
        return 0

    def figures(self, prepared: Any) -> Mapping[str, int]:
        """Return numbers that an estimate shows, such as the size of the vocabulary."""
        return {}

    def build(self, settings: RunSettings, prepared: Any) -> Any:
        """Make a network with its first weights (families that learn by steps)."""
        ...

    def batches(self, settings: RunSettings, prepared: Any, network: Any) -> Generator[Event, None, Batches]:
        """Return what an epoch reads."""
        ...

    def objective(self, settings: RunSettings, batches: Batches) -> Objective:
        """Return what is made small."""
        ...

    def held_out(self, settings: RunSettings, prepared: Any) -> HeldOut | None:
        """Return what is measured while a network learns, if there is anything."""
        return None

    def model(self, network: Any) -> Any:
        """Return the trained network as a model."""
        return network

    def finish(self, model: Any, settings: RunSettings, prepared: Any) -> Generator[Event, None, Any]:
        """Complete a trained model before it is saved: calibrate its probabilities, for instance."""
        return model
        yield

    def warm_start(self, network: Any, settings: RunSettings, prepared: Any, start: Any) -> Iterator[Event]:
        """Put the weights of another run into a new network."""
        raise ConfigError(f"--from is not possible for the task '{self.name}'; leave it out")

    def fit(self, settings: RunSettings, prepared: Any, budget: Budget) -> Iterator[Event]:
        """Fit a family without gradients; the last event is ``Done(model)``."""
        ...

    def validate(
        self, model: Any, examples: Any, prepared: Any
    ) -> Generator[Event, None, Measurement | None]:
        """Measure the held-out examples once, with a model that was fitted without steps."""
        return None
        yield

    def save(self, vocabulary: Any, folder: NewRun) -> None:
        """Write the vocabularies of a run or checkpoint."""
        ...

    def open(self, folder: RunFolder) -> Any:
        """Read them back."""
        ...

    def load(self, folder: RunFolder, settings: RunSettings) -> tuple[Any, Any]:
        """Return the model of a run and its vocabulary."""
        ...

    def describe(self, vocabulary: Any) -> str:
        """Return one line about the vocabularies, for the model card."""
        return self.phrase(vocabulary)

    def deciding(self, vocabulary: Any) -> str:
        """Return the measure that says which of the models with this vocabulary is better."""
        return self.decides

    def phrase(self, vocabulary: Any) -> str:
        """Return what a model is over, in a few words, as in "27 characters"."""
        ...

    def about(self, vocabulary: Any) -> Mapping[str, Any]:
        """Return what the summary of a run says about the vocabularies."""
        return {}

    def after(self, settings: RunSettings, place: str) -> str:
        """Return the command that one would naturally run after training."""
        return f"nextword predict {place} FILE"

    def usage(self, settings: RunSettings) -> Sequence[str]:
        """Return commands that a model card shows."""
        return ("nextword predict . FILE", "nextword eval . FILE")

    def evaluate(self, run: Any, files: Sequence[str], sets: Mapping[str, Any]) -> Iterator[Event]:
        """Measure a run on files; the last event is ``Done(report)``: it has `to_json` and prints itself."""
        ...

    def predictor(self, run: Any, options: PredictOptions = DEFAULT_OPTIONS) -> Predictor:
        """Return what `predict` calls."""
        ...

    def shown(self, prediction: Prediction) -> str:
        """Return a prediction as a cell of a table shows it."""
        return prediction.text.strip()

    def inspected(self, run: Any, text: str | None) -> Inspected | None:
        """Return a text as `inspect` shows it to a network of words; None: the model has no words to show."""
        return None

    def compared(self, minutes: float | None) -> Sequence[str]:
        """Return the models that `compare` takes where none is named; none: every family of the task."""
        return ()

    def divide(self, files: Sequence[str], valid: Sequence[str], settings: RunSettings) -> Division:
        """Divide examples for `compare`: ``valid`` is measured, or a part of the files; for all models."""
        raise ConfigError(f"the task '{self.name}' does not say how its examples are divided for compare")

    def scores(self, run: Any, held: Any) -> Scores:
        """Measure a run on the examples that `divide` held out."""
        raise ConfigError(f"the task '{self.name}' does not measure examples one by one for compare")
