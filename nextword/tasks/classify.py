"""Classification: an example is a text with a label (sentiment, spam, who said it), or with several.

[IITD-2 "RNNs can be used for sentence classification"; XMU "RNN in PyTorch"]
"""

from __future__ import annotations

import time
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from nextword.core import config
from nextword.core.errors import DataError
from nextword.core.events import Done, Event, Note, Stage, returned
from nextword.core.family import Budget, CountFamily, Family
from nextword.core.settings import Settings
from nextword.core.task import (
    DEFAULT_OPTIONS,
    Choice,
    Division,
    Inspected,
    Measurement,
    PredictOptions,
    Preparation,
    Scores,
    Task,
)
from nextword.data.classes import ClassVocabulary, LabelledBatches, LabelledTexts
from nextword.data.encode import DataFacts
from nextword.data.labelled import Labelled, LabelledDataSettings, LabelledText, label_splitter
from nextword.data.part import Part, as_file
from nextword.runs.settings import RunSettings
from nextword.store.reading import RunFolder
from nextword.store.writing import NewRun
from nextword.tasks import sizes
from nextword.tasks.labelled_examples import (
    ClassifyTextSettings,
    LabelledFiles,
    PreparedClasses,
    check_known,
    hold_out,
    make_vocabulary,
    to_arrays,
    word_lengths,
)
from nextword.tasks.vectors import given_states, given_vectors

if TYPE_CHECKING:
    from nextword.runs.saved import Trained

VOCABULARY = "vocabulary.json"
_SAMPLES = 5  # texts that a comparison shows
_MOST_ROWS = 64  # of a batch that --minutes chooses


@runtime_checkable
class FittedToAll(Protocol):
    """A classifier that has learned the held-out texts too, once they had chosen what it is."""

    held_out_logits: Any  # their scores before


