"""Language modelling with networks: initial weights, batches, objective and validation."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import torch

from nextword.core.contracts import END, Encoded, NetworkModel, Tokenizer, bits_per_byte
from nextword.core.display import show_number
from nextword.core.errors import ConfigError
from nextword.core.events import Event, Note
from nextword.core.family import NetworkFamily
from nextword.core.task import Batches, Measurement, Ranks
from nextword.data.batches.batch import Columns, Ids, Kind, Stream, check_length, choose_kind, make_batches
from nextword.data.encode import hash_ids
from nextword.models.family import NeuralSettings
from nextword.models.network import MassRemover, Network, NeuralLanguageModel, is_recurrent
from nextword.models.randomness import INITIAL, seeded
from nextword.models.training import NeuralTrainSettings
from nextword.models.warm_start import start_from
from nextword.runs.settings import RunSettings
from nextword.tasks.objectives import bptt
from nextword.tasks.objectives.next_token import NextToken

if TYPE_CHECKING:
    from nextword.runs.saved import Trained
    from nextword.tasks.lm import PreparedText

_SAMPLE = 40  # tokens that a network writes to show what it has learned so far
_LENGTH = 64  # positions of a row, if neither the settings nor the model say
_UNKNOWN = 0.1  # share of unknown tokens from which on a perplexity is misleading


def first_weights(settings: RunSettings, prepared: PreparedText) -> Network:
    """Build a network with its initial weights, drawn from the seed."""
    tokenizer, train = prepared.vocabulary, cast(NeuralTrainSettings, settings.train)
    counts = prepared.counts if train.unigram else np.ones(tokenizer.vocab_size, np.int64)
    network = _build(settings, tokenizer.vocab_size, tokenizer.closed)
    network.prepare(torch.from_numpy(counts))
    return network


def make_source(
    settings: RunSettings, prepared: PreparedText, network: Network
) -> Generator[Event, None, Batches]:
    """Make the batches of an epoch: columns, windows or sentences."""
    train, text, carry = cast(NeuralTrainSettings, settings.train), prepared.text, carries(settings)
    if train.through_time.kind != "full":
        bptt.check(train.through_time, network, settings.family)
    stream = Stream(text.ids, text.documents, carry)
    length = row_length(train, network, stream.pairs)
    check_length(length, stream)
    kind: Kind = (
        choose_kind(text.ids, text.documents, carry, length, is_recurrent(network))
        if train.batches == "auto"
        else train.batches
    )
    if kind == "columns" and not is_recurrent(network):
        raise ConfigError(
            f"'train.batches' is columns, but a {settings.family} carries no state from batch to batch; "
            "allowed are: windows, sentences"
        )
    if (chunk := train.through_time.chunk or 0) > length:
        yield Note(
            f"'train.bptt' is {train.bptt}, but a row has only {length} positions, so the gradient stops "
            f"there; set train.length={chunk} for more"
        )
    return make_batches(kind, text.ids, text.documents, carry, train.batch, length, train.seed)


def next_token(settings: RunSettings, batches: Batches) -> NextToken:
    """Return the objective; columns carry the state from batch to batch."""
    return NextToken(cast(NeuralTrainSettings, settings.train), isinstance(batches, Columns))


def carries(settings: RunSettings) -> bool:
    """Return whether the state is carried from line to line within a document."""
    return cast(NeuralSettings, settings.model).carry


def row_length(train: NeuralTrainSettings, network: Network, pairs: int) -> int:
    """Return the positions of a row: as set, else the model's context, else a default."""
    if train.length:
        return train.length
    context = getattr(network, "window", None) if network.context is None else network.context
    if is_recurrent(network) or context is None or context < _LENGTH // 2:
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
    """Copy the weights of another run into a network."""
    assert isinstance(start.model, NetworkModel)
    place = str(start.folder.path if start.folder is not None else start.settings.name)
    closed = prepared.vocabulary.closed

    def build(size: int) -> Network:
        return _build(settings, size, closed, draw=False)

    with seeded(torch.device("cpu"), settings.train.seed, INITIAL):
        tokenizers = (start.tokenizer, prepared.vocabulary)
        new = start_from(network, start.model.network, tokenizers, build, place)
    yield Note(f"starting from the weights of {place}" + (f"; {new:,} tokens are new to it" if new else ""))
    yield from _unknown_words(prepared, place)


