"""The measurements of a trained run: one pass over the held-out text, generated text, some sentences."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nextword.comparison.rows import Row, finite
from nextword.comparison.setup import Setup, lines
from nextword.core.contracts import START, UNKNOWN, LanguageModel, NetworkModel
from nextword.core.errors import ContextError
from nextword.decode.generate import collect, generate
from nextword.decode.settings import DecodeSettings
from nextword.evaluation.lm import perplexity
from nextword.evaluation.lm.report import Report
from nextword.evaluation.lm.spans import LineCosts
from nextword.evaluation.lm.streams import ScoreStream, gathered
from nextword.evaluation.lm.surprise import by_word, units
from nextword.mixtures.mixture import Mixture
from nextword.ngram.model import NgramModel
from nextword.runs.saved import Trained

Array = np.ndarray[Any, np.dtype[Any]]
SENTENCES = 3  # that are generated, and whose surprise is shown
LONGEST = 30  # words of a generated sentence
WRITTEN = 100  # tokens generated to measure the speed
CONTEXT = 300  # characters that are read before a sentence
SHORT = 1.0  # seconds; a shorter pass is repeated, since the first includes warming up
_ENDS = (".", "!", "?", "。", "।", "؟", "！", "？")
SCORE = "a score, not a probability: not ranked"


def measured(setup: Setup, trained: Trained, row: Row) -> Row:
    """Measure everything that is shown of a trained model."""
    report, speed, known, blocks = scored(setup, trained)
    count, of = numbers(trained.model)
    return replace(
        row,
        bits_per_byte=finite(report.bits_per_byte),
        perplexity=finite(report.perplexity),
        known_perplexity=finite(known),
        word_perplexity=finite(report.word_perplexity),
        unknown_rate=report.unknown_rate,
        unseen_rate=report.unseen_rate,
        tokens=report.tokens,
        bytes=report.bytes,
        zero_tokens=report.zero_tokens,
        tokenizer=trained.tokenizer.name,
        numbers=count,
        of=of,
        train_speed=None if row.parts else train_speed(trained, row.train_seconds),
        tokens_per_second=speed,
        write_speed=_write_speed(trained),
        size=sum(file.stat().st_size for file in (setup.out / row.run).rglob("*") if file.is_file()),
        tune_bits=_tune_bits(setup, trained),
        is_probability=report.is_probability,
        note="; ".join(filter(None, [row.note, _note(report)])),
        signature=report.signature,
        sentences=_written(trained),
        surprise=[_surprise(trained, *each) for each in sentences(setup)],
        blocks=[finite(float(bits)) for bits in blocks],
        curve=curve(trained.metrics),
    )


def _note(report: Report) -> str:
    summary = [SCORE] if not report.is_probability else []
    if report.zero_tokens:
        summary.append(f"probability 0 for {report.zero_tokens / report.tokens:.1%} of the tokens")
    return "; ".join(summary)


def scored(setup: Setup, trained: Trained) -> tuple[Report, float, float, Array]:
    """Return the report, tokens scored per second, perplexity of known words, and bits of each block."""
    model, tokenizer = trained.model, trained.tokenizer
    totals, costs = perplexity.Totals(), LineCosts(tokenizer)
    stream, seconds, nats, known = ScoreStream(model, carry=True), 0.0, 0.0, 0
    pieces = []
    for piece in gathered(tokenizer.encode_blocks(setup.held.blocks(), costs=True)):
        began = time.perf_counter()
        logp = np.asarray(stream.push(piece.ids, piece.documents))
        seconds += time.perf_counter() - began
        totals.add(piece, logp, tokenizer)
        costs.add(piece, logp)
        is_known = (piece.ids != START) & (piece.ids != UNKNOWN)
        nats, known = nats - float(np.sum(logp[is_known], dtype=np.float64)), known + int(is_known.sum())
        if seconds < SHORT:
            pieces.append(piece)
    if seconds < SHORT:
        seconds = min(seconds, _seconds(model, pieces))
    report = perplexity.report(totals, model, tokenizer, seconds)
    by_line = costs.lines(len(setup.blocks))
    bits = np.bincount(setup.blocks, weights=by_line, minlength=len(setup.block_bytes))
    each = nats / known if known else math.inf
    return report, report.tokens / max(seconds, 1e-9), math.exp(each) if each < 700 else math.inf, bits


def _seconds(model: LanguageModel, pieces: Iterable[Any]) -> float:
    stream, began = ScoreStream(model, carry=True), time.perf_counter()
    for piece in pieces:
        stream.push(piece.ids, piece.documents)
    return time.perf_counter() - began


def numbers(model: Any) -> tuple[int, str]:
    """Tell how many numbers a model holds, and what they are."""
    if isinstance(model, NetworkModel):
        return sum(tensor.numel() for tensor in model.network.parameters()), "parameters"
    if isinstance(model, NgramModel):
        return sum(len(level.probs) for level in model.trie.levels), "n-grams"
    if isinstance(model, Mixture):
        counted = [numbers(part) for part in model.models]
        kinds = list(dict.fromkeys(kind for _, kind in counted))
        return sum(count for count, _ in counted), " and ".join(kinds)
    return 0, ""


def train_speed(trained: Trained, seconds: float) -> float | None:
    """Return training tokens per second: of all steps of a network, or of the text that was counted."""
    steps = [row for row in trained.metrics if row.get("tokens") and row.get("seconds")]
    rates = [row["tokens_per_second"] for row in steps if row.get("tokens_per_second")]
    if rates:
        return float(np.median(rates))
    tokens = trained.facts.data.tokens
    return tokens / seconds if tokens and seconds > 0 else None


def curve(metrics: Iterable[dict[str, Any]]) -> list[tuple[float, int, float]]:
    """Return seconds, tokens and held-out bits per byte at each validation."""
    names = ("seconds", "tokens", "valid_bits_per_byte")
    whole = [row for row in metrics if all(row.get(name) is not None for name in names)]
    return [(float(row[names[0]]), int(row[names[1]]), float(row[names[2]])) for row in whole]


def _tune_bits(setup: Setup, trained: Trained) -> float | None:
    """Return bits per byte of the text for choices: from the trainer, or measured now."""
    if setup.tune is None:
        return None
    during = [bits for _, _, bits in curve(trained.metrics)]
    if during:
        return min(during)
    return finite(perplexity.evaluate(trained.model, trained.tokenizer, setup.tune.blocks()).bits_per_byte)


def _written(trained: Trained) -> list[str]:
    """Generate texts without a prompt."""
    longest = LONGEST * _tokens_per_word(trained)
    settings = DecodeSettings(samples=SENTENCES, max_tokens=longest, min_tokens=4, seed=1)
    try:
        texts = collect(generate(trained.model, [()], settings, trained.tokenizer))
    except ContextError:
        return []
    return [text.text.strip() + (" …" if text.reason == "length" else "") for text in texts]


def _tokens_per_word(trained: Trained) -> int:
    """Estimate tokens per word, so that letters and words generate texts of about the same length."""
    data = trained.facts.data
    return max(1, min(8, round(data.tokens / data.words))) if data.words else 1


def _write_speed(trained: Trained) -> float | None:
    """Measure tokens per second of one text; None if the model cannot continue."""
    settings = DecodeSettings(max_tokens=WRITTEN, min_tokens=WRITTEN, seed=1)
    began = time.perf_counter()
    try:
        count = sum(1 for _ in generate(trained.model, [()], settings, trained.tokenizer))
    except ContextError:
        return None
    return count / max(time.perf_counter() - began, 1e-9)


def sentences(setup: Setup) -> list[tuple[str, str]]:
    """Pick sentences from different places of the held-out text, each with the text before it."""
    texts = [line.decode("utf-8", "replace").strip() for line in lines(setup.held)]
    texts = [text for text in texts if text]
    found: list[tuple[str, str]] = []
    for part in range(SENTENCES):
        first = len(texts) * part // SENTENCES
        taken = [text for _, text in found]
        place, summary = next(_good(texts, range(first, len(texts)), taken), (0, ""))
        if summary:
            found.append((_before(texts[max(0, place - 3) : place]), summary))
    return found


def _good(texts: Sequence[str], places: range, taken: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield whole sentences of 8 to 14 words; if there are none, the beginnings of lines."""
    for place in places:
        words = units(texts[place])
        end = next((number for number, word in enumerate(words, start=1) if word.endswith(_ENDS)), 0)
        if 8 <= end <= 14 and (summary := _joined(texts[place], words[:end])) not in taken:
            yield place, summary
    for place in places:
        if (summary := _joined(texts[place], units(texts[place])[:12])) not in taken:
            yield place, summary


def _before(texts: Sequence[str]) -> str:
    """Return the end of some lines, from the beginning of a word; every model reads it first."""
    text = "\n".join(texts)
    if len(text) > CONTEXT:
        text = text[-CONTEXT:].partition(" ")[2] or text[-CONTEXT:]
    return text + "\n" if text else ""


def _joined(text: str, words: Sequence[str]) -> str:
    """Join words into a text: with spaces, unless it is written without."""
    return " ".join(words) if " ".join(words) in " ".join(text.split()) else "".join(words)


def _surprise(trained: Trained, before: str, text: str) -> list[tuple[str, float | None]]:
    """Return the bits of every word of a sentence; None where the model gives it probability 0."""
    found = by_word(trained.model, trained.tokenizer, text, before)
    return [(word, finite(round(bits, 3)) if math.isfinite(bits) else None) for word, bits in found]
