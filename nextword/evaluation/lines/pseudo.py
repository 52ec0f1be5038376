"""The pseudo-log-likelihood of every line of a text, by a model that fills blanks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from nextword.core.contracts import END, UNKNOWN, BlankFiller, Block, Tokenizer
from nextword.evaluation.lines.scores import LineScore, TokenScore
from nextword.evaluation.lm.pseudo import pseudo_logprobs


@dataclass(frozen=True)
class PseudoScore(LineScore):
    """One line and its pseudo-log-likelihood; its perplexity is a pseudo-perplexity."""


def pseudo_lines(
    model: BlankFiller,
    tokenizer: Tokenizer,
    blocks: Iterable[Block],
    tokens: bool = False,
    log10: bool = False,
) -> Iterator[PseudoScore]:
    """Yield every line, read by itself, with the pseudo-log-likelihood of its tokens."""
    scale = 1 / math.log(10) if log10 else 1.0
    data = b"".join(block.data for block in blocks)
    lines = data.split(b"\n")
    for number, line in enumerate(lines[:-1] if lines[-1] == b"" else lines, start=1):
        text = line.decode("utf-8", "surrogateescape")
        ids = np.asarray(tokenizer.encode(text), np.int64)
        whole = np.append(ids, END)
        logp_T = pseudo_logprobs(model, whole, np.arange(len(ids)))[0] * scale
        found = [
            TokenScore(tokenizer.piece(int(index)), float(logp), int(index) != UNKNOWN)
            for index, logp in zip(ids, logp_T, strict=True)
        ]
        unknown = int(np.count_nonzero(ids == UNKNOWN))
        total = float(logp_T.sum())
        yield PseudoScore(number, text, total, len(ids), unknown, log10, tuple(found) if tokens else ())
