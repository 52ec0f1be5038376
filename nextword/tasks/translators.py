"""Encoder-decoders in training: first weights, loss, held-out pairs, and the report of an evaluation."""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

from nextword.blocks import losses
from nextword.blocks.heads import square_normalizers
from nextword.core.contracts import Source
from nextword.core.errors import ConfigError
from nextword.core.events import Event, Note, Progress, Stage
from nextword.core.family import NetworkFamily
from nextword.core.task import Loss, Measurement, Ranks
from nextword.data.batches.batch import NOT_COUNTED
from nextword.data.batches.pairs import PairRows
from nextword.data.encode import hash_ids
from nextword.data.paired import PairExamples, PairVocabulary
from nextword.data.pairs import PairDataSettings
from nextword.decode.settings import DecodeSettings
from nextword.evaluation.pairs.bleu import Overlap, overlap
from nextword.evaluation.translation import TranslationReport, measured
from nextword.models import precision
from nextword.models.network import Head, device_of
from nextword.models.randomness import INITIAL, seeded
from nextword.models.seq2seq import TranslationTrainSettings, Translator
from nextword.runs.settings import RunSettings
from nextword.tasks.objectives.reading import AtOnce, OneByOne, OwnTokens, TwoPasses, truth_share
from nextword.tasks.translation import forced_scores, translate

if TYPE_CHECKING:
    from nextword.runs.saved import Trained

_INSIDE = re.compile(r"^head\.")  # a head that also copies holds the head over the vocabulary
_ADDED = re.compile(r"^copying\.|\.from_seen\.")  # weights that may be added to those of an earlier run
_WRITTEN, _WRITTEN_TOKENS = 256, 4096  # held-out texts and tokens that are written in training


def first_weights(settings: RunSettings, prepared: Any) -> Any:
    """Build a network whose weights follow from the seed; the output bias may begin at the frequencies."""
    family = settings.find_family()
    assert isinstance(family, NetworkFamily)
    with seeded(torch.device("cpu"), settings.train.seed, INITIAL):
        network = family.build(settings.model, prepared.vocabulary)
    network.vocabulary = prepared.vocabulary
    if cast(TranslationTrainSettings, settings.train).unigram:
        network.head.prepare(torch.from_numpy(_counts(prepared.learned, network.vocab_size)))
    return network


def _counts(examples: PairExamples, vocab_size: int) -> Any:
    """Return how often each token of the targets occurs."""
    target = examples.ids.target
    rows = np.arange(len(target))
    counts_V = np.zeros(vocab_size, np.int64)
    for at in range(0, len(rows), 4096):
        ids_BT, _ = target.take(rows[at : at + 4096], 0)
        lengths_B = target.lengths_N[rows[at : at + 4096]]
        real_BT = np.arange(ids_BT.shape[1]) < lengths_B[:, None]
        counts_V += np.bincount(ids_BT[real_BT], minlength=vocab_size)
    return counts_V


@dataclass(frozen=True)
class TranslationLoss:
    """-log p(target | source), summed; the objective and the loss of an update."""

    settings: TranslationTrainSettings
    own: OwnTokens | None = None  # where a model reads its own tokens
    carries: bool = False

    def at(self, network: Any, progress: float, counts: bool = True) -> TranslationLoss:
        """Return the loss at this point of the training: scheduled sampling depends on it."""
        if self.settings.reads.kind == "teacher":
            return self
        return replace(self, own=OwnTokens(truth_share(self.settings.reads, progress), self.settings.feed))

    def pieces(self, batch: PairRows) -> list[PairRows]:
        """Return the batch: pairs are not cut."""
        return [batch]

    def __call__(self, network: Any, piece: PairRows, before: Any) -> tuple[Loss, None]:
        """Return the loss of a batch."""
        device = device_of(network)
        arrays = (piece.source_BS, piece.source_lengths_B, piece.inputs_BT, piece.targets_BT)
        source_BS, lengths_B, inputs_BT, targets_BT = (torch.from_numpy(a).to(device) for a in arrays)
        products = precision.products_in(precision.dtype_of(self.settings.precision), device)
        with products(), losses.collecting() as found:
            state = network.start(len(inputs_BT), Source(source_BS, lengths_B))
            is_counted_BT = targets_BT != NOT_COUNTED
            if network.covers:  # looking from behind the end of a row costs nothing
                features_BTD, after = network.read(inputs_BT, state, is_counted_BT.sum(dim=1))
                again, weight = after.again_B.sum(), self.settings.coverage_weight
                losses.add("coverage", weight, lambda: again / max(1, piece.tokens))
            else:
                features_BTD, _ = self._reader(network).read(network, inputs_BT, None, state)
            features_ND, targets_N = features_BTD[is_counted_BT], targets_BT[is_counted_BT]
            normalizers = partial(square_normalizers, network.head, features_ND)
            losses.add("z", self.settings.z_loss, lambda: normalizers() / max(1, len(targets_N)))
            loss = cast(Head, network.head).loss(features_ND, targets_N, self.settings.smoothing)
            network.foresee(features_BTD, targets_BT, None)
        total, parts = losses.joined(loss, found, piece.tokens)
        return Loss(total, parts), None

    def _reader(self, network: Any) -> Any:
        """Return what reads the targets: as they are, or mixed with what the model writes itself."""
        if self.own is None:
            return AtOnce()
        return OneByOne(own=self.own) if network.kind == "recurrent" else TwoPasses(self.own)


