"""A translation run to look into: a source, and a target that is given or that the run writes itself."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from nextword.core.contracts import END, Aligner, Source
from nextword.core.errors import DataError
from nextword.data.paired import encode_sources
from nextword.decode.generate import collect, generate
from nextword.decode.settings import DecodeSettings
from nextword.models.distributions import as_numpy
from nextword.probe.subject import Subject

Array = np.ndarray[Any, np.dtype[Any]]
BETWEEN = "|||"  # what stands between a source and its target
_END = "</s>"


class PairSubject(Subject):
    """An encoder-decoder with a source; the text is ``SOURCE`` or ``SOURCE ||| TARGET``."""

    def __init__(self, name: str, model: Any, text: str | None) -> None:
        super().__init__(name, model, model.target_tokenizer, text)
        self.decoder = model.network
        self.network = None  # probes of language models do not fit
        self.attends = isinstance(model, Aligner)

    @property
    def kind(self) -> str:
        """A translation model."""
        return "translation"

    @property
    def described(self) -> str:
        """The model in one or two words."""
        return "translation model"

    @property
    def layers(self) -> int:
        """How many layers of the decoder attend to the source."""
        return len(self.crosses()) if hasattr(self.decoder, "stack") else 0

    @property
    def sides(self) -> tuple[str, str]:
        """The source, and the target or nothing."""
        source, _, target = (self.given or "").partition(BETWEEN)
        if not source.strip():
            raise DataError(
                "a translation run is looked at with a source; give it with --text 'SOURCE', or with its "
                f"target as 'SOURCE {BETWEEN} TARGET'"
            )
        return " ".join(source.split()), " ".join(target.split())

    @cached_property
    def source(self) -> Source:
        """The source as ids."""
        found = encode_sources([self.sides[0]], self.model.source_tokenizer)  # type: ignore[attr-defined]
        return Source(*found.take(np.array([0]), 0))

    @cached_property
    def target_ids(self) -> list[int]:
        """The target as ids: the one that was given, or what a beam search writes."""
        if self.sides[1]:
            return encode_sources([self.sides[1]], self.tokenizer).take(np.array([0]), 0)[0][0].tolist()
        settings = DecodeSettings(decode="beam", beam_size=5, max_tokens=400, max_ratio=2.0)
        return list(collect(generate(self.model, [()], settings, self.tokenizer, self.source))[0].ids)

    @property
    def source_words(self) -> list[tuple[str, list[int]]]:
        """The words of the source, each with the places of its tokens."""
        return words_of(self.source.ids_BS[0].tolist(), self.model.source_tokenizer)  # type: ignore[attr-defined]

    @property
    def target_words(self) -> list[tuple[str, list[int]]]:
        """The words of the target, each with the places of its tokens."""
        return words_of(self.target_ids, self.tokenizer)

    def looked(self) -> Array:
        """Return ``weights_TS``: where each token of the target looked when it was predicted."""
        state, found = self.model.start(1, self.source), []
        for index in self.target_ids:
            found.append(as_numpy(self.model.attention(state), np.float64)[0])  # type: ignore[attr-defined]
            _, state = self.model.step(np.array([index]), state)
        return np.stack(found)

    def crosses(self) -> list[Any]:
        """Return the layers of a Transformer decoder that attend to the source."""
        from nextword.blocks.block import Chain  # needs torch

        return [
            layer for layer in self.decoder.stack.applied() if isinstance(layer, Chain) and "X" in layer.order
        ]

    def heads(self) -> Array:
        """Return ``weights_LNTS`` of every layer and head of a Transformer decoder."""
        state, found = self.model.start(1, self.source), []
        for index in self.target_ids:
            rows = []
            for layer, own in zip(self.decoder.stack.applied(), state.inner.layers, strict=True):
                if layer in self.crosses():
                    place = layer.order.replace("F", "").index("X")  # feed-forward parts have no state
                    rows.append(as_numpy(layer.cross.looked(own[place]), np.float64)[0])
            found.append(np.stack(rows))
            _, state = self.model.step(np.array([index]), state)
        return np.stack(found, axis=2)


def words_of(ids: Sequence[int], tokenizer: Any) -> list[tuple[str, list[int]]]:
    """Put the tokens of a text together to words: one begins where the text has a space."""
    decoder, found = tokenizer.decoder(), list[tuple[str, list[int]]]()
    for at, index in enumerate(ids):
        if index == END:
            found.append((_END, [at]))
            continue
        piece = decoder.push(index)
        if not found or piece[:1].isspace():
            found.append((piece.strip(), [at]))
        else:
            found[-1] = (found[-1][0] + piece, [*found[-1][1], at])
    return [(word or "·", places) for word, places in found]


def by_word(weights_TS: Array, target: Sequence[list[int]], source: Sequence[list[int]]) -> Array:
    """Return the weights of words: summed over the tokens of a source word, the mean of a target word's."""
    over_S = np.stack([weights_TS[..., places].sum(axis=-1) for places in source], axis=-1)
    return np.stack([over_S[..., places, :].mean(axis=-2) for places in target], axis=-2)
