"""Small taggers, classifiers and translators that train in seconds, by the steps of the trainer."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from nextword.blocks import crf
from nextword.core.events import Done, Event, Measure, Progress
from nextword.data.batches.words import Sentences
from nextword.data.classes import ClassVocabulary, LabelledTexts
from nextword.data.encode import DataFacts
from nextword.data.paired import (
    PairTextSettings,
    PairVocabulary,
    encode_pairs,
    encode_sources,
    fit_vocabulary,
)
from nextword.data.pairs import Pair
from nextword.data.tagged import TaggedSentences, TagVocabulary
from nextword.decode.settings import DecodeSettings
from nextword.experiments.small import Count, Floats
from nextword.models.classifier import NeuralClassifier
from nextword.models.seq2seq import Translator
from nextword.models.tagger import Tagger
from nextword.models.training import NeuralTrainSettings
from nextword.runs.settings import RunSettings, plan
from nextword.tasks.labelled_examples import PreparedClasses
from nextword.tasks.tagged_examples import PreparedTags
from nextword.tasks.taggers import chain_of
from nextword.tasks.translate import PreparedPairs
from nextword.tasks.translation import translate
from nextword.text.lexicon import Lexicon, LexiconSettings
from nextword.training import loop
from nextword.training.job import Job

_SETS: dict[str, Any] = {
    "train.threads": 1, "train.precision": "fp32", "train.log_every": 10, "model.spelling": "none",
    "model.dropout": 0.0, "model.dropout_input": 0.0, "train.rate": 1e-2, "train.batch": 32,
}  # fmt: skip
_TRANSLATE: dict[str, Any] = {
    "train.threads": 1, "train.precision": "fp32", "train.log_every": 10, "model.dropout": 0.0,
    "train.smoothing": 0.0, "train.rate": 5e-3, "model.hidden": 64,
}  # fmt: skip
_ROWS = 64  # sentences that are tagged together


class Sentence(NamedTuple):
    """Words, their tags, and what each tag depends on: a name that the experiment gives it."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    depends: tuple[str, ...]


def train_tagger(
    family: str, sentences: Sequence[Sentence], seed: int, sets: dict[str, Any], count: Count
) -> Generator[Event, None, Tagger]:
    """Train a tagger to the end of ``train.steps``; each tag is predicted by itself."""
    settings = plan(family, task="tag", seed=seed, sets=_SETS | {"model.head": "softmax"} | sets)
    lexicon = Lexicon.of((each.words for each in sentences), LexiconSettings())
    vocabulary = TagVocabulary(lexicon, tuple(sorted({tag for each in sentences for tag in each.tags})))
    prepared = PreparedTags(vocabulary, DataFacts(), _arrays(sentences, vocabulary), None)
    tagger: Tagger = yield from _train(settings, prepared, count)
    return tagger


def train_classifier(
    family: str, texts: Sequence[tuple[str, str]], seed: int, sets: dict[str, Any], count: Count
) -> Generator[Event, None, NeuralClassifier]:
    """Train a classifier on pairs of text and label, to the end of ``train.steps``."""
    settings = plan(family, task="classify", seed=seed, sets=_SETS | sets)
    empty = ClassVocabulary(Lexicon((), (), ()), ("",))
    lexicon = Lexicon.of((empty.words_of(text) for text, _ in texts), LexiconSettings())
    vocabulary = ClassVocabulary(lexicon, tuple(sorted({label for _, label in texts})))
    learned = LabelledTexts([text for text, _ in texts], [(label,) for _, label in texts], vocabulary)
    prepared = PreparedClasses(vocabulary, DataFacts(), learned, None)
    classifier: NeuralClassifier = yield from _train(settings, prepared, count)
    return classifier


