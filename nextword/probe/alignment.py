"""Alignment: which words of its source a translation looks at, word by word.

[PENN "Attention Mechanism: A Solution to the Bottleneck Problem": soft alignment; Bahdanau et al. 2015,
figure 3]"""

from __future__ import annotations

from typing import Any

import numpy as np

from nextword.core.errors import ConfigError
from nextword.drawing.heat import Names, heat, thumbnails
from nextword.drawing.page import Table
from nextword.probe.pairs import PairSubject, by_word
from nextword.probe.result import Figure, ProbeResult
from nextword.probe.selection import check_layer
from nextword.probe.settings import ProbeSettings
from nextword.probe.subject import Subject

Array = np.ndarray[Any, np.dtype[Any]]
SLIDE = 'PENN "Attention Mechanism: A Solution to the Bottleneck Problem"'


class Alignment:
    """Source words against target words."""

    about = "soft alignment of a translation with its source; --text 'SOURCE' or 'SOURCE ||| TARGET'"
    needs = "translation runs that attend to their source"

    def fits(self, subject: Subject) -> bool:
        """Accept models that read a source and know where in it each token looked."""
        return isinstance(subject, PairSubject) and subject.attends

    def look(self, subject: Subject, settings: ProbeSettings, against: Subject | None = None) -> ProbeResult:
        """Draw where each word looks: of a Transformer the mean of a layer's heads, or the one asked for."""
        assert isinstance(subject, PairSubject)
        weights_TS, which = chosen_weights(subject, settings)
        source, target = subject.source_words, subject.target_words
        words_TS = by_word(weights_TS, [places for _, places in target], [places for _, places in source])
        names = [word for word, _ in source], [word for word, _ in target]
        title = f"Where each word of the translation looks: {subject.name}"
        return ProbeResult(
            "alignment", subject.name, title, _sentence(words_TS, *names), SLIDE,
            {"weights_TS": words_TS, "tokens_TS": weights_TS}, {"T": names[1], "S": names[0]},
            (_figure(words_TS, *names, which), Table(
                ("word", "looks most at", "share"),
                tuple((word, names[0][int(row.argmax())], round(float(row.max()), 3))
                      for word, row in zip(names[1], words_TS, strict=True)),
            )),
        )  # fmt: skip


def chosen_weights(subject: PairSubject, settings: ProbeSettings) -> tuple[Array, str]:
    """Return ``weights_TS`` of the layer and head that were asked for, or as the model sums them up."""
    if not settings.layer and not settings.head:
        return subject.looked(), "all heads together" if subject.layers else "its one attention"
    if not subject.layers:
        raise ConfigError(
            f"'--layer' and '--head' choose among the maps of a Transformer, and '{subject.name}' has a "
            "single one; leave them out"
        )
    weights_LNTS = subject.heads()
    layer = check_layer(settings.layer or len(weights_LNTS), len(weights_LNTS))
    head = check_layer(settings.head, weights_LNTS.shape[1], "head")
    of_layer = weights_LNTS[layer]
    said = f"layer {layer + 1}, " + (f"head {head + 1}" if head >= 0 else "the mean of its heads")
    return (of_layer[head] if head >= 0 else of_layer.mean(axis=0)), said


def every_head(subject: PairSubject, settings: ProbeSettings) -> ProbeResult:
    """Draw the attention to the source of every layer and head, and one map large."""
    weights_LNTS = subject.heads() if subject.layers else subject.looked()[None, None]
    source, target = subject.source_words, subject.target_words
    places = [places for _, places in target], [places for _, places in source]
    words_LNTS = by_word(weights_LNTS, *places)
    names = [word for word, _ in source], [word for word, _ in target]
    one_TS, which = chosen_weights(subject, settings)
    title = "Every layer and head: each row is a word of the translation, each column one of its source"
    small = [list(layer) for layer in words_LNTS]
    return ProbeResult(
        "attention", subject.name, f"What the translation looks at: {subject.name}",
        _sentence(words_LNTS.mean(axis=(0, 1)), *names), 'MAUSAM "Cross-Attention Details"',
        {"weights_LNTS": words_LNTS}, {"T": names[1], "S": names[0]},
        (Figure(title, thumbnails(small, title, "layer", "head", "share of the attention")),
         _figure(by_word(one_TS, *places), *names, which)),
    )  # fmt: skip


def _figure(words_TS: Array, source: list[str], target: list[str], which: str) -> Figure:
    title = f"{' '.join(source[:-1])} → {' '.join(target[:-1])}"
    picture = heat(
        words_TS, Names("translation", target), Names("source", source), title, "share of the attention",
        (0.0, 1.0),
    )  # fmt: skip
    caption = f"Each row sums to 1: where the model looks before it writes the word; {which}."
    return Figure(title, picture, caption)


def _sentence(words_TS: Array, source: list[str], target: list[str]) -> str:
    rows = words_TS[:-1] if len(words_TS) > 1 else words_TS
    at = int(rows.max(axis=1).argmax())
    looks = int(rows[at].argmax())
    entropy = float((-rows * np.log2(np.maximum(rows, 1e-12))).sum(axis=1).mean())
    return (
        f"'{target[at]}' looks most sharply, at '{source[looks]}' ({100 * rows[at, looks]:.0f} %); a word "
        f"looks at {2**entropy:.1f} words on average."
    )