@dataclass(frozen=True)
class HeldOutPairs:
    """Pairs that are scored and translated while a network learns."""

    examples: PairExamples
    vocabulary: PairVocabulary
    metric: str = "nll"

    @property
    def tokens(self) -> int:
        """Return the number of target tokens."""
        return self.examples.tokens

    def measure(
        self,
        network: Any,
        tokens: int = 0,
        products: AbstractContextManager[Any] | None = None,
        ranks: Ranks | None = None,
    ) -> Measurement:
        """Measure about so many tokens: every n-th pair, the same each time; sources are read greedily."""
        was_training = network.training
        part = self._part(tokens)
        model = Translator(network, self.vocabulary)
        with products or nullcontext():
            nats, count = _nats(model, part)
            most = min(_WRITTEN, max(1, _WRITTEN_TOKENS * len(part) // max(1, part.tokens)))
            found = _written(model, _some(part, most), self.vocabulary)
        network.train(was_training)
        nll = nats / max(1, count)
        values = {"nll": nll, "perplexity": math.exp(min(nll, 700.0))}
        if found is not None:
            values |= {"bleu": found.bleu, "chrf": found.chrf}
        cost = nll if self.metric == "nll" else -float(values.get(self.metric, 0.0))
        return Measurement(values, cost, count)

    def _part(self, tokens: int) -> PairExamples:
        """Return every n-th pair, so that there are about so many tokens; 0: all."""
        every = self.tokens // tokens if tokens else 1
        return self.examples if every < 2 else self.examples.keep(np.arange(0, len(self.examples), every))

    def describe(self, values: Mapping[str, float | None]) -> str:
        """Return perplexity, BLEU and chrF as people read them."""
        shown = f"perplexity {values['perplexity']:.2f}"
        if values.get("bleu") is not None:
            shown += f", BLEU {values['bleu']:.1f}, chrF {values['chrf']:.1f} (greedy)"
        return shown

    def digest(self) -> str:
        """Return the SHA-256 of what is measured."""
        ids = self.examples.ids
        return hash_ids([ids.source.starts_N, ids.source.ids, ids.target.starts_N, ids.target.ids])


def _nats(model: Translator, examples: PairExamples) -> tuple[float, int]:
    """Return -log p of all targets, and the number of their tokens."""
    nats, count = 0.0, 0
    for _, _, logp_BT, lengths_B in forced_scores(model, examples.ids):
        nats -= float(logp_BT.double().sum())
        count += int(lengths_B.sum())
    return nats, count


def _some(examples: PairExamples, most: int) -> PairExamples:
    """Return every n-th pair, at most so many."""
    every = -(-len(examples) // most)
    return examples if every < 2 else examples.keep(np.arange(0, len(examples), every))


GREEDY = DecodeSettings(decode="greedy", max_tokens=1000, max_ratio=2.0)


def _written(model: Translator, examples: PairExamples, vocabulary: PairVocabulary) -> Overlap | None:
    """Translate greedily and compare; None where sacrebleu is not installed."""
    from importlib.util import find_spec

    if find_spec("sacrebleu") is None:
        return None
    texts = [""] * len(examples)
    for rows_B, written in translate(model, examples.ids.source, vocabulary, GREEDY):
        for row, found in zip(rows_B.tolist(), written, strict=True):
            texts[row] = found[0].text
    return overlap(texts, [[target] for target in examples.targets])


def measure(
    model: Translator,
    examples: PairExamples,
    vocabulary: PairVocabulary,
    decode: DecodeSettings,
    data: PairDataSettings | None = None,
) -> Generator[Event, None, TranslationReport]:
    """Translate, compare, and score the targets; the targets of equal sources are references of one text."""
    rows: dict[str, list[int]] = {}
    for row, source in enumerate(examples.sources):
        rows.setdefault(source, []).append(row)
    once = examples.keep(np.array([each[0] for each in rows.values()], np.int64))
    yield Stage("translate", len(once), "texts")
    texts, done = [""] * len(once), 0
    for rows_B, written in translate(model, once.ids.source, vocabulary, decode):
        for row, found in zip(rows_B.tolist(), written, strict=True):
            texts[row] = found[0].text
        done += len(rows_B)
        yield Progress(done)
    references = [[examples.targets[row] for row in each] for each in rows.values()]
    how = data or PairDataSettings()
    nats, count = _nats(model, examples)
    name = f"beam of {decode.beam_size}" if decode.decode == "beam" else decode.decode
    return measured(texts, references, how.measure, how.splitter).with_scores(nats, count, name)


def start_from_run(
    network: Any, settings: RunSettings, prepared: Any, start: Trained
) -> Generator[Event, None, None]:
    """Copy the weights of another run: all of a translation model, or a language model into the decoder."""
    place = str(start.folder.path if start.folder is not None else start.settings.name)
    old = start.model.network
    is_language_model = start.settings.task == "lm"
    ours = prepared.vocabulary
    after = network.state_dict()
    before = _placed(old) if is_language_model else old.state_dict()
    if network.copying is not None and getattr(old, "copying", None) is None:
        before = {_INSIDE.sub("head.head.", key): tensor for key, tensor in before.items()}
    theirs = start.vocabulary if is_language_model else start.vocabulary.target
    if theirs.vocab_size != ours.target.vocab_size:
        raise ConfigError(
            f"--from {place} has {theirs.vocab_size:,} tokens and this run {ours.target.vocab_size:,}; leave "
            "out --tokenizer, so that its own is used"
        )
    if is_language_model:
        windows = (getattr(old, "window", 0), getattr(network, "window", 0))
        before = {key: _spread(tensor, after.get(key), windows) for key, tensor in before.items()}
    copied = {
        key: tensor for key, tensor in before.items() if key in after and tensor.shape == after[key].shape
    }
    needed = before if is_language_model else [key for key in after if not _ADDED.search(key)]
    missing = [key for key in needed if key not in copied]
    if missing:
        raise ConfigError(
            f"--from {place} does not fit: '{missing[0]}' has another size here, or is missing; leave the "
            "settings of the group 'model' as they are in that run"
        )
    network.load_state_dict(copied, strict=False)
    yield Note(_begun(old, place) if is_language_model else f"starting from the weights of {place}")


def _placed(old: Any) -> dict[str, torch.Tensor]:
    """Return the weights of a language model by their names here; marks behind its tokens are left out.

    A masked model sees both sides, as an encoder does, and an encoder-decoder is one already; any other
    begins the decoder.
    """
    marks = max(getattr(old, "marks", 0), getattr(old, "written", 0))
    size, found = old.vocab_size + marks, {}
    for key, tensor in old.state_dict().items():
        is_inner = key.partition(".")[0] not in old.outer
        name = f"reader.encoder.{key}" if is_inner and _is_encoder(old) else key
        cut = marks and tensor.ndim and len(tensor) == size
        found[name] = tensor[: old.vocab_size] if cut else tensor
    return found


def _spread(tensor: torch.Tensor, ours: torch.Tensor | None, windows: tuple[int, int]) -> torch.Tensor:
    """Return weights that belong to places of a window for the window here: places past it stay new."""
    if ours is None or tensor.ndim != ours.ndim or windows[0] > windows[1]:
        return tensor
    sizes = list(zip(tensor.shape, ours.shape, strict=True))
    if not all(there == here or (there, here) == windows for there, here in sizes):
        return tensor
    made = ours.clone()
    made[tuple(slice(there) for there, _ in sizes)] = tensor
    return made


def _is_encoder(old: Any) -> bool:
    """Tell whether a network sees both sides of a token."""
    from nextword.models.masked import MaskedNetwork

    return isinstance(old, MaskedNetwork)


def _begun(old: Any, place: str) -> str:
    """Say which part starts from the weights of a language model."""
    if hasattr(old, "reader"):
        return f"encoder and decoder start from the weights of {place}"
    if _is_encoder(old):
        return f"the encoder starts from the weights of {place}; the decoder is new"
    return f"the decoder starts from the weights of {place}; encoder and attention to it are new"
