"""Tagging: an example is a sentence, and every word of it has a tag: a part of speech, or a part of a name.

[IITD-2 "RNNs can be used for tagging"; IITD-1 "Window classification"]
"""

from __future__ import annotations

import time
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

from nextword.core.errors import ConfigError, DataError
from nextword.core.events import Done, Event, Note, Progress, Stage, returned
from nextword.core.family import Budget, Family
from nextword.core.settings import Settings
from nextword.core.task import (
    DEFAULT_OPTIONS,
    Choice,
    Division,
    Inspected,
    Prediction,
    PredictOptions,
    Preparation,
    Scores,
    Task,
)
from nextword.data import spans, untagged
from nextword.data.conll import TagDataSettings, Tagged, TaggedText
from nextword.data.encode import DataFacts
from nextword.data.part import Part, as_file
from nextword.data.tagged import TaggedBatches, TaggedSentences, TagVocabulary
from nextword.evaluation.tagging import TagCounts
from nextword.models.training import NeuralTrainSettings
from nextword.runs.settings import RunSettings
from nextword.store.reading import RunFolder
from nextword.store.writing import NewRun
from nextword.tasks import sizes
from nextword.tasks.tagged_examples import (
    PreparedTags,
    TagFiles,
    check_known,
    checked,
    hold_out,
    make_vocabulary,
    to_arrays,
)
from nextword.tasks.vectors import given_states, given_vectors
from nextword.text.lexicon import LexiconSettings

if TYPE_CHECKING:
    from nextword.runs.saved import Trained

VOCABULARY = "vocabulary.json"
_SAMPLES = 5  # sentences that a comparison shows
_MOST_ROWS = 32  # of a batch that --minutes chooses