class Classification(Task):
    """The task ``classify``."""

    name, noun, decides, higher = "classify", "classifier", "accuracy", True
    features_of = ("lm",)  # the states of a language model are features of each word
    families = "classifier"
    formats = ("label", "tsv", "jsonl", "html")
    splits_words = True
    unit = "texts"

    def groups(self, family: Family) -> dict[str, type[Settings]]:
        """Return the settings tree of a family."""
        return {
            "model": family.Settings, "text": ClassifyTextSettings, "data": LabelledDataSettings,
            "train": family.Training,
        }  # fmt: skip

    def idle(self, family: Family) -> Collection[str]:
        """Return settings of training that only language models and taggers use."""
        return sizes.ONLY_LANGUAGE | {"train.forcing", "train.feed"}

    def choose(self, keys: Iterable[str], minutes: float | None) -> Choice:
        """Choose a model where none is named: models of each kind, weighed by held-out texts."""
        from nextword.tasks.auto import choose_classifier

        return choose_classifier(keys, minutes)

    def examples(self, files: Sequence[str], valid: Sequence[str], settings: RunSettings) -> LabelledFiles:
        """Open the files."""
        data = cast(LabelledDataSettings, settings.data)
        return LabelledFiles(LabelledText(files, data), LabelledText(valid, data) if valid else None)

    def prepare(
        self, examples: LabelledFiles, settings: RunSettings, how: Preparation
    ) -> Generator[Event, None, tuple[RunSettings, PreparedClasses]]:
        """Read the texts, collect words and labels, and turn both into arrays."""
        yield Stage("read the texts")
        data = cast(LabelledDataSettings, settings.data)
        learned = examples.text.read()
        if isinstance(examples.text, LabelledText) and examples.text.columns:
            yield Note(examples.text.columns)
        several, labels_of = label_splitter(learned, data.several)
        if examples.valid is not None:
            measured = examples.valid.read()
        else:
            learned, measured = hold_out(learned, data.hold_out)
        vocabulary: ClassVocabulary = how.vocabulary or make_vocabulary(learned, settings, several, labels_of)
        settings, lexicon, vectors = yield from given_vectors(
            settings, vocabulary.lexicon, extend=how.vocabulary is None
        )
        vocabulary = replace(vocabulary, lexicon=lexicon)
        settings, vocabulary = yield from given_states(settings, vocabulary)
        made = to_arrays(learned, vocabulary)
        lengths_N = word_lengths(made, settings)
        words = int(lengths_N.sum())
        facts = DataFacts(examples.text.names, examples.text.sha256, examples.text.size or 0, words, words)
        empty = int((lengths_N == 0).sum())
        if empty:
            yield Note(f"{empty:,} of {len(learned):,} texts have no words")
        held_out = to_arrays(measured, vocabulary) if measured else None
        return settings, PreparedClasses(vocabulary, facts, made, held_out, examples.valid is None, vectors)

    def sized(self, settings: RunSettings, prepared: PreparedClasses, tokens: float) -> Mapping[str, Any]:
        """Return batches of at most 64 texts."""
        return {"train.batch": sizes.LABELLED.batch(len(prepared.learned), _MOST_ROWS)}

    def is_enough(self, settings: RunSettings, tokens: float, epoch: int, weights: int) -> bool:
        """Return whether most of the useful epochs can be made."""
        return tokens >= sizes.LABELLED.share * float(cast(Any, settings.train).epochs) * epoch

    def most_epochs(self, settings: RunSettings, steps: float) -> float:
        """Return the epochs of the family, or more where they are short: texts are few."""
        return sizes.LABELLED.epochs(cast(Any, settings.train).epochs, steps)

    def regularized(self, settings: RunSettings, epochs: float) -> Mapping[str, Any]:
        """Stop when the held-out texts are no longer classified better; the dropout is the family's."""
        return {"train.patience": sizes.LABELLED.patience}

    def measured_again(self, prepared: PreparedClasses) -> int:
        """Return the texts that the probabilities are calibrated on."""
        return 0 if prepared.measured is None else len(prepared.measured)

    def figures(self, prepared: PreparedClasses) -> Mapping[str, int]:
        """Return the sizes of the vocabularies."""
        return {"vocabulary": prepared.vocabulary.lexicon.size, "labels": len(prepared.vocabulary.labels)}

    def build(self, settings: RunSettings, prepared: PreparedClasses) -> Any:
        """Make a network with its first weights."""
        from nextword.tasks.label_loss import first_weights

        return first_weights(settings, prepared)

    def batches(
        self, settings: RunSettings, prepared: PreparedClasses, network: Any
    ) -> Generator[Event, None, LabelledBatches]:
        """Return batches of texts of similar length."""
        train: Any = settings.train
        mean = max(1, round(float(prepared.learned.sentences.lengths_N.mean())))
        made = LabelledBatches(prepared.learned, train.batch * (train.length or mean), train.seed)
        yield Note(f"batches of similar lengths: {made.buckets.real_share:.0%} of the positions are words")
        return made

    def objective(self, settings: RunSettings, batches: Any) -> Any:
        """Return -log p of the labels."""
        from nextword.tasks.label_loss import LabelLoss, class_weights

        weights = class_weights(settings, batches.examples)
        return LabelLoss(cast(Any, settings.train).precision, cast(Any, settings.train).smoothing, weights)

    def held_out(self, settings: RunSettings, prepared: PreparedClasses) -> Any:
        """Return the held-out texts."""
        from nextword.tasks.classifiers import HeldOutLabels

        return None if prepared.measured is None else HeldOutLabels(prepared.measured, prepared.vocabulary)

    def model(self, network: Any) -> Any:
        """Return the trained network as a classifier."""
        from nextword.models.classifier import NeuralClassifier

        return NeuralClassifier(network, network.vocabulary)

    def fit(self, settings: RunSettings, prepared: PreparedClasses, budget: Budget) -> Iterator[Event]:
        """Fit a family without a network."""
        family = settings.find_family()
        assert isinstance(family, CountFamily)
        return family.fit(prepared, settings, budget)

    def finish(
        self, model: Any, settings: RunSettings, prepared: PreparedClasses
    ) -> Generator[Event, None, Any]:
        """Fit the temperature and the thresholds on the held-out texts."""
        from nextword.models import calibration

        measured = prepared.measured
        if measured is None:
            yield Note("there are no held-out texts, so that the probabilities are not calibrated")
            return model
        yield Stage("calibrate")
        logits_NK = held_out_logits(model, measured)
        model.calibration = calibration.fit(logits_NK, measured.targets, prepared.vocabulary.several)
        return model

    def validate(
        self, model: Any, examples: Any, prepared: PreparedClasses
    ) -> Generator[Event, None, Measurement | None]:
        """Measure the held-out texts once."""
        from nextword.tasks.classifiers import measure_logits

        if prepared.measured is None:
            return None
        yield Stage("measure the held-out texts")
        logits_NK = held_out_logits(model, prepared.measured)
        found = measure_logits(logits_NK, prepared.measured, prepared.vocabulary)
        shown = f"accuracy {found.values['accuracy']:.2%}"
        if prepared.vocabulary.several:
            shown += f", micro F1 {found.values['micro_f1']:.4f}"
        yield Note(f"held-out texts: {shown}")
        return found

    def save(self, vocabulary: ClassVocabulary, folder: NewRun) -> None:
        """Write ``vocabulary.json``."""
        folder.write_json(VOCABULARY, vocabulary.to_json())

    def open(self, folder: RunFolder) -> ClassVocabulary:
        """Read ``vocabulary.json``."""
        return ClassVocabulary.from_json(folder.read_json(VOCABULARY))

    def load(self, folder: RunFolder, settings: RunSettings) -> tuple[Any, ClassVocabulary]:
        """Return the classifier and its vocabulary."""
        _, vocabulary = returned(given_states(settings, self.open(folder), folder))
        return settings.find_family().load(folder, settings.model, vocabulary), vocabulary

    def deciding(self, vocabulary: ClassVocabulary) -> str:
        """Return micro F1 where a text may have several labels."""
        return "micro_f1" if vocabulary.several else "accuracy"

    def phrase(self, vocabulary: ClassVocabulary) -> str:
        """Return the number of labels and words."""
        words = len(vocabulary.lexicon.words)
        return f"{len(vocabulary.labels)} labels" + (f", {words:,} words" if words else "")

    def about(self, vocabulary: ClassVocabulary) -> Mapping[str, Any]:
        """Return labels and number of words."""
        return {
            "labels": list(vocabulary.labels), "several": vocabulary.several,
            "words": len(vocabulary.lexicon.words),
        }  # fmt: skip

    def evaluate(self, run: Trained, files: Sequence[str], sets: Mapping[str, Any]) -> Iterator[Event]:
        """Classify the texts of files and compare."""
        from nextword.evaluation.classification import report

        data = cast(LabelledDataSettings, run.settings.data)
        given = {f"data.{name}": value for name, value in data}
        changed: Any = config.build({"data": LabelledDataSettings}, given, sets)["data"]
        began = time.perf_counter()
        yield Stage("read the texts")
        examples = LabelledText(files, changed).read()
        vocabulary: ClassVocabulary = run.vocabulary
        check_known(examples, vocabulary)
        gold = [vocabulary.labels_of(each.label) for each in examples]
        yield Stage("classify", len(examples), "texts")
        logits_NK = run.model.logits([each.text for each in examples])
        yield Done(
            report(
                logits_NK, gold, vocabulary.labels, run.model.calibration, vocabulary.several,
                time.perf_counter() - began,
            )
        )  # fmt: skip

    def predictor(self, run: Trained, options: PredictOptions = DEFAULT_OPTIONS) -> Any:
        """Return what classifies raw text."""
        from nextword.tasks.labelling import LabelPredictor

        data = cast(LabelledDataSettings, run.settings.data)
        return LabelPredictor(run.model, run.vocabulary, options, data, run.settings.name)

    def inspected(self, run: Trained, text: str | None) -> Inspected | None:
        """Read labelled texts (text TAB label), or lines of text, which the classifier labels itself."""
        from nextword.models.classifier import NeuralClassifier

        if not isinstance(run.model, NeuralClassifier):
            return None
        if text is None:
            return Inspected()
        vocabulary: ClassVocabulary = run.vocabulary
        if "\t" in text or text.lstrip().startswith("{"):
            with as_file(text, "jsonl" if text.lstrip().startswith("{") else "tsv") as path:
                found = LabelledText([path], cast(LabelledDataSettings, run.settings.data)).read()
            return Inspected(
                [vocabulary.words_of(each.text) for each in found], [each.label for each in found]
            )
        lines = [line for line in text.split("\n") if line.strip()]
        best_N = run.model.logits(lines).argmax(axis=1).tolist()
        own = [vocabulary.labels[best] for best in best_N]
        return Inspected([vocabulary.words_of(line) for line in lines], own, True)

    def divide(self, files: Sequence[str], valid: Sequence[str], settings: RunSettings) -> Division:
        """Measure the texts of ``valid``, or every fifth of each label of the files."""
        data = cast(LabelledDataSettings, settings.data)
        text = LabelledText(files, data)
        learned = text.read()
        held = LabelledText(valid, data).read() if valid else []
        if not valid:
            learned, held = hold_out(learned, sizes.COMPARED)
        if not held:
            raise DataError(
                f"there are only {len(learned):,} texts, too few to hold some out; give more with --valid",
                learned[0].path,
            )
        parts = [sha256(repr([each[:2] for each in part]).encode()).hexdigest() for part in (learned, held)]
        size = sum(len(each.text) + len(each.label) + 2 for each in learned)
        where = ", ".join(valid) if valid else "the same files"
        return Division(
            LabelledFiles(Part(text.names, parts[0], size, learned)), held,
            sha256("".join(parts).encode()).hexdigest(),
            f"trained on {len(learned):,} texts of {', '.join(files)}, measured on {len(held):,} of {where}",
            [(each.text, each.label) for each in held[:_SAMPLES]],
        )  # fmt: skip

    def scores(self, run: Trained, held: list[Labelled]) -> Scores:
        """Classify the held-out texts; each is right or wrong, or counts with the F1 of its labels."""
        from nextword.evaluation.classification import each_score, report

        vocabulary: ClassVocabulary = run.vocabulary
        gold = [vocabulary.labels_of(each.label) for each in held]
        logits_NK = run.model.logits([each.text for each in held])
        found = report(logits_NK, gold, vocabulary.labels, run.model.calibration, vocabulary.several)
        each = each_score(logits_NK, gold, vocabulary.labels, run.model.calibration, vocabulary.several)
        values: dict[str, float | None] = {"accuracy": found.accuracy, "macro_f1": found.macro_f1}
        if vocabulary.several:
            return Scores(values | {"micro_f1": found.micro_f1}, each, "F1 of a text")
        return Scores(values | {"calibration_error": found.calibration_error}, each)


def held_out_logits(model: Any, measured: LabelledTexts) -> Any:
    """Return the scores of held-out texts: those from before they were learned from too, if they were."""
    if isinstance(model, FittedToAll) and model.held_out_logits is not None:
        return model.held_out_logits
    return model.logits(list(measured.texts))


TASK = Classification()