def _unknown_words(prepared: PreparedText, place: str) -> Iterator[Event]:
    """Warn if much of the text is unknown to the vocabulary of the other run, as of another language."""
    facts, tokenizer = prepared.facts, prepared.vocabulary
    share = facts.unknown / max(1, facts.tokens)
    if share >= _UNKNOWN:
        yield Note(
            f"{share:.0%} of the tokens of this text are unknown to the vocabulary of {place} and learned "
            f"as one symbol, so that a low perplexity says little; --tokenizer {tokenizer.name} makes a "
            "vocabulary of this text, in which tokens that the run knows keep their vectors"
        )


def _build(settings: RunSettings, vocab_size: int, closed: bool, draw: bool = True) -> Network:
    family = settings.find_family()
    assert isinstance(family, NetworkFamily)
    if not draw:
        network: Network = family.build(settings.model, vocab_size, closed)
        return network
    with seeded(torch.device("cpu"), settings.train.seed, INITIAL):
        made: Network = family.build(settings.model, vocab_size, closed)
    return made


_ROWS = 32  # of a batch
_SHORTEST = 128  # tokens of a row, if documents are that long
_PIECE = 256  # tokens read at once
_MASS_TOKENS = 2_000  # on which the probability of START and UNKNOWN is measured
Row = npt.NDArray[np.int64]


@dataclass
class HeldOutText:
    """Rows of tokens; the first of each is read but not scored: START, or the token before."""

    rows: list[Row]
    tokens: int  # to predict in the whole text
    bytes: int = 0
    side_nats: float = 0.0
    tokenizer: Tokenizer | None = None
    _chosen: dict[int, list[Row]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, pieces: Iterable[Encoded], carry: bool, most: int = 0, tokenizer: Tokenizer | None = None
    ) -> HeldOutText | None:
        """Make rows of about ``most`` tokens of an encoded text (0: all); None if it has no tokens."""
        ids, documents, size, side = join(pieces, most)
        stream = Stream(ids, documents, carry)
        if not stream.tokens:
            return None
        return cls(_rows(stream), stream.tokens, size, side, tokenizer)

    def some(self, tokens: int) -> list[Row]:
        """Return rows of about this many tokens, spread over the text, longest first."""
        if tokens not in self._chosen:
            share = min(1.0, tokens / self.tokens) if tokens else 1.0
            keep = max(1, round(share * len(self.rows)))
            at = np.linspace(0, len(self.rows) - 1, keep).round().astype(int)
            self._chosen[tokens] = sorted((self.rows[i] for i in at), key=len, reverse=True)
        return self._chosen[tokens]

    def measure(
        self,
        network: Network,
        tokens: int = 0,
        products: AbstractContextManager[Any] | None = None,
        ranks: Ranks | None = None,
    ) -> Measurement:
        """Measure the network on about this many tokens of the text (0: all); ranks share the rows."""
        is_training = network.training
        nats, count = 0.0, 0
        rank, world = (0, 1) if ranks is None else (ranks.rank, ranks.world)
        rows = self.some(tokens)[rank::world]
        with torch.inference_mode(), products or nullcontext():
            model = NeuralLanguageModel(network)
            for at in range(0, len(rows), _ROWS):
                found, scored = _score(model, rows[at : at + _ROWS])
                nats, count = nats + found, count + scored
        network.train(is_training)
        if ranks is not None:
            nats, count = ranks.total(nats), int(ranks.total(count))
        nll = nats / max(1, count)
        bits = bits_per_byte(nll * self.tokens + self.side_nats, self.bytes) if self.bytes else None
        perplexity = math.exp(nll) if nll < 700 else math.inf
        return Measurement({"nll": nll, "perplexity": perplexity, "bits_per_byte": bits}, nll, count)

    def sample(self, network: Network) -> str:
        """Write a few lines with the weights as they are."""
        if self.tokenizer is None:
            return ""
        is_training, model = network.training, NeuralLanguageModel(network)
        lines: list[list[int]] = [[]]
        state = model.start(1)
        logp_1V = model.next(state)
        for number in np.random.default_rng(0).random(_SAMPLE).tolist():
            sums_V = logp_1V[0].double().exp().cumsum(0)
            word = int(torch.searchsorted(sums_V, number * sums_V[-1], right=True).clamp(max=len(sums_V) - 1))
            if word == END:
                lines, state = [*lines, []], model.start(1)
                logp_1V = model.next(state)
                continue
            lines[-1].append(word)
            logp_1V, state = model.step(np.array([word]), state)
        network.train(is_training)
        return "\n".join(self.tokenizer.decode(ids) for ids in lines if ids)

    def final_facts(self, network: Network) -> dict[str, float]:
        """Return the mean probability of START and UNKNOWN, where it is removed when the network is used."""
        if not isinstance(network.head, MassRemover) or not network.head.removes_mass:
            return {}
        model, masses = NeuralLanguageModel(network), []
        rows = [row[:_PIECE] for row in self.some(_MASS_TOKENS)]
        with torch.inference_mode():
            for at in range(0, len(rows), _ROWS):
                ids_BT, lengths_B = _padded(rows[at : at + _ROWS])
                state = model.start(len(ids_BT), None, False)
                before_BTD, _ = model.read(ids_BT, lengths_B, state)
                is_scored_BT = np.arange(ids_BT.shape[1]) < lengths_B[:, None]
                is_scored_BT[:, 0] = False
                features_ND = before_BTD[torch.from_numpy(is_scored_BT).to(before_BTD.device)]
                masses.append(network.head.removed_mass(features_ND))
        return {"removed_mass": float(torch.cat(masses).double().mean())}

    def describe(self, values: Mapping[str, float | None]) -> str:
        """Return perplexity and bits per byte as people read them."""
        nll, bits = values["nll"] or 0.0, values.get("bits_per_byte")
        perplexity = math.exp(nll) if nll < 700 else math.inf
        return f"perplexity {show_number(perplexity)}" + (
            "" if bits is None else f", {bits:.4f} bits per byte"
        )

    def digest(self) -> str:
        """Return the SHA-256 of what is measured."""
        return hash_ids(self.rows)


