"""Tagging with networks: first weights, loss, held-out sentences, predictions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nextword.blocks import crf, losses
from nextword.blocks.crf import Chain
from nextword.core.family import NetworkFamily
from nextword.core.task import (
    DEFAULT_OPTIONS,
    Loss,
    Measurement,
    Prediction,
    PredictOptions,
    Ranks,
)
from nextword.data import untagged
from nextword.data.batches.ahead import read_ahead
from nextword.data.batches.batch import Ints
from nextword.data.batches.words import Sentences, TaggedRows, WordRows
from nextword.data.conll import TagDataSettings
from nextword.data.spans import Span, parse, spans_of
from nextword.data.tagged import TaggedSentences, TagVocabulary
from nextword.data.untagged import Untagged
from nextword.drawing.marked import Mark, legend, marked
from nextword.drawing.page import CLOSING, Page
from nextword.evaluation.tagging import TagCounts
from nextword.models import precision
from nextword.models.confidence import SpanScorer
from nextword.models.network import device_of
from nextword.models.randomness import INITIAL, seeded
from nextword.models.tagger import Tagger, TaggerNetwork
from nextword.models.training import Forcing
from nextword.models.words import to_tensors
from nextword.runs.settings import RunSettings
from nextword.tasks.objectives.reading import OwnTokens, truth_share

TEACHER = Forcing("teacher")
_ROWS = 64  # sentences of a batch that is measured or predicted
_POSITIONS = 1 << 14  # of such a batch, at most
_CHUNK, _CHUNK_WORDS = 1024, 1 << 16  # sentences and words that are read ahead and sorted by length


def first_weights(settings: RunSettings, prepared: Any) -> TaggerNetwork:
    """Build a network whose weights follow from the seed."""
    family = settings.find_family()
    assert isinstance(family, NetworkFamily)
    with seeded(torch.device("cpu"), settings.train.seed, INITIAL):
        network: TaggerNetwork = family.build(settings.model, prepared.vocabulary, prepared.vocabulary.states)
    network.vocabulary = prepared.vocabulary
    if prepared.vectors is not None:
        prepared.vectors.fill(network.words)
    return network


@dataclass(frozen=True)
class TagLoss:
    """-log p(tags | words), summed; the objective and the loss of an update."""

    precision: str
    forcing: Forcing = TEACHER
    own: OwnTokens | None = None  # where an autoregressive tagger reads its own tags
    feed: str = "sample"
    carries: bool = False

    def at(self, network: TaggerNetwork, progress: float, counts: bool = True) -> TagLoss:
        """Return the loss at this point of the training: scheduled sampling depends on it."""
        if self.forcing.kind == "teacher":
            return self
        return replace(self, own=OwnTokens(truth_share(self.forcing, progress), self.feed))

    def pieces(self, batch: TaggedRows) -> list[TaggedRows]:
        """Return the batch: sentences are not cut."""
        return [batch]

    def __call__(self, network: TaggerNetwork, piece: TaggedRows, before: Any) -> tuple[Loss, None]:
        """Return the loss of a batch."""
        device = device_of(network)
        words = to_tensors(piece, device)
        assert piece.tags_BT is not None
        tags_BT = torch.from_numpy(piece.tags_BT).to(device)
        products = precision.products_in(precision.dtype_of(self.precision), device)
        with products(), losses.collecting() as found:
            loss = network.loss(words, tags_BT, None if self.own is None else self._fed)
        total, parts = losses.joined(loss, found, piece.tokens)
        return Loss(total, parts), None

    def _fed(self, true_B: Tensor, scores_BK: Tensor) -> Tensor:
        """Choose what is read after a word: its true tag, or the network's own."""
        assert self.own is not None
        own_B = self.own.pick(scores_BK.float().log_softmax(dim=1))
        return torch.where(self.own.is_true(true_B), true_B, own_B)


