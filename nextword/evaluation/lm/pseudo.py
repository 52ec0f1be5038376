"""Pseudo-likelihood of a text: every token is predicted from all others, with a blank in its place.

Σ log p(w_t | all others) (Salazar et al. 2020, "Masked language model scoring"). It is not a probability of
the text: the sum over all texts is not 1, and exp of its mean is a pseudo-perplexity, far below a perplexity,
since both sides of a token are known. Ends of lines and documents are read, but not predicted.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nextword.core.contracts import END, START, BlankFiller, Block, Tokenizer
from nextword.core.display import show_number
from nextword.core.errors import DataError
from nextword.drawing.page import Page, Table
from nextword.evaluation.lm.signature import version

PSEUDO = (
    "these are pseudo-log-likelihoods: each token is predicted from all others, so that they are not "
    "probabilities of a text and compare only with each other"
)
MOST = 10_000  # tokens of a text that are measured, evenly spread over it
_ROWS = 64  # texts, each with one blank, that are read at once
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PseudoReport:
    """The pseudo-likelihood of a text."""

    tokens: int  # of the text, without ends
    measured: int  # of them, evenly spread
    words: int
    bytes: int
    pseudo_nll: float  # nats per token
    pseudo_perplexity: float
    accuracy: float  # share of the tokens that were the most probable ones
    seconds: float
    signature: str

    def to_json(self) -> dict[str, Any]:
        """Return every number."""
        return asdict(self)

    def rows(self) -> list[tuple[str, str]]:
        """Return names and values as they are shown."""
        return [
            ("pseudo-perplexity", show_number(self.pseudo_perplexity)),
            ("pseudo nats per token", show_number(self.pseudo_nll, 4)),
            ("most probable token right", f"{self.accuracy:.1%}"),
            ("tokens", f"{self.tokens:,}"),
            ("measured", f"{self.measured:,}"),
            ("words", f"{self.words:,}"),
            ("bytes", f"{self.bytes:,}"),
            ("seconds", f"{self.seconds:.2f}"),
            ("signature", self.signature),
        ]

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.rows())
        return "\n".join(f"{name:<{width}}  {value}" for name, value in self.rows())

    def page(self) -> Page:
        """Return the numbers as a page."""
        made = Page("How well blanks are filled")
        made.table(Table(("measure", "value"), tuple(self.rows())))
        made.text(PSEUDO[0].upper() + PSEUDO[1:] + ".", soft=True)
        return made


def pseudo_logprobs(
    model: BlankFiller, ids: Ints, places: Ints
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Return log p of the tokens at these places, each with a blank there, and whether it was the best one.

    The window of a place has it in the middle, as far as the text allows.
    """
    window = min(model.context, len(ids))
    found, right = [], []
    for at in range(0, len(places), _ROWS):
        part = places[at : at + _ROWS]
        first_B = np.clip(part - window // 2, 0, len(ids) - window)
        ids_BT = ids[first_B[:, None] + np.arange(window)].astype(np.int64)
        chosen_BT = np.arange(window) == (part - first_B)[:, None]
        targets_B = ids_BT[chosen_BT]
        ids_BT[chosen_BT] = model.blank
        logp_BV = np.asarray(model.fill(ids_BT, np.full(len(part), window), chosen_BT), np.float64)
        found.append(logp_BV[np.arange(len(part)), targets_B])
        right.append(logp_BV.argmax(axis=1) == targets_B)
    empty = np.zeros(0)
    return np.concatenate([empty, *found]), np.concatenate([empty.astype(bool), *right])


def evaluate(model: BlankFiller, tokenizer: Tokenizer, blocks: Iterable[Block]) -> PseudoReport:
    """Measure the pseudo-likelihood of a text, of a long one at `MOST` tokens."""
    began = time.perf_counter()
    pieces = list(tokenizer.encode_blocks(blocks))
    ids = np.concatenate([np.asarray(piece.ids, np.int64) for piece in pieces] or [np.zeros(0, np.int64)])
    ids = ids[ids != START]
    places = np.flatnonzero(ids != END)
    if not len(places):
        raise DataError("the text has no words, so there is nothing to measure; give a text with words")
    some = places[np.linspace(0, len(places) - 1, min(MOST, len(places))).round().astype(int)]
    logp_N, right_N = pseudo_logprobs(model, ids, some)
    nll = -float(logp_N.mean())
    return PseudoReport(
        len(places), len(some), sum(piece.words for piece in pieces), sum(piece.bytes for piece in pieces),
        nll, math.exp(nll) if nll < 700 else math.inf, float(right_N.mean()), time.perf_counter() - began,
        f"pseudo|tok:{tokenizer.name}|unit:{tokenizer.unit}|ctx:{model.context}|nextword:{version()}",
    )  # fmt: skip
