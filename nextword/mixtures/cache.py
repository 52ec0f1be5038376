"""The neural cache: tokens that followed similar states in the last few thousand tokens are likely again.

Grave, Joulin, Usunier 2017, "Improving neural language models with a continuous cache":

    p_cache(w) ∝ Σ_{i<t} 1[w = x_i] exp(θ h_i · h_t)

with h_i the feature before the token x_i, over the last N tokens of the same text. θ = 0 counts tokens.
Nothing is learned, and any network can be used. "External memory" [MAUSAM "What is missing in
Transformers?"].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from nextword.core.contracts import Tokenizer
from nextword.core.settings import Settings
from nextword.mixtures.memory import Witness
from nextword.store.reading import RunFolder

HELD = 1 << 22  # products of features held at once


class CacheSettings(Settings):
    """How much is remembered, and how sharply it is looked up."""

    size: int = Field(2000, ge=1, le=1_000_000, description="tokens that are remembered, N")
    theta: float = Field(0.3, ge=0, description="sharpness θ of the look-up; 0: all tokens count the same")


class CacheState(NamedTuple):
    """The last tokens and the feature before each, the newest at the right; ``count_B`` of them are real."""

    words_BM: Tensor
    keys_BMD: Tensor
    count_B: Tensor


class NeuralCache:
    """A `mixtures.memory.Memory` of the last N tokens."""

    name = "cache"

    def __init__(self, settings: CacheSettings) -> None:
        self.size, self.theta = settings.size, settings.theta

    def start(self, batch: int) -> CacheState:
        """Return empty caches; the width of features is known with the first of them."""
        none_BM = torch.zeros(batch, 0, dtype=torch.int64)
        return CacheState(none_BM, torch.zeros(batch, 0, 0), torch.zeros(batch, dtype=torch.int64))

    def next(self, feature_BD: Tensor, state: CacheState, vocab_size: int) -> tuple[Tensor, Tensor]:
        """Sum the weights of the remembered tokens for each token of the vocabulary."""
        weight_BM = self._weights(feature_BD, state)
        p_BV = torch.zeros(len(feature_BD), vocab_size, dtype=weight_BM.dtype, device=weight_BM.device)
        p_BV.scatter_add_(1, state.words_BM.to(p_BV.device), weight_BM)
        return p_BV.log(), (state.count_B > 0).to(p_BV.device)

    def score(
        self, before_BTD: Tensor, ids_BT: Tensor, lengths_B: Tensor, state: CacheState
    ) -> tuple[Tensor, Tensor, CacheState]:
        """Score a few tokens at a time: one product of their features with all keys they may use."""
        words_BS, keys_BSD = self._joined(before_BTD, ids_BT, state)
        M, (B, T) = state.words_BM.shape[1], ids_BT.shape
        empty_B = M - state.count_B.to(ids_BT.device)  # this many places at the left are empty
        logp_BT = torch.full((B, T), -torch.inf, device=ids_BT.device)
        for at in _pieces(T, max(1, B * min(self.size + M, M + T))):
            first, end = max(0, M + at.start - self.size), M + at.stop - 1  # keys in use
            dots_BQK = torch.bmm(before_BTD[:, at].float(), keys_BSD[:, first:end].transpose(1, 2))
            now_Q1 = torch.arange(M + at.start, M + at.stop, device=ids_BT.device)[:, None]
            place_K = torch.arange(first, end, device=ids_BT.device)
            band_QK = (place_K < now_Q1) & (place_K >= now_Q1 - self.size)
            seen_BQK = band_QK & (place_K >= empty_B[:, None, None])
            same_BQK = words_BS[:, None, first:end] == ids_BT[:, at, None]
            logp_BT[:, at] = _share(dots_BQK.mul_(self.theta), seen_BQK, same_BQK)
        says_BT = state.count_B.to(ids_BT.device)[:, None] + torch.arange(T, device=ids_BT.device) > 0
        return logp_BT, says_BT, self._last(words_BS, keys_BSD, lengths_B, state)

    def read(self, before_BTD: Tensor, ids_BT: Tensor, lengths_B: Tensor, state: CacheState) -> CacheState:
        """Remember the tokens; the oldest are forgotten."""
        return self._last(*self._joined(before_BTD, ids_BT, state), lengths_B, state)

    def reorder(self, state: CacheState, rows_B: Tensor) -> CacheState:
        """Return these rows."""
        return CacheState(*(part[rows_B.to(part.device)] for part in state))

    def rows(self, state: CacheState) -> int:
        """Return how many rows a state has."""
        return len(state.count_B)

    def join(self, states: Sequence[CacheState]) -> CacheState:
        """Return the rows of several states in one; shorter caches have empty places at the left."""
        M, D = (max(state.keys_BMD.shape[axis] for state in states) for axis in (1, 2))
        device = max(states, key=lambda state: state.words_BM.shape[1]).words_BM.device
        words, keys = [], []
        for state in states:
            empty, missing = M - state.words_BM.shape[1], D - state.keys_BMD.shape[2]
            words.append(F.pad(state.words_BM, (empty, 0)).to(device))
            keys.append(F.pad(state.keys_BMD, (0, missing, empty, 0)).to(device))
        count_B = torch.cat([state.count_B.to(device) for state in states])
        return CacheState(torch.cat(words), torch.cat(keys), count_B)

    def explain(
        self, feature_BD: Tensor, state: CacheState, word: int, top: int
    ) -> tuple[float, tuple[Witness, ...]] | None:
        """Return where in the cache the token stands, and with what weight."""
        M = state.words_BM.shape[1]
        if int(state.count_B[0]) == 0:
            return None
        weight_M = self._weights(feature_BD, state)[0]
        weight_M = torch.where(state.words_BM[0].to(weight_M.device) == word, weight_M, 0.0)
        best = torch.topk(weight_M, min(top, M))
        found = zip(best.values.tolist(), best.indices.tolist(), strict=True)
        witnesses = tuple(Witness(word, weight, back=M - at) for weight, at in found if weight > 0)
        return float(weight_M.sum()), witnesses

    def _weights(self, feature_BD: Tensor, state: CacheState) -> Tensor:
        """Compute exp(θ h_i · h_t) over all i, normalized; 0 where there is nothing."""
        M, device = state.words_BM.shape[1], feature_BD.device
        if M == 0:
            return torch.zeros(len(feature_BD), 0, device=device)
        dots_BM = torch.einsum("bmd,bd->bm", state.keys_BMD, feature_BD.float()).mul_(self.theta)
        seen_BM = torch.arange(M, device=device) >= M - state.count_B.to(device)[:, None]
        weight_BM = torch.softmax(dots_BM.masked_fill_(~seen_BM, -torch.inf), dim=1)
        return torch.where(seen_BM, weight_BM, 0.0)  # the softmax of an empty row is NaN

    def _joined(self, before_BTD: Tensor, ids_BT: Tensor, state: CacheState) -> tuple[Tensor, Tensor]:
        """Return what is remembered, then the new tokens."""
        if state.words_BM.shape[1] == 0:
            return ids_BT, before_BTD.float()
        words_BS = torch.cat([state.words_BM, ids_BT], dim=1)
        return words_BS, torch.cat([state.keys_BMD, before_BTD.float()], dim=1)

    def _last(self, words_BS: Tensor, keys_BSD: Tensor, lengths_B: Tensor, state: CacheState) -> CacheState:
        """Return the last N real tokens of each row, the newest at the right."""
        count_B = (state.count_B.to(lengths_B.device) + lengths_B).clamp(max=self.size)
        M = int(count_B.max()) if len(count_B) else 0
        ends_B = state.words_BM.shape[1] + lengths_B
        if bool((ends_B == words_BS.shape[1]).all()):
            first = words_BS.shape[1] - M
            keys_BMD = keys_BSD[:, first:].clone() if first else keys_BSD
            return CacheState(words_BS[:, first:].clone(), keys_BMD, count_B)
        places_BM = (ends_B[:, None] - M + torch.arange(M, device=ends_B.device)).clamp(min=0)
        keys_BMD = keys_BSD.gather(1, places_BM[..., None].expand(-1, -1, keys_BSD.shape[2]))
        return CacheState(words_BS.gather(1, places_BM), keys_BMD, count_B)


def _pieces(length: int, row: int) -> Iterator[slice]:
    """Yield the positions in pieces, so that not too many products are held."""
    size = max(1, min(256, HELD // row))
    for at in range(0, length, size):
        yield slice(at, min(at + size, length))


def _share(dots_BQK: Tensor, seen_BQK: Tensor, same_BQK: Tensor) -> Tensor:
    """Return the log of the share of exp(dots) that belongs to the token; log 0 where nothing does."""
    dots_BQK.masked_fill_(~seen_BQK, -torch.inf)
    if dots_BQK.shape[2] == 0:  # the first token of a text
        return dots_BQK.new_full(dots_BQK.shape[:2], -torch.inf)
    top_BQ1 = dots_BQK.amax(dim=2, keepdim=True)
    top_BQ1 = torch.where(torch.isinf(top_BQ1), 0.0, top_BQ1)
    weight_BQK = dots_BQK.sub_(top_BQ1).exp_()
    total_BQ = weight_BQK.sum(dim=2)
    hit_BQ = weight_BQK.mul_(same_BQK).sum(dim=2)
    return torch.where(hit_BQ > 0, (hit_BQ / total_BQ).log(), -torch.inf)


class CacheKind:
    """The neural cache as loading sees it."""

    name = "cache"
    Settings = CacheSettings
    reads_features = True

    def load(self, folder: RunFolder, settings: CacheSettings, tokenizer: Tokenizer) -> NeuralCache:
        """Return the cache, which has nothing but its settings."""
        return NeuralCache(settings)

    def describe(self, settings: CacheSettings) -> str:
        """Describe the cache in one phrase."""
        return f"a neural cache of the last {settings.size:,} tokens, θ = {settings.theta:.4g}"


CACHE = CacheKind()
"""Tokens that followed similar features in the text read last (the neural cache, Grave et al. 2017)."""
