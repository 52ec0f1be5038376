"""From settings and ids to a job for the loop: network, first weights, batches, held-out text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch

from nextword.blocks.randomness import INITIAL, seeded
from nextword.core.contracts import START, Encoded
from nextword.core.errors import ConfigError
from nextword.core.events import Done, Event, Note
from nextword.data.batches.batch import Ids, Kind
from nextword.data.batches.sentences import choose_kind, make_batches
from nextword.data.batches.stream import Stream, check_length
from nextword.data.encode import Text
from nextword.models import precision
from nextword.models.network import Head, Network, NeuralLanguageModel
from nextword.models.precision import find_device
from nextword.models.training import NeuralTrainSettings
from nextword.runs.settings import RunSettings
from nextword.tasks.held_out import HeldOut
from nextword.tasks.objectives import bptt
from nextword.training.conditions import Conditions
from nextword.training.loop import Job
from nextword.training.warm_start import start_from

_HELD_OUT = 10  # times as much held-out text is read as is measured at once
_PIECE = 1 << 22  # ids counted at once
_LENGTH = 64  # positions of a row, where neither the settings nor the model say


def prepare(
    settings: RunSettings, text: Text, held_out: Iterable[Encoded] | None, conditions: Conditions
) -> Iterator[Event]:
    """Notes, then ``Done(Job)``."""
    train = cast(NeuralTrainSettings, settings.train)
    carry = bool(getattr(settings.model, "carry", True))
    network = build(settings, text, conditions)
    products = precision.choose(train.precision, network, conditions.ranks)
    train = train.model_copy(update={"precision": products})
    bptt.check(train.through_time, network, settings.family)
    if conditions.start is not None:
        yield from _warm(network, settings, text, conditions)
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
    source = make_batches(kind, text.ids, text.documents, carry, train.batch, length, train.seed)
    held = None if held_out is None else HeldOut.of(held_out, carry, _HELD_OUT * train.valid_tokens)
    if held is None and train.patience:
        yield Note("there is no held-out text, so train.patience has nothing to wait for")
    yield Done(Job(
        network, train, source, kind == "columns", held, conditions.clock, conditions.stop, conditions.ranks,
        lambda: build(settings, text, conditions),
    ))  # fmt: skip


def build(settings: RunSettings, text: Text, conditions: Conditions) -> Network:
    """A new network with its first weights, on its device."""
    family: Any = settings.find_family()
    device, tokenizer = find_device(conditions.device), text.tokenizer
    with seeded(torch.device("cpu"), settings.train.seed, INITIAL):
        network: Network = family.build(settings.model, tokenizer.vocab_size, tokenizer.closed)
    counts = np.ones(tokenizer.vocab_size, np.int64)
    if cast(NeuralTrainSettings, settings.train).unigram:
        counts = count_ids(text.ids, tokenizer.vocab_size)
    cast(Head, network.head).prepare(torch.from_numpy(counts))
    return network.to(device)


def count_ids(ids: Ids, vocab_size: int) -> npt.NDArray[np.int64]:
    """How often each word has to be predicted; START never."""
    counts = np.zeros(vocab_size, np.int64)
    for at in range(0, len(ids), _PIECE):
        counts += np.bincount(ids[at : at + _PIECE], minlength=vocab_size)
    counts[START] = 0
    return counts


def row_length(train: NeuralTrainSettings, network: Network, pairs: int) -> int:
    """Positions of a row: as set, else the model's context, else a usual number, as far as there are."""
    if train.length:
        return train.length
    context = network.context
    if bptt.is_recurrent(network) or context is None or context < _LENGTH // 2:
        return max(1, min(_LENGTH, pairs))
    if context > pairs:
        raise ConfigError(
            f"'model.context' is {context:,} words, but the whole text has only {pairs:,}; set at most "
            f"{max(1, pairs):,}, or give more text"
        )
    return context


def _warm(network: Network, settings: RunSettings, text: Text, conditions: Conditions) -> Iterator[Event]:
    start, family = conditions.start, cast(Any, settings.find_family())
    assert start is not None
    assert isinstance(start.model, NeuralLanguageModel)
    place = str(start.folder.path if start.folder is not None else start.settings.name)
    with seeded(torch.device("cpu"), settings.train.seed, INITIAL):
        new = start_from(
            network,
            start.model.network,
            (start.tokenizer, text.tokenizer),
            lambda size: cast(Network, family.build(settings.model, size, text.tokenizer.closed)),
            place,
        )
    yield Note(f"begins with the weights of {place}" + (f"; {new:,} words are new to it" if new else ""))
