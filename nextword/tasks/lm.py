"""Language modelling: an example is a text, and every token of it is predicted from those before it.

[IITD-1 "Language Modelling", XMU "Recap: next token prediction and auto-regressive models"]
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from nextword.core.contracts import Encoded, Filler, LanguageModel, Tokenizer
from nextword.core.display import show_number
from nextword.core.errors import ConfigError, DamagedError, FormatError
from nextword.core.events import Event, Note, Stage, returned
from nextword.core.family import Budget, CountFamily, Family, NetworkFamily
from nextword.core.settings import Settings
from nextword.core.task import (
    DEFAULT_OPTIONS,
    Batches,
    Choice,
    HeldOut,
    Measurement,
    Objective,
    PredictOptions,
    Predictor,
    Preparation,
    Sample,
    Task,
)
from nextword.data.beginning import Beginning
from nextword.data.encode import DataFacts, PackedText, encode, hash_ids
from nextword.data.settings import DataSettings
from nextword.data.source import Source
from nextword.data.split import TooShort, hold_out
from nextword.ngram.model import NgramModel
from nextword.runs.settings import RunSettings, changed, with_open
from nextword.store.reading import RunFolder
from nextword.store.writing import NewRun
from nextword.tasks import auto, sizes
from nextword.text.backward import BackwardTokenizer
from nextword.text.settings import TextSettings
from nextword.text.subwords import default_size
from nextword.text.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from nextword.models.network import Network
    from nextword.runs.saved import Trained

TOKENIZER = "tokenizer.json"
_HELD_OUT = 10  # times as much held-out text is read as is measured each time
_SAMPLE = 3_000_000  # bytes that an estimate encodes
_WHOLE = {
    "words": 200_000_000,
    "characters": 20_000_000,
}  # bytes: texts up to this size are read whole for an estimate
_VALIDATED = ("tokens", "perplexity", "word_perplexity", "bits_per_byte", "unknown_rate")


@dataclass(frozen=True)
class Texts:
    """The files of a language model: training text and held-out text."""

    source: Source
    valid: Source | None = None
    notes: tuple[Note, ...] = ()

    @property
    def size(self) -> int | None:
        """Return the approximate bytes of the training text, if known."""
        return self.source.about


@dataclass(frozen=True)
class PreparedText:
    """A training text as ids, and the held-out text as a stream of encoded pieces."""

    text: PackedText
    encoded: Iterable[Encoded] | None = None  # the held-out text

    @property
    def vocabulary(self) -> Tokenizer:
        """Return the tokenizer."""
        return self.text.tokenizer

    @property
    def facts(self) -> DataFacts:
        """Return what is known about the text."""
        return self.text.facts

    def digest(self) -> str:
        """Return the SHA-256 of the ids and of where documents begin."""
        documents = self.text.documents
        return hash_ids([self.text.ids, *([] if documents is None else [documents])])

    @cached_property
    def counts(self) -> Any:
        """How often each token occurs as a target."""
        from nextword.data.batches.batch import count_ids

        return count_ids(self.text.ids, self.vocabulary.vocab_size)


class LanguageModelling(Task):
    """The task ``lm``."""

    name = "lm"
    noun = "language model"
    decides = "nll"
    higher = False

    def groups(self, family: Family) -> dict[str, type[Settings]]:
        """Return the settings tree of a family."""
        return {
            "model": family.Settings, "text": TextSettings, "data": DataSettings, "train": family.Training,
        }  # fmt: skip

    def choose(self, keys: Iterable[str], minutes: float | None) -> Choice:
        """Choose a model if none is named."""
        return auto.choose(keys, minutes)

    def examples(self, files: Sequence[str], valid: Sequence[str], settings: RunSettings) -> Texts:
        """Open the texts; held-out text is given, or the end of the text where a part of it is held out."""
        data = cast(DataSettings, settings.data)
        if valid:
            held_out = Source.for_reading(valid, data)
            source = Source.for_training(files, data)
            return Texts(source, held_out, tuple(_shared(source, held_out)))
        if _holds_out(settings):
            try:
                return Texts(*hold_out(files, data))
            except TooShort:
                note = Note("the text is too short to hold out a part of it, so there is no validation")
                return Texts(Source.for_training(files, data), None, (note,))
        return Texts(Source.for_training(files, data))

    def prepare(
        self, examples: Texts, settings: RunSettings, how: Preparation
    ) -> Generator[Event, None, tuple[RunSettings, PreparedText]]:
        """Fit or load the tokenizer and encode the text; the held-out text is encoded when it is needed."""
        yield from examples.notes
        if isinstance(settings.find_family(), NetworkFamily) and not how.whole:
            settings, examples = limit_to_time(settings, examples, how.seconds)
        text = yield from encode(examples.source, settings.text, settings.data, how.scratch, how.vocabulary)
        valid = examples.valid
        held_out = None if valid is None else text.tokenizer.encode_blocks(valid.blocks(), costs=True)
        if not _holds_out(settings):  # the settings of a run say what was done
            settings = changed(settings, {"data.hold_out": 0.0})
        return settings.with_tokenizer(text.tokenizer.name), PreparedText(text, held_out)

    def sample(self, examples: Texts, settings: RunSettings, how: Preparation) -> tuple[RunSettings, Sample]:
        """Encode the text, or its beginning if that is enough to estimate the number of tokens."""
        if how.seconds is not None:
            settings, examples = limit_to_time(settings, replace(examples, valid=None), how.seconds)
        name, size = settings.text.tokenizer, examples.size
        whole = _WHOLE.get(name, _SAMPLE)
        fixed = settings
        if name in sizes.LEARNED and not settings.text.size and size is not None and size > whole:
            fixed = changed(settings, {"text.size": default_size(min(size, settings.text.fit_bytes))})
        began = time.perf_counter()
        beginning = Beginning(examples.source, whole)
        text = returned(encode(beginning, fixed.text, fixed.data))
        took = time.perf_counter() - began
        scale = max(1.0, (size or text.facts.bytes) / max(1, text.facts.bytes)) if beginning.is_cut else 1.0
        return settings, Sample(PreparedText(text), scale, took * scale)

    def fitting(self, settings: RunSettings, prepared: PreparedText) -> Mapping[str, Any]:
        """Return the output layer for the vocabulary, and rows that are no longer than the text."""
        family = settings.find_family()
        assert isinstance(family, NetworkFamily)
        model: Any = settings.model
        pairs = max(1, len(prepared.text.ids) - 1)
        values: dict[str, Any] = {"model.head": sizes.head(prepared.vocabulary.vocab_size)}
        if family.row_length:
            values["train.length"] = min(family.row_length, pairs)
        elif model.context > pairs:
            values["model.context"] = pairs
        return values

    def sized(self, settings: RunSettings, prepared: PreparedText, tokens: float) -> Mapping[str, Any]:
        """Return batches small enough for many steps."""
        train, model = cast(Any, settings.train), cast(Any, settings.model)
        length = train.length or cast(NetworkFamily, settings.find_family()).row_length or model.context
        return {"train.batch": sizes.batch_shape(tokens, length).batch}

    def is_enough(self, settings: RunSettings, tokens: float, epoch: int, weights: int) -> bool:
        """Return whether there are enough tokens per weight; how often each is read matters less."""
        return sizes.is_enough(tokens, weights)

    def regularized(self, settings: RunSettings, epochs: float) -> Mapping[str, Any]:
        """Return the dropout for this many passes over the text."""
        return {"model.dropout": sizes.dropout(epochs)}

    def figures(self, prepared: PreparedText) -> Mapping[str, int]:
        """Return the size of the vocabulary."""
        return {"vocabulary": prepared.vocabulary.vocab_size}

    def build(self, settings: RunSettings, prepared: PreparedText) -> Network:
        """Build a network; with ``train.unigram`` the output bias starts at the frequencies of the tokens."""
        from nextword.tasks.networks import first_weights

        return first_weights(settings, prepared)

    def batches(
        self, settings: RunSettings, prepared: PreparedText, network: Network
    ) -> Generator[Event, None, Batches]:
        """Return batches of columns, windows or sentences, as set or as network and text suggest."""
        if _hides(settings):
            from nextword.tasks.objectives.corrupted import make_batches

            made: Batches = yield from make_batches(settings, prepared, network)
            return made
        from nextword.tasks.networks import make_source

        return (yield from make_source(settings, prepared, network))

    def objective(self, settings: RunSettings, batches: Batches) -> Objective:
        """Return the cross-entropy of the next token, or of what is hidden."""
        if _hides(settings):
            from nextword.tasks.objectives.corrupted import CorruptedLoss

            return CorruptedLoss(cast(Any, settings.train))
        from nextword.tasks.networks import next_token

        return next_token(settings, batches)

    def held_out(self, settings: RunSettings, prepared: PreparedText) -> HeldOut | None:
        """Return rows of the held-out text."""
        if prepared.encoded is None:
            return None
        train: Any = settings.train
        if _hides(settings):
            from nextword.tasks.networks import join
            from nextword.tasks.objectives.corrupted import make_held_out

            ids, documents, _, _ = join(prepared.encoded, _HELD_OUT * train.valid_tokens)
            return make_held_out(settings, ids, documents, prepared.vocabulary.vocab_size)
        from nextword.tasks.networks import HeldOutText, carries

        most, tokenizer = _HELD_OUT * train.valid_tokens, prepared.vocabulary
        return HeldOutText.of(prepared.encoded, carries(settings), most, tokenizer)

    def model(self, network: Network) -> Any:
        """Wrap the network as a `LanguageModel`, or as what fills blanks."""
        return network.model()

    def warm_start(
        self, network: Network, settings: RunSettings, prepared: PreparedText, start: Trained
    ) -> Iterator[Event]:
        """Copy the weights of another run; tokens new to it start at the mean of the others."""
        from nextword.tasks.networks import start_from_run

        return start_from_run(network, settings, prepared, start)

    def fit(self, settings: RunSettings, prepared: PreparedText, budget: Budget) -> Iterator[Event]:
        """Fit a count model, as its family does."""
        family = settings.find_family()
        assert isinstance(family, CountFamily)
        return family.fit(prepared.text.ids, prepared.vocabulary, settings.model, budget)

    def validate(
        self, model: LanguageModel, examples: Texts, prepared: PreparedText
    ) -> Generator[Event, None, Measurement | None]:
        """Measure the held-out text, if there is one."""
        from nextword.evaluation.lm.perplexity import evaluate

        exact = _taken_exact(model)
        if examples.valid is None:
            return None
        yield Stage("measure the held-out text", examples.valid.size, "bytes")
        report = evaluate(model, prepared.vocabulary, examples.valid.blocks())
        bits = report.bits_per_byte
        yield Note(f"held-out text: perplexity {show_number(report.perplexity)}, {bits:.4f} bits per byte")
        values = report.to_json()
        measured = {name: values[name] for name in _VALIDATED}
        if exact is not None:
            before = evaluate(exact, prepared.vocabulary, examples.valid.blocks()).perplexity
            measured["perplexity_before_quantizing"] = before
            measured["perplexity_rise_by_quantizing_in_percent"] = 100 * (report.perplexity / before - 1)
            yield Note(_loss(before, report.perplexity))
        return Measurement(measured, report.nll, report.tokens)

    def save(self, vocabulary: Tokenizer, folder: NewRun) -> None:
        """Write ``tokenizer.json``."""
        vocabulary.save(str(folder.path / TOKENIZER))

    def open(self, folder: RunFolder) -> Tokenizer:
        """Read ``tokenizer.json``."""
        return load_tokenizer(folder.file(TOKENIZER))

    def load(self, folder: RunFolder, settings: RunSettings) -> tuple[LanguageModel, Tokenizer]:
        """Load model and tokenizer; raise `DamagedError` if their sizes differ."""
        try:
            tokenizer = self.open(folder)
            if settings.data.direction == "backward":
                tokenizer = BackwardTokenizer(tokenizer)
        except FormatError as error:
            raise DamagedError(f"{error}; train the run again") from error
        model: LanguageModel = settings.find_family().load(folder, settings.model, tokenizer)
        if model.vocab_size != tokenizer.vocab_size:
            raise DamagedError(
                f"'{folder.path}' has a model of {model.vocab_size:,} tokens and a tokenizer of "
                f"{tokenizer.vocab_size:,}; train the run again"
            )
        return model, tokenizer

    def describe(self, vocabulary: Tokenizer) -> str:
        """Return the size and kind of the vocabulary."""
        return f"{vocabulary.vocab_size:,} ({vocabulary.name}; a sequence is a {vocabulary.unit})"

    def phrase(self, vocabulary: Tokenizer) -> str:
        """Return the size and name of the vocabulary."""
        return f"{vocabulary.vocab_size:,} {vocabulary.name}"

    def about(self, vocabulary: Tokenizer) -> Mapping[str, Any]:
        """Return name and size of the tokenizer."""
        return {"tokenizer": vocabulary.name, "vocabulary": vocabulary.vocab_size}

    def after(self, settings: RunSettings, place: str) -> str:
        """Return the natural next command: generate text, if the model can."""
        if dict(settings.model).get("objective") in ("masked", "span"):
            return f"nextword predict {place} FILE  # with ___ for each blank"
        if settings.data.direction == "backward":
            return f"nextword eval {place} FILE"
        return f"nextword generate {place}"

    def usage(self, settings: RunSettings) -> Sequence[str]:
        """Return the commands that a model card shows."""
        return tuple(dict.fromkeys(["nextword eval . FILE", self.after(settings, ".")]))

    def evaluate(self, run: Trained, files: Sequence[str], sets: Mapping[str, Any]) -> Iterator[Event]:
        """Measure perplexity and bits per byte of files."""
        from nextword.tasks.text_measure import measure

        return measure(run, files, sets)

    def predictor(self, run: Trained, options: PredictOptions = DEFAULT_OPTIONS) -> Predictor:
        """Return what fills blanks; a model that continues a text is refused: that is `generate`."""
        if isinstance(run.model, Filler):
            from nextword.tasks.blanks import filler

            return filler(run.model, run.vocabulary)
        raise ConfigError(
            f"'{run.settings.name}' is a language model, which has no labels to predict; continue a text "
            "with: nextword generate RUN --prompt TEXT"
        )


def _hides(settings: RunSettings) -> bool:
    """Tell whether the objective is another than the next token: it hides a part of the text."""
    if dict(settings.model).get("objective", "causal") == "causal":
        return False
    from nextword.tasks.objectives.corrupted import is_corrupted

    return is_corrupted(settings)


def _taken_exact(model: LanguageModel) -> NgramModel | None:
    """Return the model before it was quantized, which nothing else needs: its memory is freed afterwards."""
    if not isinstance(model, NgramModel):
        return None
    exact, model.exact = model.exact, None
    return exact


def _loss(before: float, after: float) -> str:
    """Say what storing probabilities in few bits costs."""
    return (
        f"quantizing changed the perplexity from {show_number(before)} to {show_number(after)} "
        f"({100 * (after / before - 1):+.2f} %)"
    )


def limit_to_time(settings: RunSettings, texts: Texts, seconds: float | None) -> tuple[RunSettings, Texts]:
    """Limit the texts and the number of subwords to what can be read and learned in the time."""
    if seconds is None:
        return settings, texts
    limit = sizes.readable(seconds, settings.text.tokenizer)
    source, valid = texts.source, texts.valid
    if source.about is None or source.about > limit:
        source = Beginning(source, limit)
    if valid is not None and (valid.about is None or valid.about > limit // 10):
        valid = Beginning(valid, limit // 10)
    values = {
        "text.size": sizes.vocabulary(source.about or limit, seconds),
        "text.fit_bytes": min(settings.text.fit_bytes, sizes.learned_bytes(seconds)),
    }
    learned = values if settings.text.tokenizer in sizes.LEARNED else {}
    return with_open(settings, learned), replace(texts, source=source, valid=valid)


def _holds_out(settings: RunSettings) -> bool:
    """Tell whether a part of the text is held out: for networks, and for count models where it is set."""
    share = cast(DataSettings, settings.data).hold_out
    return share > 0 and (settings.find_family().measures or "data.hold_out" in settings.named)


def _shared(source: Source, valid: Source) -> Iterator[Note]:
    """Warn if held-out text is also training text, which makes its numbers worthless."""
    if (both := source.shares_a_file_with(valid)) is not None:
        yield Note(f"{both} is also in the training text, so its numbers say little about new text")


TASK = LanguageModelling()
"""Predict every token of a text from those before it."""
