"""What the task of a language model makes of a network: first weights, batches and the objective."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, cast

import numpy as np
import torch

from nextword.blocks.randomness import INITIAL, seeded
from nextword.core.errors import ConfigError
from nextword.core.events import Event, Note
from nextword.core.family import NetworkFamily
from nextword.core.task import Batches
from nextword.data.batches.batch import Kind
from nextword.data.batches.sentences import choose_kind, make_batches
from nextword.data.batches.stream import Columns, Stream, check_length
from nextword.models.family import NeuralSettings
from nextword.models.network import Head, Network, NeuralLanguageModel
from nextword.models.training import NeuralTrainSettings
from nextword.models.warm_start import start_from
from nextword.runs.settings import RunSettings
from nextword.tasks.objectives import bptt
from nextword.tasks.objectives.next_token import NextToken

if TYPE_CHECKING:
    from nextword.runs.saved import Trained
    from nextword.tasks.lm import PreparedText

_LENGTH = 64  # positions of a row, where neither the settings nor the model say


def first_weights(settings: RunSettings, prepared: PreparedText) -> Network:
    """Make a network with its first weights, as the seed draws them."""
    tokenizer, train = prepared.vocabulary, cast(NeuralTrainSettings, settings.train)
    network = _build(settings, tokenizer.vocab_size, tokenizer.closed)
    counts = prepared.counts() if train.unigram else np.ones(tokenizer.vocab_size, np.int64)
    cast(Head, network.head).prepare(torch.from_numpy(counts))
    return network


def make_source(
    settings: RunSettings, prepared: PreparedText, network: Network
) -> Generator[Event, None, Batches]:
    """Return what an epoch reads: columns, windows or sentences."""
    train, text, carry = cast(NeuralTrainSettings, settings.train), prepared.text, carries(settings)
    bptt.check(train.through_time, network, settings.family)
    stream = Stream(text.ids, text.documents, carry)
    length = row_length(train, network, stream.pairs)
    check_length(length, stream)
    kind: Kind = (
        choose_kind(text.ids, text.documents, carry, length, bptt.is_recurrent(network))
        if train.batches == "auto"
        else train.batches
    )
    if kind == "columns" and not bptt.is_recurrent(network):
        raise ConfigError(
            f"'train.batches' is columns, but a {settings.family} carries no state from batch to batch; "
            "allowed are: windows, sentences"
        )
    if (chunk := train.through_time.chunk or 0) > length:
        yield Note(
            f"'train.bptt' is {train.bptt}, but a row has {length} positions, so the gradient goes back no "
            f"further; set train.length={chunk} for more"
        )
    return make_batches(kind, text.ids, text.documents, carry, train.batch, length, train.seed)


def next_token(settings: RunSettings, batches: Batches) -> NextToken:
    """Return the objective; columns carry the state from batch to batch."""
    return NextToken(cast(NeuralTrainSettings, settings.train), isinstance(batches, Columns))


def carries(settings: RunSettings) -> bool:
    """Return whether the state goes on from line to line within a document."""
    return cast(NeuralSettings, settings.model).carry


def row_length(train: NeuralTrainSettings, network: Network, pairs: int) -> int:
    """Return the positions of a row: as set, else the model's context, else a usual number."""
    if train.length:
        return train.length
    context = network.context
    if bptt.is_recurrent(network) or context is None or context < _LENGTH // 2:
        return max(1, min(_LENGTH, pairs))
    if context > pairs:
        raise ConfigError(
            f"'model.context' is {context:,} tokens, but the whole text has only {pairs:,}; set at most "
            f"{max(1, pairs):,}, or give more text"
        )
    return context


def start_from_run(
    network: Network, settings: RunSettings, prepared: PreparedText, start: Trained
) -> Iterator[Event]:
    """Put the weights of another run into a network."""
    assert isinstance(start.model, NeuralLanguageModel)
    place = str(start.folder.path if start.folder is not None else start.settings.name)
    closed = prepared.vocabulary.closed

    def build(size: int) -> Network:
        return _build(settings, size, closed, draw=False)

    with seeded(torch.device("cpu"), settings.train.seed, INITIAL):
        tokenizers = (start.tokenizer, prepared.vocabulary)
        new = start_from(network, start.model.network, tokenizers, build, place)
    yield Note(f"starts with the weights of {place}" + (f"; {new:,} tokens are new to it" if new else ""))


def _build(settings: RunSettings, vocab_size: int, closed: bool, draw: bool = True) -> Network:
    family = settings.find_family()
    assert isinstance(family, NetworkFamily)
    if not draw:
        network: Network = family.build(settings.model, vocab_size, closed)
        return network
    with seeded(torch.device("cpu"), settings.train.seed, INITIAL):
        made: Network = family.build(settings.model, vocab_size, closed)
    return made
