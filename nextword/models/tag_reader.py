"""An autoregressive tagger as a language model of tags: once it has read its sentence, a tag is a token.

The vocabulary is UNKNOWN, START, END and the tags; END follows the tag of the last word, and nothing else.
So everything that decodes or scores on the contract of `core.contracts` works on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from nextword.blocks.own_tags import AutoregressiveTags, TagState
from nextword.core.contracts import END, SPECIALS, Array
from nextword.core.errors import ConfigError

_SPECIALS = len(SPECIALS)


class Sentence(NamedTuple):
    """What the encoder has made of some sentences: a source."""

    features_BTD: Tensor
    lengths_B: Tensor


class TagsRead(NamedTuple):
    """Sentences, how many tags of each have been read, and what the head remembers of them."""

    sentence: Sentence
    read_B: Tensor
    inner: TagState


class TagReader:
    """A `LanguageModel` whose tokens are tags."""

    is_probability = True

    def __init__(self, head: AutoregressiveTags) -> None:
        self.head, self.tags = head, head.first
        self.vocab_size = _SPECIALS + head.first

    @torch.inference_mode()
    def start(self, batch: int, source: Sentence | None = None, begin: bool = True) -> TagsRead:
        """Return rows before their first tag; having read START is the same as having read nothing."""
        if source is None or len(source.lengths_B) != batch:
            raise ConfigError("a tagger reads a sentence in each row before it tags; give one source a row")
        read_B = torch.zeros_like(source.lengths_B)
        return TagsRead(source, read_B, self.head.start(source.features_BTD[:, 0]))

    @torch.inference_mode()
    def next(self, state: TagsRead) -> Tensor:
        """Return log p of every tag; after the last word, of END alone."""
        (features_BTD, lengths_B), read_B, inner = state
        feature_BD = _at(features_BTD, read_B[:, None])[:, 0]
        logp_BK = self.head.log_probs(feature_BD, inner, read_B == lengths_B - 1)
        return self._distribution(logp_BK, read_B >= lengths_B)

    @torch.inference_mode()
    def step(self, ids_B: Array, state: TagsRead) -> tuple[Tensor, TagsRead]:
        """Read one tag in each row."""
        tags_B = (torch.as_tensor(ids_B, device=state.read_B.device) - _SPECIALS).clamp(min=0)
        read_B = state.read_B + 1
        feature_BD = _at(state.sentence.features_BTD, read_B[:, None])[:, 0]
        state = TagsRead(state.sentence, read_B, self.head.read(feature_BD, tags_B, state.inner))
        return self.next(state), state

    @torch.inference_mode()
    def score(
        self, ids_BT: Array, lengths_B: Array, state: TagsRead | None = None
    ) -> tuple[Tensor, TagsRead]:
        """Score all tags at once; ``lengths_B`` says how many ids of each row count."""
        if state is None:
            raise ConfigError(
                "a tagger reads a sentence in each row before it tags; give start(rows, source)"
            )
        (features_BTD, words_B), read_B, inner = state
        ids_BT, counts_B = (
            torch.as_tensor(each, device=read_B.device).long() for each in (ids_BT, lengths_B)
        )
        B, T = ids_BT.shape
        if T == 0:
            return features_BTD.new_zeros(B, 0), state
        tags_BT = (ids_BT - _SPECIALS).clamp(min=0)
        place_BT = read_B[:, None] + torch.arange(T, device=read_B.device)
        h_BTH, after = self.head.read_all(_at(features_BTD, place_BT + 1), tags_BT, inner, counts_B)
        before = TagState(
            torch.cat([inner.h_BH[:, None], h_BTH[:, :-1]], dim=1).flatten(0, 1),
            inner.c_BH,  # it is not looked at
            torch.cat([inner.before_B[:, None], tags_BT[:, :-1]], dim=1).flatten(),
        )
        feature_XD = _at(features_BTD, place_BT).flatten(0, 1)
        logp_XK = self.head.log_probs(feature_XD, before, (place_BT == words_B[:, None] - 1).flatten())
        logp_XV = self._distribution(logp_XK, (place_BT >= words_B[:, None]).flatten())
        logp_BT = logp_XV.gather(1, ids_BT.reshape(-1, 1)).view(B, T)
        real_BT = torch.arange(T, device=read_B.device) < counts_B[:, None]
        return logp_BT.masked_fill(~real_BT, 0.0), TagsRead(state.sentence, read_B + counts_B, after)

    @torch.inference_mode()
    def reorder(self, state: TagsRead, rows_B: Array) -> TagsRead:
        """Keep these rows."""
        rows_B = torch.as_tensor(rows_B, device=state.read_B.device)
        sentence = Sentence(*(part[rows_B] for part in state.sentence))
        inner = TagState(*(part[rows_B] for part in state.inner))
        return TagsRead(sentence, state.read_B[rows_B], inner)

    def rows(self, state: TagsRead) -> int:
        """Return how many rows a state has."""
        return len(state.read_B)

    @torch.inference_mode()
    def join(self, states: Sequence[TagsRead]) -> TagsRead:
        """Return the rows of several states in one; shorter sentences are padded."""
        longest = max(state.sentence.features_BTD.shape[1] for state in states)
        features = [
            F.pad(state.sentence.features_BTD, (0, 0, 0, longest - state.sentence.features_BTD.shape[1]))
            for state in states
        ]
        lengths_B = torch.cat([state.sentence.lengths_B for state in states])
        inner = TagState(
            *(torch.cat(parts) for parts in zip(*(state.inner for state in states), strict=True))
        )
        return TagsRead(
            Sentence(torch.cat(features), lengths_B), torch.cat([s.read_B for s in states]), inner
        )

    def _distribution(self, logp_BK: Tensor, is_over_B: Tensor) -> Tensor:
        """Return ``logp_BV``: of the tags, or of END alone where the sentence is over."""
        logp_BV = F.pad(logp_BK, (_SPECIALS, 0), value=-torch.inf)
        logp_BV[is_over_B] = -torch.inf
        logp_BV[is_over_B, END] = 0.0
        return logp_BV


def _at(features_BTD: Tensor, place_BS: Tensor) -> Tensor:
    """Return the features of these words; past the end, those of the last."""
    place_BS = place_BS.clamp(max=features_BTD.shape[1] - 1)
    return features_BTD[torch.arange(len(features_BTD), device=place_BS.device)[:, None], place_BS]
