"""Attention maps of any layer and head, and what each head attends to on average.

[MAUSAM "Transformers (2017) Made Many Changes at Once!": multiple heads], [PENN "Dot-Product Attention":
which words are looked at]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nextword.drawing.coloured import coloured
from nextword.drawing.heat import Names, heat, thumbnails
from nextword.drawing.page import Table
from nextword.probe import alignment
from nextword.probe.pairs import PairSubject
from nextword.probe.result import Figure, ProbeResult
from nextword.probe.selection import check_layer
from nextword.probe.settings import ProbeSettings
from nextword.probe.subject import Subject, TokenRow
from nextword.probe.words import WordSubject

Array = np.ndarray[Any, np.dtype[Any]]
_TOKENS = 40
_SMALL = 32  # tokens of a small map


class OfAttention:
    """What each token attends to."""

    about = "attention maps of every layer and head (--layer L --head N for one)"
    needs = "translation runs, Transformers and attention pooling"

    def fits(self, subject: Subject) -> bool:
        """Accept networks whose blocks mix by attention, or whose pooling does."""
        if isinstance(subject, WordSubject):
            from nextword.probe import maps  # needs torch

            return maps.of_encoder(subject.network) is not None or maps.has_pooling(subject.network)
        if isinstance(subject, PairSubject):
            return subject.attends
        if subject.kind != "transformer":
            return False
        from nextword.probe import maps  # needs torch

        return maps.has_attention(subject.network)

    def look(self, subject: Subject, settings: ProbeSettings, against: Subject | None = None) -> ProbeResult:
        """Draw all maps small, and one large: the one asked for, or the one that looks farthest."""
        from nextword.probe import maps  # needs torch

        if isinstance(subject, PairSubject):
            return alignment.every_head(subject, settings)
        if isinstance(subject, WordSubject):
            return _of_words(subject, settings)
        limit = min(settings.tokens or _TOKENS, subject.network.window)
        row = subject.row(limit)
        found = maps.attention(subject.network, row.ids_T)
        weights = found.weights_LNTS
        facts = habits(weights)
        layer = check_layer(settings.layer, len(weights))
        head = check_layer(settings.head, weights.shape[1], "head")
        if layer < 0 or head < 0:
            layer, head = _farthest(facts["distance"], layer, head)
        return ProbeResult(
            "attention", subject.name, f"What the tokens look at: {subject.name}",
            _sentence(facts, found.gap),
            'MAUSAM "Transformer Language Model"', {"weights_LNTS": weights, **facts},
            {"T": row.labels, "S": row.labels},
            (_all(weights), _one(weights[layer, head], row, layer, head), _table(facts)),
        )  # fmt: skip


def _of_words(subject: WordSubject, settings: ProbeSettings) -> ProbeResult:
    """Draw the attention of a tagger's or classifier's encoder, or of its pooling, over one sentence."""
    from nextword.probe import maps  # needs torch

    row = _longest(subject, settings.tokens or _TOKENS)
    slide = 'MAUSAM "Encoders"'
    if maps.of_encoder(subject.network) is None:
        weights_T = maps.pooled(subject.network, row.batch)
        best = int(np.argmax(weights_T))
        sentence = f"'{row.words[best]}' counts most for the label ({100 * weights_T[best]:.0f} %)."
        title = f"How much each word counts: {subject.name}"
        picture = coloured([f"{word} " for word in row.words], weights_T.tolist(), title, "share", (0.0, 1.0))
        return ProbeResult(
            "attention", subject.name, title, sentence, slide, {"weights_T": weights_T}, {"T": row.words},
            (Figure(title, picture, "The weights sum to 1."),),
        )  # fmt: skip
    found = maps.encoded(subject.network, row.batch)
    weights, facts = found.weights_LNTS, habits(found.weights_LNTS)
    layer = check_layer(settings.layer, len(weights))
    head = check_layer(settings.head, weights.shape[1], "head")
    if layer < 0 or head < 0:
        layer, head = _farthest(facts["distance"], layer, head)
    labels = TokenRow(np.arange(len(row.words)), tuple(row.words))
    return ProbeResult(
        "attention", subject.name, f"What the words look at: {subject.name}", _sentence(facts, found.gap),
        slide, {"weights_LNTS": weights, **facts}, {"T": row.words, "S": row.words},
        (_all(weights), _one(weights[layer, head], labels, layer, head, is_causal=False), _table(facts)),
    )  # fmt: skip


def _longest(subject: WordSubject, tokens: int) -> OneSentence:
    """Return the longest sentence, cut to this many words."""
    words = max(subject.sentences(100 * tokens), key=len)[:tokens]
    alone = WordSubject(subject.name, subject.model, subject.noun, [words], [""])
    return OneSentence(words, next(alone.batches(tokens)))


class OneSentence(NamedTuple):
    """A sentence and its tensors."""

    words: list[str]
    batch: Any


def habits(weights_LNTS: Array) -> dict[str, Array]:
    """Describe each head on average: how far it looks, how sharply, how much at nearby tokens."""
    T = weights_LNTS.shape[2]
    back_TS = np.abs(np.arange(T)[:, None] - np.arange(T))
    with np.errstate(divide="ignore", invalid="ignore"):
        surprise = np.where(weights_LNTS > 0, -weights_LNTS * np.log2(weights_LNTS), 0.0)
    later = weights_LNTS[:, :, 1:] if T > 1 else weights_LNTS
    return {
        "distance": (weights_LNTS * back_TS).sum(axis=-1).mean(axis=-1),
        "entropy": surprise.sum(axis=-1).mean(axis=-1),
        "itself": np.einsum("lntt->lnt", weights_LNTS).mean(axis=-1),
        "previous": np.diagonal(weights_LNTS, offset=-1, axis1=2, axis2=3).mean(axis=-1)
        if T > 1 else np.zeros(weights_LNTS.shape[:2]),
        "first": later[..., 0].mean(axis=-1),
    }  # fmt: skip


def _farthest(distance_LN: Array, layer: int, head: int) -> tuple[int, int]:
    """Return the head that looks farthest back, within the layer or head that was named."""
    chosen = distance_LN.copy()
    chosen[[place for place in range(len(chosen)) if layer not in (place, -1)]] = -1
    chosen[:, [place for place in range(chosen.shape[1]) if head not in (place, -1)]] = -1
    found = np.unravel_index(int(np.argmax(chosen)), chosen.shape)
    return int(found[0]), int(found[1])


def _sentence(facts: dict[str, Array], gap: float) -> str:
    summary = []
    for name, phrase in (
        ("previous", "at the token before"),
        ("first", "at the first token"),
        ("itself", "at itself"),
    ):
        place = np.unravel_index(int(np.argmax(facts[name])), facts[name].shape)
        share = 100 * float(facts[name][place])
        summary.append(f"head {place[1] + 1} of layer {place[0] + 1} looks most {phrase} ({share:.0f} %)")
    return (
        f"{'; '.join(summary)}. What these weights give differs from the layers' output by {gap:.1g} at most."
    )


def _all(weights_LNTS: Array) -> Figure:
    small = [[head[:_SMALL, :_SMALL] for head in layer] for layer in weights_LNTS]
    title = "Every layer and head: each row is a token, each column what it looks at"
    return Figure(
        title, thumbnails(small, title, "layer", "head", "share of the attention"),
        f"The first {min(_SMALL, weights_LNTS.shape[2])} tokens, from the upper left. The diagonal is "
        "the token itself; a line beside it the one before; a column on the left the first one.",
    )  # fmt: skip


def _one(weights_TS: Array, row: TokenRow, layer: int, head: int, is_causal: bool = True) -> Figure:
    seen = np.where(np.tri(len(weights_TS), dtype=bool), weights_TS, np.nan) if is_causal else weights_TS
    title = f"Layer {layer + 1}, head {head + 1}: what each token looks at"
    return Figure(
        title,
        heat(seen, Names("token that looks", row.labels), Names("token that is looked at", row.labels), title,
             "share of the attention", (0.0, 1.0)),
        "Each row sums to 1."
        + (" A token sees itself and what stands before it; the rest is empty." if is_causal else ""),
    )  # fmt: skip


def _table(facts: dict[str, Array]) -> Table:
    L, N = facts["distance"].shape
    rows = tuple(
        (layer + 1, head + 1, *(round(float(facts[name][layer, head]), 3) for name in facts))
        for layer in range(L) for head in range(N)
    )  # fmt: skip
    heads = (
        "layer",
        "head",
        "mean distance, tokens",
        "entropy, bits",
        "at itself",
        "at the token before",
        "at the first",
    )
    return Table(heads, rows)