@dataclass(frozen=True)
class HeldOutTags:
    """Sentences that are tagged while a network learns."""

    examples: TaggedSentences
    vocabulary: TagVocabulary

    @property
    def tokens(self) -> int:
        """Return the number of words."""
        return int(self.examples.sentences.lengths_N.sum())

    def measure(
        self,
        network: TaggerNetwork,
        tokens: int = 0,
        products: AbstractContextManager[Any] | None = None,
        ranks: Ranks | None = None,
    ) -> Measurement:
        """Tag about so many words: every n-th sentence, the same each time."""
        was_training = network.training
        with products or nullcontext():
            *_, counts = measure(Tagger(network, self.vocabulary), self.some(tokens), self.vocabulary)
        assert isinstance(counts, TagCounts)
        network.train(was_training)
        report = counts.report()
        values = {"accuracy": report.accuracy}
        if report.span_f1 is not None:
            values["span_f1"] = report.span_f1
        cost = -report.accuracy if report.span_f1 is None else -report.span_f1 - 0.01 * report.accuracy
        return Measurement(values, cost, report.words)

    def some(self, tokens: int) -> TaggedSentences:
        """Return every n-th sentence, so that there are about so many words; 0: all."""
        every = self.tokens // tokens if tokens else 1
        if every < 2:
            return self.examples
        return TaggedSentences(self.examples.words[::every], self.examples.tags[::every], self.vocabulary)

    def describe(self, values: Mapping[str, float | None]) -> str:
        """Return accuracy and F1 as people read them."""
        shown = f"accuracy {values['accuracy']:.2%}"
        return shown + (f", span F1 {values['span_f1']:.4f}" if "span_f1" in values else "")

    def digest(self) -> str:
        """Return the SHA-256 of what is measured."""
        found = hashlib.sha256(self.examples.sentences.form_ids.tobytes())
        found.update(self.examples.tag_ids.tobytes())
        return found.hexdigest()


@torch.inference_mode()
def chain_of(tagger: Tagger, rows: WordRows) -> Chain:
    """Return the scores of tags for a batch."""
    return tagger.network.chain(to_tensors(rows, device_of(tagger.network), tagger.spelled))


