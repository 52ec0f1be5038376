"""Why a run expects a word: counts and backoff, members and neighbours, attention, the words that mattered.

Each family answers in its own way; what it has nothing to say about is left empty.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from nextword.api.inspect import subject_of
from nextword.api.next import likely_tokens
from nextword.api.opened import Opened
from nextword.api.typed import asks_tokens, typed_words
from nextword.core.contracts import (
    END,
    NATS_PER_BIT,
    SPECIALS,
    START,
    LanguageModel,
    NetworkModel,
    PieceTokenizer,
    context_of,
)
from nextword.core.errors import DataError
from nextword.decode.words import FoundWord
from nextword.evaluation.lm.evidence import TokenEvidence, evidence_after
from nextword.models.distributions import as_numpy
from nextword.ngram.model import NgramModel
from nextword.probe.backoff import Level, levels
from nextword.probe.subject import Subject

_LEFT_OUT = 12  # words that are left out, one at a time
_LOOKED = 48  # tokens that attention is shown over
_MEMBERS = 4  # places that are shown for each member
_PLAIN = ("network", "counts")  # members without a name of their own: of models that are not mixtures


@dataclass(frozen=True)
class TokenReason:
    """One token of the word: the contexts that an n-gram model tried, or what each member predicts."""

    text: str
    probability: float
    levels: tuple[Level, ...] = ()
    said: tuple[Any, ...] = ()


@dataclass(frozen=True)
class LookedAt:
    """How much the last token looks at those before it: ``weights[layer][head][token]``."""

    tokens: tuple[str, ...]
    weights: list[list[list[float]]]


@dataclass(frozen=True)
class Reasons:
    """What is known about the probability of a word."""

    word: str
    probability: float
    model: str  # in a phrase
    tokens: tuple[TokenReason, ...]
    looked_at: LookedAt | None = None
    left_out: tuple[tuple[str, float], ...] = ()  # each word before, and the bits it saves
    is_adjusted: bool = False  # the counts of shorter contexts are Kneser-Ney's

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def reasons(run: Opened, text: str, word: str) -> Reasons:
    """Explain the probability of a word after a text, as `next` finds it."""
    subject = subject_of(run)
    read, chosen = _chosen(run, text, word)
    is_kneser_ney = isinstance(run.model, NgramModel) and "kneser-ney" in run.model.smoothing
    return Reasons(
        word, chosen.probability, subject.described, tuple(_tokens(run, subject, read, chosen.ids)),
        _looked_at(subject, read), tuple(_left_out(run, read, chosen.ids)), is_kneser_ney,
    )  # fmt: skip


def _chosen(run: Opened, text: str, word: str) -> tuple[tuple[int, ...], FoundWord]:
    """Return the tokens that were read, and the word or token that may come after them."""
    if asks_tokens(run, text):
        read = tuple(int(index) for index in run.tokenizer.encode(text))
        listed = [each for each in likely_tokens(run, text, None) if each.text == word]
    else:
        found = typed_words(run, text, words=[_as_read(run, word)])
        read, listed = found.read, list(found.words)
        if word == SPECIALS[END]:
            listed = [FoundWord(word, found.end, (END,))]
    if not listed:
        raise DataError(
            f"'{word}' cannot come next for this model, so there is nothing to explain; choose a word that "
            "is shown"
        )
    return read, listed[0]


def _as_read(run: Opened, word: str) -> str:
    """Return a word with the letters that the model knows."""
    is_pieces = isinstance(run.tokenizer, PieceTokenizer)
    return run.tokenizer.decode(run.tokenizer.encode(word)) if is_pieces else word


def _tokens(run: Opened, subject: Subject, read: tuple[int, ...], ids: tuple[int, ...]) -> list[TokenReason]:
    """Return the reason of each token of the word, after those before it."""
    if isinstance(run.model, NgramModel):
        chains = [levels(subject, (*read, *ids[:n]), index) for n, index in enumerate(ids)]
        return [
            TokenReason(_piece(run, index), _product(chain), tuple(chain))
            for index, chain in zip(ids, chains, strict=True)
        ]
    found = evidence_after(run.model, run.tokenizer, read, ids, _MEMBERS, run.members)
    return [TokenReason(each.text, each.probability, (), _said(each)) for each in found]


def _product(chain: list[Level]) -> float:
    paid = [each.weight for each in chain if each.weight is not None]
    return float(np.prod([*paid, chain[-1].probability or 0.0]))


def _said(found: TokenEvidence) -> tuple[Any, ...]:
    """Return the members; a model that has none says no more than its probability."""
    is_plain = len(found.said) == 1 and found.said[0].name in _PLAIN
    return () if is_plain else found.said


def _piece(run: Opened, index: int) -> str:
    return run.tokenizer.piece(index)


def _looked_at(subject: Subject, read: tuple[int, ...]) -> LookedAt | None:
    """Return the attention of the token that predicts the word, for a Transformer."""
    if subject.kind != "transformer" or not read:
        return None
    from nextword.probe import maps  # needs torch

    if not maps.has_attention(subject.network):
        return None
    row = subject.row_of([START, *read][-min(_LOOKED, subject.network.window) :])
    weights_LNS = maps.attention(subject.network, row.ids_T).weights_LNTS[:, :, -1]
    return LookedAt(row.labels, np.round(weights_LNS, 4).tolist())


def _left_out(run: Opened, read: tuple[int, ...], ids: tuple[int, ...]) -> list[tuple[str, float]]:
    """Return how many bits more the word would cost without each of the words before it, for a network."""
    if not isinstance(run.model, NetworkModel) or not read:
        return []
    words = _words(run, read)[-_LEFT_OUT:]
    rows = [read, *(read[:first] + read[last:] for first, last in words)]
    bits = _cost(run.model, rows, ids)
    return [
        (run.tokenizer.decode(read[first:last]).strip() or "␣", cost - bits[0])
        for (first, last), cost in zip(words, bits[1:], strict=True)
    ]


def _words(run: Opened, read: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return where the words of a prompt begin and end, in tokens."""
    if not isinstance(run.tokenizer, PieceTokenizer):
        return [(at, at + 1) for at in range(len(read))]
    data = [run.tokenizer.data(index) for index in read]
    after = [b" ", *data]  # what stands before each token
    begins = [at for at in range(len(read)) if data[at][:1].isspace() or after[at][-1:].isspace()]
    return list(zip(begins, [*begins[1:], len(read)], strict=True))


def _cost(model: LanguageModel, rows: list[tuple[int, ...]], ids: tuple[int, ...]) -> list[float]:
    """Return -log2 p of tokens after each of several prompts, in one pass."""
    context = context_of(model)
    kept = [row if context is None else row[max(0, len(row) - context) :] for row in rows]
    lengths_B = np.array([len(row) + len(ids) for row in kept])
    ids_BT = np.full((len(kept), int(lengths_B.max())), END, dtype=np.int64)
    for at, row in enumerate(kept):
        ids_BT[at, : lengths_B[at]] = (*row, *ids)
    logp_BT = as_numpy(model.score(ids_BT, lengths_B)[0], np.float64)
    nats = [-float(logp_BT[at, length - len(ids) : length].sum()) for at, length in enumerate(lengths_B)]
    return [each / NATS_PER_BIT for each in nats]
