"""BLEU and chrF as sacrebleu counts them, with the counts of every sentence to resample them by.

[PENN "Machine translation"]; Papineni et al. 2002; Popović 2015; Post 2018 (the signature).
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from nextword.core.errors import DataError, MissingPart
from nextword.evaluation.pairs.measure import Measure, nothing

Floats = npt.NDArray[np.float64]
Splitter = Literal["auto", "13a", "intl", "char", "zh"]  # sacrebleu's others need files from the network
_ORDER = 4  # of BLEU's n-grams of words
_LETTERS = 6  # of chrF's n-grams of characters
_BETA = 2.0  # of chrF: recall counts this many times as much as precision
_UNSPACED = ("HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")
_LOOKED_AT = 20_000  # characters that decide which splitter is taken


@dataclass(frozen=True)
class Overlap:
    """BLEU and chrF (0 to 100), their signatures, and what each sentence adds to both."""

    bleu: float
    chrf: float
    signature: str  # as sacrebleu prints it
    chrf_signature: str
    bleu_N10: Floats  # right n-grams of 1 to 4 words, all of them, words written, words of the reference
    chrf_N18: Floats  # n-grams of 1 to 6 characters that were written, that there are, that are right


def overlap(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], splitter: Splitter = "auto"
) -> Overlap:
    """Compare every hypothesis with its references; ``references[i]`` are those of ``hypotheses[i]``."""
    check_counts(hypotheses, references)
    metrics = _sacrebleu()
    chosen = choose_splitter(references) if splitter == "auto" else splitter
    bleu, chrf = metrics.BLEU(tokenize=chosen, force=True), metrics.CHRF()
    streams = _streams(references)
    bleu_score, chrf_score = bleu.corpus_score(hypotheses, streams), chrf.corpus_score(hypotheses, streams)
    pairs = list(zip(hypotheses, references, strict=True))
    by_sentence = metrics.BLEU(tokenize=chosen, force=True, effective_order=True)
    return Overlap(
        bleu=bleu_score.score,
        chrf=chrf_score.score,
        signature=f"{bleu_score.name}|{bleu.get_signature().format()}",
        chrf_signature=f"{chrf_score.name}|{chrf.get_signature().format()}",
        bleu_N10=np.array([_bleu_counts(by_sentence, text, each) for text, each in pairs]),
        chrf_N18=np.array([_best_chrf(text, each) for text, each in pairs]),
    )


def check_counts(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    """Refuse what cannot be compared: nothing, different numbers, a hypothesis without a reference."""
    if len(hypotheses) != len(references):
        raise DataError(
            f"there are {len(hypotheses):,} hypotheses and references for {len(references):,}; "
            "each hypothesis needs its own references: give the same number of lines on both sides"
        )
    if not hypotheses:
        raise DataError("there is no sentence to measure; give at least one line")
    for at, each in enumerate(references, start=1):
        if not each or isinstance(each, str):
            raise DataError(f"sentence {at:,} has no list of references; give at least one for each")


def choose_splitter(references: Sequence[Sequence[str]]) -> Literal["13a", "char", "zh"]:
    """Return how sacrebleu should split such references: a script without spaces needs its own way."""
    han = unspaced = letters = 0
    for each in references:
        for character in each[0]:
            if character.isalpha():
                letters += 1
                name = unicodedata.name(character, "") if character > "\u0dff" else ""
                han += name.startswith("CJK UNIFIED")
                unspaced += name.startswith(_UNSPACED)
        if letters > _LOOKED_AT:
            break
    if 2 * (han + unspaced) <= letters:
        return "13a"
    return "char" if 10 * unspaced > han else "zh"


def bleu_of(totals_RC: Floats) -> Floats:
    """Return BLEU of summed counts, row by row: brevity penalty times the geometric mean of the precisions.

    The first order without a right n-gram counts as half of one, the next as a quarter (sacrebleu's ``exp``);
    where there is no n-gram of an order at all, or no right word, BLEU is 0.
    """
    right_RO, all_RO = totals_RC[:, :_ORDER], totals_RC[:, _ORDER : 2 * _ORDER]
    written_R, there_R = totals_RC[:, -2], totals_RC[:, -1]
    halved_RO = 0.5 ** np.cumsum(right_RO == 0, axis=1)
    precision_RO = np.where(right_RO > 0, right_RO, halved_RO) / np.maximum(1, all_RO)
    penalty_R = np.exp(np.minimum(0, 1 - there_R / np.maximum(1, written_R)))
    is_R = (all_RO > 0).all(axis=1) & (right_RO > 0).any(axis=1)
    scores: Floats = np.where(is_R, 100 * penalty_R * np.exp(np.log(precision_RO).mean(axis=1)), 0)
    return scores


def chrf_of(totals_RC: Floats) -> Floats:
    """Return chrF of summed counts, row by row: F of the mean precision and the mean recall over the orders.

    An order in which one side has no n-gram at all is left out, as in sacrebleu.
    """
    written_RO, there_RO, right_RO = totals_RC.reshape(len(totals_RC), 3, _LETTERS).swapaxes(0, 1)
    is_RO = (written_RO > 0) & (there_RO > 0)
    orders_R = np.maximum(1, is_RO.sum(axis=1))
    precision_R = np.where(is_RO, right_RO / np.maximum(1, written_RO), 0).sum(axis=1) / orders_R
    recall_R = np.where(is_RO, right_RO / np.maximum(1, there_RO), 0).sum(axis=1) / orders_R
    below_R = _BETA**2 * precision_R + recall_R
    scores: Floats = 100 * (1 + _BETA**2) * precision_R * recall_R / np.where(below_R > 0, below_R, 1)
    return scores


def counts_of_words(hypothesis: Sequence[str], reference: Sequence[str]) -> list[float]:
    """Return what `bleu_of` reads, for words that are split already."""
    right, total = [], []
    for n in range(1, _ORDER + 1):
        mine, other = (
            Counter(tuple(words[at : at + n]) for at in range(len(words) - n + 1))
            for words in (hypothesis, reference)
        )
        right.append(float((mine & other).total()))
        total.append(float(mine.total()))
    return [*right, *total, float(len(hypothesis)), float(len(reference))]


def _bleu_counts(metric: Any, hypothesis: str, references: Sequence[str]) -> list[float]:
    found = metric.sentence_score(hypothesis, list(references))
    return [*found.counts, *found.totals, found.sys_len, found.ref_len]


def _best_chrf(hypothesis: str, references: Sequence[str]) -> Floats:
    """Return the counts against the reference with the best chrF; of equal ones the first."""
    mine = _letter_ngrams(hypothesis)
    counts_R18 = np.array([_chrf_counts(mine, _letter_ngrams(each)) for each in references])
    best: Floats = counts_R18[int(chrf_of(counts_R18).argmax())]
    return best


def _chrf_counts(mine: Sequence[Counter[str]], right: Sequence[Counter[str]]) -> list[float]:
    written = [float(one.total()) if two else 0.0 for one, two in zip(mine, right, strict=True)]
    there = [float(two.total()) for two in right]
    return [*written, *there, *(float((one & two).total()) for one, two in zip(mine, right, strict=True))]


def _letter_ngrams(text: str) -> list[Counter[str]]:
    """Count the n-grams of characters; whitespace does not count."""
    joined = "".join(text.split())
    return [Counter(joined[at : at + n] for at in range(len(joined) - n + 1)) for n in range(1, _LETTERS + 1)]


def _streams(references: Sequence[Sequence[str]]) -> list[list[str | None]]:
    """Return references as sacrebleu reads them: the first of all, the second of all; None where one ends."""
    most = max(map(len, references))
    return [[each[at] if at < len(each) else None for each in references] for at in range(most)]


def _sacrebleu() -> Any:
    try:
        from sacrebleu import metrics
    except ImportError as error:
        raise MissingPart("sacrebleu", "eval", "measuring BLEU and chrF") from error
    return metrics


TRANSLATION = Measure("translation", "bleu", True, nothing)
"""BLEU decides; chrF, exact match and error rates are reported for every job."""