def train_translator(
    family: str, pairs: Sequence[tuple[str, str]], seed: int, sets: dict[str, Any], count: Count
) -> Generator[Event, None, Translator]:
    """Train an encoder-decoder on pairs of sentences, word by word, to the end of ``train.steps``."""
    settings = plan(family, task="translate", seed=seed, sets=_TRANSLATE | sets)
    read = [Pair(source, target, "", at) for at, (source, target) in enumerate(pairs, start=1)]
    vocabulary = fit_vocabulary(read, PairTextSettings(tokenizer="words", joint=False))
    prepared = PreparedPairs(vocabulary, DataFacts(), encode_pairs(read, vocabulary), None)
    translator: Translator = yield from _train(settings, prepared, count)
    translator.network.eval()
    return translator


def translated(translator: Translator, sources: Sequence[str], **decoding: Any) -> list[str]:
    """Translate sentences, greedily unless told otherwise."""
    vocabulary = PairVocabulary(translator.source_tokenizer, translator.target_tokenizer)
    settings = DecodeSettings(**{"decode": "greedy", "max_tokens": 400, "max_ratio": 1.5} | decoding)
    texts = [""] * len(sources)
    found = encode_sources(sources, vocabulary.source)
    for rows_B, written in translate(translator, found, vocabulary, settings):
        for row, each in zip(rows_B.tolist(), written, strict=True):
            texts[row] = each[0].text.strip()
    return texts


def right_tags(tagger: Tagger, sentences: Sequence[Sentence]) -> list[list[bool]]:
    """Tag sentences; return for each word whether its tag is right."""
    packed, found = Sentences([each.words for each in sentences], tagger.vocabulary.lexicon), []
    for first in range(0, len(sentences), _ROWS):
        rows_B = np.arange(first, min(first + _ROWS, len(sentences)))
        tags_BT = crf.viterbi(chain_of(tagger, packed.take(rows_B)))[0].tolist()
        for row, tags in zip(rows_B.tolist(), tags_BT, strict=True):
            names = [tagger.vocabulary.tags[tag] for tag in tags]
            found.append([name == tag for name, tag in zip(names, sentences[row].tags, strict=False)])
    return found


def accuracies(tagger: Tagger, sentences: Sequence[Sentence]) -> dict[str, float]:
    """Return the share of right tags for each thing that a tag depends on."""
    right = right_tags(tagger, sentences)
    by_cause: dict[str, list[bool]] = {}
    for each, rights in zip(sentences, right, strict=True):
        for cause, is_right in zip(each.depends, rights, strict=True):
            by_cause.setdefault(cause, []).append(is_right)
    return {cause: float(np.mean(rights)) for cause, rights in sorted(by_cause.items())}


def wrong_labels(classifier: NeuralClassifier, texts: Sequence[tuple[str, str]]) -> Floats:
    """Classify texts; return 1 for each wrong label and 0 for each right one."""
    logits_NK = classifier.logits([text for text, _ in texts])
    labels = classifier.vocabulary.labels
    return np.array(
        [labels[at] != label for at, (_, label) in zip(logits_NK.argmax(1), texts, strict=True)], float
    )


def _arrays(sentences: Sequence[Sentence], vocabulary: TagVocabulary) -> TaggedSentences:
    return TaggedSentences([each.words for each in sentences], [each.tags for each in sentences], vocabulary)


def _train(settings: RunSettings, prepared: Any, count: Count) -> Generator[Event, None, Any]:
    """Train the network of a task; the progress continues that of earlier training runs."""
    task, first = settings.find_task(), count.done
    train = cast(NeuralTrainSettings, settings.train)
    network = task.build(settings, prepared)
    batches = yield from _silent(task.batches(settings, prepared, network))
    network.train()
    job = Job(network, train, batches, task.objective(settings, batches), model=task.model)
    model = None
    for event in loop.fit(job):
        if isinstance(event, Measure):
            count.done = first + int(event.values["step"])
            yield Progress(count.done)
        elif isinstance(event, Done):
            model = event.result.model
    count.done = first + train.steps
    return model


def _silent(events: Generator[Event, None, Any]) -> Generator[Event, None, Any]:
    """Return the result of a generator; its notes are of no use in an experiment."""
    yield from ()
    while True:
        try:
            next(events)
        except StopIteration as end:
            return end.value