def join(pieces: Iterable[Encoded], most: int = 0) -> tuple[Ids, npt.NDArray[np.int64] | None, int, float]:
    """Join pieces: ids, offsets of the STARTs that begin a document, bytes and side costs."""
    parts: list[Any] = []
    documents: list[npt.NDArray[np.int64]] = []
    known, offset, size, side = True, 0, 0, 0.0
    for piece in pieces:
        known = known and piece.documents is not None
        documents.append(np.asarray(piece.documents or (), np.int64) + offset)
        parts.append(piece.ids)
        offset, size, side = offset + len(piece.ids), size + piece.bytes, side + piece.side_nats
        if most and offset >= most:
            break
    ids = np.concatenate(parts) if parts else np.zeros(0, np.int32)
    return ids, np.concatenate(documents) if known and documents else None, size, side


def _rows(stream: Stream) -> list[Row]:
    """Cut documents into rows, so that there are enough of them for a batch."""
    longest = max(_SHORTEST, -(-len(stream) // _ROWS))
    places = np.append(stream.places(stream.starts), len(stream))
    rows = []
    for first, last in zip(places[:-1].tolist(), places[1:].tolist(), strict=True):
        for at in range(first, last - 1, longest):
            rows.append(stream.at(np.arange(at, min(at + longest + 1, last))))
    return rows


def _padded(rows: Sequence[Row]) -> tuple[Row, Row]:
    """Return rows as one array, filled up with zeros, and their lengths."""
    lengths = np.array([len(row) for row in rows])
    ids_BT = np.zeros((len(rows), lengths.max()), np.int64)
    for ids_T, row in zip(ids_BT, rows, strict=True):
        ids_T[: len(row)] = row
    return ids_BT, lengths


def _score(model: NeuralLanguageModel, rows: Sequence[Row]) -> tuple[float, int]:
    """Return the nats and number of tokens of some rows, read in pieces with a carried state."""
    ids_BT, lengths = _padded(rows)
    state = model.start(len(rows), None, False)
    nats = 0.0
    for at in range(0, ids_BT.shape[1], _PIECE):
        piece = ids_BT[:, at : at + _PIECE]
        logp_BT, state = model.score(piece, np.clip(lengths - at, 0, piece.shape[1]), state)
        nats -= float(logp_BT[:, 1 if at == 0 else 0 :].double().sum())
    return nats, int(lengths.sum()) - len(rows)
