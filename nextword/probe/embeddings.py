"""Embeddings: the nearest neighbours of the tokens of a text, and a map of them.

[IITD-1 "A Fixed-window Neural Language Model": words are vectors], [XMU: counts ignore similar words]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nextword.core.contracts import SPECIALS
from nextword.drawing.elements import cell, words
from nextword.drawing.page import Table
from nextword.drawing.svg import RIGHT, TOP, WIDTH, Axis, Series, scatter
from nextword.models.distributions import as_numpy
from nextword.probe import vectors
from nextword.probe.result import Figure, ProbeResult
from nextword.probe.settings import ProbeSettings
from nextword.probe.subject import SPACE, Subject, joined
from nextword.probe.words import WordSubject
from nextword.probe.words import embeddings as words_as_vectors

Array = np.ndarray[Any, np.dtype[Any]]
_TOKENS = 400
_LABELS = 36  # tokens with a name on the map
_GROUP = 50
_POINTS = 80  # others, without
_FITTED = 3000  # tokens from which the axes of the map are computed


class Embeddings:
    """Tokens that are near each other."""

    about = "nearest neighbours of tokens, and a map of the embeddings"
    needs = "neural networks"

    def fits(self, subject: Subject) -> bool:
        """Accept networks that look tokens up in our matrix."""
        return isinstance(subject, WordSubject) or hasattr(
            getattr(subject.network, "embedding", None), "weight_VE"
        )

    def look(self, subject: Subject, settings: ProbeSettings, against: Subject | None = None) -> ProbeResult:
        """Show the most frequent tokens of the text and their neighbours."""
        if isinstance(subject, WordSubject):
            return words_as_vectors(subject, settings)
        vectors_VE = as_numpy(subject.network.embedding.weight_VE, np.float64)[: subject.tokenizer.vocab_size]
        asked_Q = frequent(subject, settings.tokens or _TOKENS, settings.words)
        near_QK, cosine_QK = vectors.neighbours(vectors_VE, asked_Q, settings.neighbours, len(SPECIALS))
        asked, near = (
            [name(subject, i) for i in asked_Q],
            [[name(subject, i) for i in row] for row in near_QK],
        )
        rows = tuple(
            (word, ", ".join(f"{other} {c:.2f}" for other, c in zip(others, cosines, strict=True)))
            for word, others, cosines in zip(asked, near, cosine_QK, strict=True)
        )
        first = (
            f"'{asked[0]}' lies nearest to '{near[0][0]}' (cosine {cosine_QK[0, 0]:.2f})"
            if near_QK.size
            else ""
        )
        picture, points_V2 = _map(subject, vectors_VE, asked_Q, near_QK)
        return ProbeResult(
            "embeddings", subject.name, f"Tokens as vectors: {subject.name}",
            f"{len(vectors_VE):,} tokens have vectors of {vectors_VE.shape[1]} numbers; {first}.",
            'IITD-1 "A Fixed-window Neural Language Model"',
            {"words_Q": asked_Q, "near_QK": near_QK, "cosine_QK": cosine_QK, "map_V2": points_V2},
            {"Q": asked, "K": [" ".join(others) for others in near]},
            (Table(("token", "nearest tokens and their cosine"), rows), picture),
        )  # fmt: skip


def frequent(subject: Subject, tokens: int, count: int) -> Array:
    """Return the most frequent tokens of the text that have letters; any tokens where none has."""
    ids_T = joined(subject.rows(tokens)).ids_T
    words, times = np.unique(ids_T[ids_T >= len(SPECIALS)], return_counts=True)
    order = words[np.lexsort((words, -times))]
    lettered = [i for i in order.tolist() if any(c.isalpha() for c in subject.tokenizer.piece(i))]
    return np.array((lettered or order.tolist())[:count], dtype=np.int64)


def name(subject: Subject, index: int) -> str:
    """Show a token as in a list, with visible spaces."""
    return subject.tokenizer.piece(int(index)).replace(" ", SPACE).replace("\n", "⏎").replace("\t", "→")


def _map(subject: Subject, vectors_VE: Array, asked_Q: Array, near_QK: Array) -> tuple[Figure, Array]:
    real_VE = vectors_VE[len(SPECIALS) :]
    mean_E, axes_E2, shares = vectors.plane(real_VE[:_FITTED] if len(real_VE) else vectors_VE)
    points_V2 = (vectors_VE - mean_E) @ axes_E2
    others = [i for i in dict.fromkeys(near_QK.T.ravel().tolist()) if i not in set(asked_Q.tolist())]
    others = others[: max(0, _LABELS - len(asked_Q))]
    named = {*asked_Q.tolist(), *others}
    rest = [i for i in range(len(SPECIALS), len(vectors_VE)) if i not in named][:_POINTS]
    series = [  # in groups: a long series is drawn as a line, without marks
        Series("other words", tuple(map(tuple, points_V2[rest[i : i + _GROUP]].tolist())), 6, named=False)
        for i in range(0, len(rest), _GROUP)
    ]
    series += [Series(name(subject, i), (tuple(points_V2[i].tolist()),), 1) for i in asked_Q.tolist()]
    series += [Series(name(subject, i), (tuple(points_V2[i].tolist()),), 0) for i in others]
    x, y = (
        Axis(f"{place} direction ({100 * share:.0f} % of the variance)")
        for place, share in zip(("first", "second"), shares.tolist(), strict=True)
    )
    svg = scatter(series, "A map of the embeddings", x, y).removesuffix("</svg>") + _legend() + "</svg>"
    return Figure(
        "A map of the embeddings", svg,
        "Tokens of the text (orange) and their nearest neighbours (blue) among other tokens (grey), in "
        "the plane in which "
        "the vectors vary most. What is near here may still be far in the other directions.",
    ), points_V2  # fmt: skip


def _legend() -> str:
    """Draw a legend beside the map."""
    kinds = ((1, "tokens of the text"), (0, "their nearest tokens"), (6, "other tokens"))
    return "".join(
        cell(x := WIDTH - RIGHT + 14, y := TOP + 8 + 20 * row, 9, 9, f"fill:var(--c{look})")
        + words(x + 16, y + 9, name)
        for row, (look, name) in enumerate(kinds)
    )