class Tagging(Task):
    """The task ``tag``."""

    name, noun, decides, higher = "tag", "tagger", "accuracy", True
    features_of = ("lm",)  # the states of a language model are features of each word
    families = "tagger"
    formats = ("conll", "jsonl", "html")
    splits_words = True
    unit = "words"

    def groups(self, family: Family) -> dict[str, type[Settings]]:
        """Return the settings tree of a family."""
        return {
            "model": family.Settings, "text": LexiconSettings, "data": TagDataSettings,
            "train": family.Training,
        }  # fmt: skip

    def idle(self, family: Family) -> Collection[str]:
        """Return settings of training that only language models use."""
        return sizes.ONLY_LANGUAGE | {"train.smoothing"}

    def choose(self, keys: Iterable[str], minutes: float | None) -> Choice:
        """Choose the BiLSTM with a CRF."""
        return Choice("lstm", "a BiLSTM with a CRF is best in a few minutes on a processor")

    def examples(self, files: Sequence[str], valid: Sequence[str], settings: RunSettings) -> TagFiles:
        """Open the files."""
        data = cast(TagDataSettings, settings.data)
        return TagFiles(TaggedText(files, data), TaggedText(valid, data) if valid else None)

    def prepare(
        self, examples: TagFiles, settings: RunSettings, how: Preparation
    ) -> Generator[Event, None, tuple[RunSettings, PreparedTags]]:
        """Read the sentences, collect words and tags, and turn both into arrays."""
        yield Stage("read the sentences")
        data = cast(TagDataSettings, settings.data)
        learned = examples.text.read()
        if examples.valid is not None:
            measured = examples.valid.read()
        else:
            learned, measured = hold_out(learned, data.hold_out)
        vocabulary: TagVocabulary = how.vocabulary or make_vocabulary(learned, settings, how.known)
        settings, lexicon, vectors = yield from given_vectors(
            settings, vocabulary.lexicon, extend=how.vocabulary is None
        )
        vocabulary = replace(vocabulary, lexicon=lexicon)
        settings, vocabulary = yield from given_states(settings, vocabulary)
        learned, repairs = checked(learned, vocabulary.scheme, data.bio)
        if repairs:
            yield Note(
                f"{repairs:,} sentences had tags that do not follow the scheme {vocabulary.scheme.upper()} "
                "and were repaired; --set data.bio=strict refuses them, --set data.bio=none takes tags as "
                "they are"
            )
        facts = DataFacts(
            examples.text.names, examples.text.sha256, examples.text.size or 0,
            sum(len(each.words) for each in learned), sum(len(each.words) for each in learned),
        )  # fmt: skip
        return settings, PreparedTags(
            vocabulary,
            facts,
            to_arrays(learned, vocabulary),
            to_arrays(measured, vocabulary) if measured else None,
            vectors,
        )

    def sized(self, settings: RunSettings, prepared: PreparedTags, tokens: float) -> Mapping[str, Any]:
        """Return batches of at most about a thousand words."""
        rows = prepared.facts.words / _row_length(settings)
        return {"train.batch": sizes.LABELLED.batch(rows, _MOST_ROWS)}

    def is_enough(self, settings: RunSettings, tokens: float, epoch: int, weights: int) -> bool:
        """Return whether most of the useful epochs can be made."""
        return tokens >= sizes.LABELLED.share * float(cast(Any, settings.train).epochs) * epoch

    def most_epochs(self, settings: RunSettings, steps: float) -> float:
        """Return the epochs of the family, or more where they are short: sentences are few."""
        return sizes.LABELLED.epochs(cast(Any, settings.train).epochs, steps)

    def regularized(self, settings: RunSettings, epochs: float) -> Mapping[str, Any]:
        """Stop when the held-out sentences are no longer tagged better; the dropout is the family's."""
        return {"train.patience": sizes.LABELLED.patience}

    def figures(self, prepared: PreparedTags) -> Mapping[str, int]:
        """Return the number of sentences and the sizes of the vocabularies."""
        return {
            "sentences": len(prepared.learned), "vocabulary": prepared.vocabulary.lexicon.size,
            "tags": len(prepared.vocabulary.tags),
        }  # fmt: skip

    def build(self, settings: RunSettings, prepared: PreparedTags) -> Any:
        """Make a network with its first weights."""
        from nextword.tasks.taggers import first_weights

        return first_weights(settings, prepared)

    def batches(
        self, settings: RunSettings, prepared: PreparedTags, network: Any
    ) -> Generator[Event, None, TaggedBatches]:
        """Return batches of sentences of similar length."""
        train: Any = settings.train
        made = TaggedBatches(prepared.learned, train.batch * _row_length(settings), train.seed)
        yield Note(f"batches of similar lengths: {made.buckets.real_share:.0%} of the positions are words")
        return made

    def objective(self, settings: RunSettings, batches: Any) -> Any:
        """Return -log p of the tags."""
        from nextword.tasks.taggers import TagLoss

        train, head = cast(NeuralTrainSettings, settings.train), cast(Any, settings.model).head
        if train.reads.kind != "teacher" and head != "autoregressive":
            raise ConfigError(
                f"'train.forcing' is {train.forcing}, but a tagger with the head '{head}' reads no tags; "
                "leave it out, or use --set model.head=autoregressive"
            )
        return TagLoss(train.precision, train.reads, feed=train.feed)

    def held_out(self, settings: RunSettings, prepared: PreparedTags) -> Any:
        """Return the held-out sentences."""
        from nextword.tasks.taggers import HeldOutTags

        return None if prepared.measured is None else HeldOutTags(prepared.measured, prepared.vocabulary)

    def model(self, network: Any) -> Any:
        """Return the trained network as a tagger."""
        from nextword.models.tagger import Tagger

        return Tagger(network, network.vocabulary)

    def measured_again(self, prepared: PreparedTags) -> int:
        """Return the words that `finish` tags."""
        from nextword.tasks.outside import WORDS

        held = prepared.measured
        has_spans = held is not None and prepared.vocabulary.scheme != "none"
        return min(WORDS, int(held.sentences.lengths_N.sum())) if held is not None and has_spans else 0

    def finish(
        self, model: Any, settings: RunSettings, prepared: PreparedTags
    ) -> Generator[Event, None, Any]:
        """Choose how readily spans are found, on the held-out sentences."""
        from nextword.tasks.outside import WORDS, choose, f1_by_change
        from nextword.tasks.taggers import HeldOutTags

        if prepared.measured is None or prepared.vocabulary.scheme == "none":
            return model
        yield Stage("choose how readily spans are found")
        part = HeldOutTags(prepared.measured, prepared.vocabulary).some(WORDS)
        found = f1_by_change(model, part, prepared.vocabulary)
        model.lowered = 0.0 if found is None else choose(found)
        if found is not None and model.lowered:
            yield Note(
                f"the tag O is scored {model.lowered:g} lower when tags are chosen: span F1 of held-out "
                f"sentences {found[0.0]:.4f} -> {found[model.lowered]:.4f}"
            )
        return model

    def warm_start(
        self, network: Any, settings: RunSettings, prepared: PreparedTags, start: Trained
    ) -> Iterator[Event]:
        """Copy the weights of another tagger; its vocabulary comes first in ours."""
        from nextword.models.grown import start_from_smaller

        place = str(start.folder.path if start.folder is not None else start.settings.name)
        given = () if prepared.vectors is None else set(prepared.vectors.rows_N.tolist())
        words, tags = start_from_smaller(network, start.model.network, place, given)
        yield Note(f"starting from the weights of {place}; {words:,} words and {tags:,} tags are new to it")

    def fit(self, settings: RunSettings, prepared: PreparedTags, budget: Budget) -> Iterator[Event]:
        """Refuse: every family of taggers learns by steps."""
        raise ConfigError(f"the tagger '{settings.family}' cannot be fitted without steps")

    def save(self, vocabulary: TagVocabulary, folder: NewRun) -> None:
        """Write ``vocabulary.json``."""
        folder.write_json(VOCABULARY, vocabulary.to_json())

    def open(self, folder: RunFolder) -> TagVocabulary:
        """Read ``vocabulary.json``."""
        return TagVocabulary.from_json(folder.read_json(VOCABULARY))

    def load(self, folder: RunFolder, settings: RunSettings) -> tuple[Any, TagVocabulary]:
        """Return the tagger and its vocabulary."""
        _, vocabulary = returned(given_states(settings, self.open(folder), folder))
        return settings.find_family().load(folder, settings.model, vocabulary), vocabulary

    def deciding(self, vocabulary: TagVocabulary) -> str:
        """Return the F1 of spans where tags mark spans: most words are outside all of them."""
        return "accuracy" if vocabulary.scheme == "none" else "span_f1"

    def phrase(self, vocabulary: TagVocabulary) -> str:
        """Return the number of tags and words."""
        return f"{len(vocabulary.tags)} tags, {len(vocabulary.lexicon.words):,} words"

    def about(self, vocabulary: TagVocabulary) -> Mapping[str, Any]:
        """Return tags, scheme and number of words."""
        return {
            "tags": list(vocabulary.tags), "scheme": vocabulary.scheme,
            "words": len(vocabulary.lexicon.words),
        }  # fmt: skip

    def evaluate(self, run: Trained, files: Sequence[str], sets: Mapping[str, Any]) -> Iterator[Event]:
        """Tag the sentences of files and compare."""
        from nextword.core import config
        from nextword.tasks.taggers import measure

        data = cast(TagDataSettings, run.settings.data)
        changed: Any = config.build({"data": TagDataSettings}, {f"data.{k}": v for k, v in data}, sets)[
            "data"
        ]
        began = time.perf_counter()
        yield Stage("read the sentences")
        sentences = TaggedText(files, changed).read()
        check_known(sentences, run.vocabulary)
        counted = TaggedSentences(
            [each.words for each in sentences], [each.tags for each in sentences], run.vocabulary
        )
        yield Stage("tag", len(sentences), "sentences")
        report = None
        for found in measure(run.model, counted, run.vocabulary):
            if isinstance(found, int):
                yield Progress(found)
            else:
                report = found.report(time.perf_counter() - began)
        yield Done(report)

    def predictor(self, run: Trained, options: PredictOptions = DEFAULT_OPTIONS) -> Any:
        """Return what tags raw text."""
        from nextword.tasks.taggers import TagPredictor

        data = cast(TagDataSettings, run.settings.data)
        return TagPredictor(run.model, run.vocabulary, options, data, run.settings.name)

    def shown(self, prediction: Prediction) -> str:
        """Return the words with their tags; tags outside all spans are left out."""
        tokens = prediction.values["tokens"]
        return _sentence([token["text"] for token in tokens], [token["tag"] for token in tokens])

    def inspected(self, run: Trained, text: str | None) -> Inspected:
        """Read tagged sentences (word TAB tag, CoNLL-U), or lines of words, which the tagger tags itself."""
        from nextword.tasks.taggers import TagPredictor

        if text is None:
            return Inspected()
        if "\t" in text or text.lstrip().startswith("{"):
            ending = "conllu" if text.split("\n\n")[0].strip().split("\n")[-1].count("\t") == 9 else "conll"
            with as_file(text, "jsonl" if text.lstrip().startswith("{") else ending) as path:
                found = TaggedText([path], cast(TagDataSettings, run.settings.data)).read()
            return Inspected([each.words for each in found], [each.tags for each in found])
        lines = [untagged.of_text(line) for line in text.split("\n") if line.strip()]
        made = TagPredictor(run.model, run.vocabulary).tag(lines)
        tags = [[token["tag"] for token in each.values["tokens"]] for each in made]
        return Inspected([each.words for each in lines], tags, True)

    def compared(self, minutes: float | None) -> Sequence[str]:
        """Return one family of each kind."""
        return ("window", "convolution", "rnn", "gru", "lstm", "transformer")

    def divide(self, files: Sequence[str], valid: Sequence[str], settings: RunSettings) -> Division:
        """Measure the sentences of ``valid``, or every fifth of the files."""
        data = cast(TagDataSettings, settings.data)
        text = TaggedText(files, data)
        learned = text.read()
        held = TaggedText(valid, data).read() if valid else []
        if not valid:
            learned, held = hold_out(learned, sizes.COMPARED)
        if not held:
            raise DataError(
                f"there are only {len(learned):,} sentences, too few to hold some out; use --valid",
                learned[0].path,
            )
        parts = [sha256(repr([each[:2] for each in part]).encode()).hexdigest() for part in (learned, held)]
        size = sum(len(word) + len(tag) + 2 for each in learned for word, tag in zip(*each[:2], strict=True))
        where = ", ".join(valid) if valid else "the same files"
        return Division(
            TagFiles(Part(text.names, parts[0], size, learned)), held,
            sha256("".join(parts).encode()).hexdigest(),
            f"trained on {len(learned):,} sentences of {', '.join(files)}, "
            f"measured on {len(held):,} of {where}",
            [(" ".join(each.words), _sentence(each.words, each.tags)) for each in held[:_SAMPLES]],
        )  # fmt: skip

    def scores(self, run: Trained, held: list[Tagged]) -> Scores:
        """Tag the held-out sentences; each counts with the F1 of its spans, or its share of right tags."""
        from nextword.tasks.taggers import measure

        counted, report = to_arrays(held, run.vocabulary), None
        each = [0.0] * len(held)
        for found in measure(run.model, counted, run.vocabulary, each):
            report = found
        assert isinstance(report, TagCounts)
        made = report.report()
        values: dict[str, float | None] = {
            "accuracy": made.accuracy,
            "unknown_accuracy": made.unknown_accuracy,
        }
        if made.span_f1 is None:
            return Scores(values, each, "accuracy of a sentence")
        return Scores(values | {"span_f1": made.span_f1}, each, "F1 of a sentence")


def _sentence(words: Sequence[str], tags: Sequence[str]) -> str:
    """Write words with their tags on one line."""
    return " ".join(
        word if tag == spans.OUTSIDE else f"{word}/{tag}" for word, tag in zip(words, tags, strict=True)
    )


def _row_length(settings: RunSettings) -> int:
    """Return how many words a row of ``train.batch`` stands for."""
    return int(cast(Any, settings.train).length or cast(Any, settings.find_family()).row_length)


TASK = Tagging()