def by_length(lengths_N: Ints) -> Iterator[Ints]:
    """Yield rows of similar length, a batch at a time."""
    order = np.argsort(-lengths_N, kind="stable")
    at = 0
    while at < len(order):
        rows = min(_ROWS, max(1, _POSITIONS // max(1, int(lengths_N[order[at]]))))
        yield order[at : at + rows]
        at += rows


def measure(
    tagger: Tagger,
    examples: TaggedSentences,
    vocabulary: TagVocabulary,
    each: list[float] | None = None,
) -> Iterator[int | TagCounts]:
    """Tag sentences and count; yields how many are done, and at the end the counts.

    ``each`` gets the score of every sentence (`TagCounts.add`), if it is given.
    """
    counts = TagCounts(vocabulary.scheme, vocabulary.tags)
    names, lexicon, done = vocabulary.tags, vocabulary.lexicon, 0
    for rows_B in by_length(examples.sentences.lengths_N):
        chain = chain_of(tagger, examples.sentences.take(rows_B))
        tags_BT = tagger.best(chain).tolist()
        single_BT = chain.emissions_BTK.argmax(dim=-1).tolist()
        for row, tags, single in zip(rows_B.tolist(), tags_BT, single_BT, strict=True):
            words, gold = examples.words[row], examples.tags[row]
            unknown = [not lexicon.is_known(word) for word in words]
            score = counts.add(gold, [names[tag] for tag in tags[: len(words)]], unknown)
            if each is not None:
                each[row] = score
            counts.count_repair([names[tag] for tag in single[: len(words)]])
        done += len(rows_B)
        yield done
    yield counts


class TagPredictor:
    """Tags sentences, in order, in bounded memory; batches inside are sorted by length."""

    def __init__(
        self,
        tagger: Tagger,
        vocabulary: TagVocabulary,
        options: PredictOptions = DEFAULT_OPTIONS,
        data: TagDataSettings | None = None,
        name: str = "",
    ) -> None:
        self.tagger, self.vocabulary, self.options = tagger, vocabulary, options
        self.data, self.name = data or TagDataSettings(), name
        self.has_spans = vocabulary.scheme != "none"
        self._scorer = SpanScorer(vocabulary.tags, vocabulary.scheme) if self.has_spans else None
        self.labels = _labels(vocabulary)
        self._colours = {label: at for at, label in enumerate(self.labels)}

    def predict(self, inputs: Iterable[str]) -> Iterator[Prediction]:
        """Yield one prediction for each line."""
        return self._predicted(untagged.read(inputs, self.options.pretokenized))

    def predict_file(self, file: str) -> Iterator[Prediction]:
        """Yield one prediction for each sentence of a file."""
        return self._predicted(untagged.read_file(file, self.data, self.options.pretokenized))

    def write(self, predictions: Iterable[Prediction]) -> Iterator[str]:
        """Yield the lines of all words, a blank line behind each sentence; or a page."""
        if self.options.format != "html":
            yield from (f"{each.text}\n" for each in predictions)
            return
        yield Page(f"Tagged by {self.name or 'a tagger'}").opening() + legend(self.labels) + "\n"
        yield from (f"{each.text}\n" for each in predictions)
        yield CLOSING

    def _predicted(self, sentences: Iterable[Untagged]) -> Iterator[Prediction]:
        for chunk in read_ahead(sentences, _CHUNK, lambda each: len(each.words), _CHUNK_WORDS):
            yield from self.tag(chunk)

    def tag(self, sentences: Sequence[Untagged]) -> list[Prediction]:
        """Tag some sentences."""
        packed = Sentences([each.words for each in sentences], self.vocabulary.lexicon)
        found: list[Prediction | None] = [None] * len(sentences)
        for rows_B in by_length(packed.lengths_N):
            rows_B = rows_B[packed.lengths_N[rows_B] > 0]
            if not len(rows_B):
                continue
            chain = chain_of(self.tagger, packed.take(rows_B))
            rows = rows_B.tolist()
            for row, sure in zip(rows, self._tags([sentences[row] for row in rows], chain), strict=True):
                found[row] = self._prediction(sentences[row], sure)
        nothing = SureTags([], [], [], [])
        return [each or self._prediction(sentences[at], nothing) for at, each in enumerate(found)]

    def _tags(self, sentences: Sequence[Untagged], chain: Chain) -> list[SureTags]:
        """Return the best tags of a batch, their spans, and how sure both are."""
        passes = crf.lattice(chain)
        tags_BT = self.tagger.best(chain)
        p_BT = crf.marginals(chain, passes).gather(2, tags_BT[..., None])[..., 0].tolist()
        made = []
        for words, tags, sure in zip(sentences, tags_BT.tolist(), p_BT, strict=True):
            names = [self.vocabulary.tags[tag] for tag in tags[: len(words.words)]]
            spans = spans_of(names, self.vocabulary.scheme) if self.has_spans else []
            made.append(SureTags(names, sure[: len(names)], spans, []))
        if self._scorer is not None:
            asked = [(row, span) for row, each in enumerate(made) for span in each.spans]
            for (row, _), p in zip(asked, self._scorer.probabilities(chain, passes, asked), strict=True):
                made[row].p_spans.append(p)
        return made

    def _prediction(self, sentence: Untagged, sure: SureTags) -> Prediction:
        tokens = [
            {"text": word, "tag": name, "confidence": round(p, 6)}
            for word, name, p in zip(sentence.words, sure.tags, sure.p_tags, strict=True)
        ]
        spans = []
        for span, p in zip(sure.spans, sure.p_spans, strict=True):
            start, end = sentence.places[span.start].start, sentence.places[span.end - 1].end
            spans.append(
                {
                    "start": span.start, "end": span.end, "label": span.label,
                    "text": sentence.text[start:end], "confidence": round(p, 6),
                }
                | ({"from": start, "to": end} if sentence.is_raw else {})
            )  # fmt: skip
        text = self._drawn(sentence, sure) if self.options.format == "html" else _columns(sentence, sure.tags)
        return Prediction(text, {"tokens": tokens, "spans": spans})

    def _drawn(self, sentence: Untagged, sure: SureTags) -> str:
        places = sentence.places
        if self.has_spans:
            parts = [(span.start, span.end, span.label) for span in sure.spans]
        else:
            parts = [(at, at + 1, tag) for at, tag in enumerate(sure.tags)]
        marks = [
            Mark(places[start].start, places[end - 1].end, label, self._colours.get(label, 0), p)
            for (start, end, label), p in zip(
                parts, sure.p_spans if self.has_spans else sure.p_tags, strict=True
            )
        ]
        return marked(sentence.text, marks, below=not self.has_spans)


class SureTags(NamedTuple):
    """The tags and spans of a sentence, and the probability of each."""

    tags: list[str]
    p_tags: list[float]
    spans: list[Span]
    p_spans: list[float]


def _labels(vocabulary: TagVocabulary) -> list[str]:
    """Return what a legend shows: the labels of spans, or the tags, the most frequent first."""
    if vocabulary.scheme == "none":
        return list(vocabulary.tags)
    parsed = [parse(tag) for tag in vocabulary.tags]
    return list(dict.fromkeys(each.label for each in parsed if each is not None and each.label))


def _columns(sentence: Untagged, tags: Sequence[str]) -> str:
    if sentence.rows is not None:
        return sentence.rows.fill(tags)
    return "".join(f"{word}\t{tag}\n" for word, tag in zip(sentence.words, tags, strict=True))
