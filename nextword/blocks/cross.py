"""Attention to a source: the slot "cross", part X of a layer [MAUSAM "Decoders"].

Queries come from the stream, keys and values from what an encoder made of the source (Vaswani et al. 2017).
Rows that look at the same source share its keys and values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nextword.blocks.attention import Heads
from nextword.blocks.cache import Memory, Reading, real_slots
from nextword.blocks.cost import Cost, Load, linear
from nextword.blocks.positions import NoPosition
from nextword.blocks.shape import Shape
from nextword.blocks.sources import Sharing, join_sources, take_sources
from nextword.core.errors import ConfigError


class SourceKeys(NamedTuple):
    """Keys and values of some sources, how many of each are real, and which source each row looks at.

    ``tokens_US``: what may be copied from each position; no columns where nothing is. ``query_BNK`` is the
    last query of each row: where it looked is computed only on request.
    """

    keys_UNSK: Tensor
    values_UNSK: Tensor
    lengths_U: Tensor
    tokens_US: Tensor
    rows_B: Tensor
    query_BNK: Tensor

    def taken(self, rows_B: Tensor) -> SourceKeys:
        """Take these rows; keys and values are shared with the old state."""
        (keys, values, lengths, tokens), rows = take_sources(self[:4], self.rows_B, rows_B)
        query_BNK = self.query_BNK.index_select(0, rows_B.to(rows.device))
        return SourceKeys(keys, values, lengths, tokens, rows, query_BNK)

    def joined(self, states: Sequence[SourceKeys]) -> SourceKeys:
        """Put the rows of several states into one."""
        rows = [state.rows_B for state in states]
        kept, rows_B = join_sources([state[:4] for state in states], rows, (2, 2, 0, 1))
        keys, values, lengths, tokens = kept
        query_BNK = torch.cat([state.query_BNK for state in states])
        return SourceKeys(keys, values, lengths, tokens, rows_B, query_BNK)


class CrossAttention(Heads):
    """Queries from the stream, keys and values from a source, which is read once, in `start`.

    "Encoder-decoder attention" (Vaswani et al. 2017). The state holds the source's keys and values.
    """

    def __init__(self, shape: Shape, position: NoPosition) -> None:
        super().__init__(shape)
        bias = shape.biased_attention
        self.from_x = nn.Linear(shape.width, shape.heads * self.head_size, bias)
        width = shape.source_width or shape.width
        self.from_source = nn.Linear(width, 2 * shape.kv_heads * self.head_size, bias)
        self.out = nn.Linear(shape.heads * self.head_size, shape.width, bias)

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count the matrices, two of them applied to the source, and the products of tokens and source."""
        inner, bias = shape.heads * shape.head_size, shape.biased_attention
        of_tokens = linear(shape.width, inner, load.tokens, bias) + linear(
            inner, shape.width, load.tokens, bias
        )
        width = shape.source_width or shape.width
        of_source = linear(width, 2 * shape.kv_heads * shape.head_size, load.source_tokens, bias)
        return of_tokens + of_source + Cost(0, 2 * load.tokens * load.source * inner)

    def start(self, batch: int, source: Memory | None = None) -> SourceKeys:
        """Return keys and values of the whole source; raise an error without a source."""
        if source is None:
            raise ConfigError(
                "cross-attention looks at a source, but this model reads none; choose a block without it"
            )
        features_BSD, lengths_B, tokens_BS = source
        places_S = torch.arange(features_BSD.shape[1], device=lengths_B.device)
        kv_BSX = self._read(features_BSD, places_S < lengths_B[:, None])
        kv_BNSK = self.split(kv_BSX).transpose(1, 2)
        keys_BNSK, values_BNSK = kv_BNSK[:, : self.kv_heads], kv_BNSK[:, self.kv_heads :]
        if not torch.is_grad_enabled():  # they are read at every step
            keys_BNSK, values_BNSK = keys_BNSK.contiguous(), values_BNSK.contiguous()
        query_BNK = kv_BNSK.new_zeros(batch, self.heads, self.head_size)
        rows_B = torch.arange(batch, device=lengths_B.device)
        tokens_BS = lengths_B.new_zeros(len(lengths_B), 0) if tokens_BS is None else tokens_BS
        return SourceKeys(keys_BNSK, values_BNSK, lengths_B, tokens_BS, rows_B, query_BNK)

    def _read(self, features_BSD: Tensor, real_BS: Tensor) -> Tensor:
        """Multiply the features of a source; those that are not real are left out, whatever they are."""
        is_full = bool(real_BS.all())
        if is_full or torch.is_grad_enabled():
            if not is_full:  # NaN times 0 would still be NaN
                features_BSD = features_BSD.masked_fill(~real_BS[..., None], 0.0)
            whole_BSX: Tensor = self.from_source(features_BSD)
            return whole_BSX
        kv_RX = self.from_source(features_BSD[real_BS])
        kv_BSX: Tensor = kv_RX.new_zeros(*real_BS.shape, kv_RX.shape[1])
        kv_BSX[real_BS] = kv_RX
        return kv_BSX

    def forward(
        self, x_BTD: Tensor, state: SourceKeys, reading: Reading, skip: int = 0
    ) -> tuple[Tensor, SourceKeys]:
        """Attend to the source, for all tokens but the first ``skip``."""
        keys_UNSK, values_UNSK, lengths_U, _, rows_B, query_BNK = state
        q_BNTK = self.split(self.from_x(x_BTD[:, skip:])).transpose(1, 2)
        reading.shared["queries"] = q_BNTK  # of the last layer that looks at a source: for copying
        if self.is_single(q_BNTK, keys_UNSK):
            state = state._replace(query_BNK=_last(q_BNTK, query_BNK, reading, skip))
            counts_B = _counts(lengths_U, keys_UNSK)[rows_B]
            return self.leave(self.look(q_BNTK, keys_UNSK, values_UNSK, rows_B, counts_B)), state
        sharing = Sharing(rows_B, len(keys_UNSK))
        mixed_UNXK = self.weigh(sharing.group(q_BNTK), keys_UNSK, values_UNSK, _real(lengths_U, keys_UNSK))
        if not torch.is_grad_enabled():
            state = state._replace(query_BNK=_last(q_BNTK, query_BNK, reading, skip))
        return self.leave(sharing.ungroup(mixed_UNXK)), state

    def looked(self, state: SourceKeys) -> Tensor:
        """Return ``weights_BNS``: how much the last query of each row looked at each source position."""
        return self.weights(state.query_BNK[:, :, None], state)[:, :, 0]

    def weights(self, q_BNTK: Tensor, state: SourceKeys) -> Tensor:
        """Return ``weights_BNTS``: how much each query looks at each source position."""
        keys_UNSK = state.keys_UNSK.repeat_interleave(self.heads // self.kv_heads, dim=1)
        sharing = Sharing(state.rows_B, len(keys_UNSK))
        scores_UNXS = (sharing.group(q_BNTK) @ keys_UNSK.transpose(2, 3)).float() * self.scale
        real_U11S = real_slots(state.lengths_U, keys_UNSK.shape[2], keys_UNSK.device)
        return sharing.ungroup(scores_UNXS.masked_fill(~real_U11S, -torch.inf).softmax(dim=-1))


def _real(lengths_U: Tensor, keys_UNSK: Tensor) -> Tensor | None:
    """Return which keys are real; None: all are."""
    S = keys_UNSK.shape[2]
    return None if bool((lengths_U == S).all()) else real_slots(lengths_U, S, keys_UNSK.device)


def _counts(lengths_U: Tensor, keys_UNSK: Tensor) -> Tensor:
    """Return how many keys are seen; where there is no real one, all are: a softmax over nothing is NaN."""
    return torch.where(lengths_U > 0, lengths_U, keys_UNSK.shape[2])


def _last(q_BNTK: Tensor, before_BNK: Tensor, reading: Reading, skip: int) -> Tensor:
    """Return the query of each row's last real token; the one before where it has none."""
    if reading.is_full:
        return q_BNTK[:, :, -1]
    last_B = torch.tensor(reading.lengths, device=q_BNTK.device) - 1 - skip
    rows_B = torch.arange(len(last_B), device=q_BNTK.device)
    return torch.where((last_B >= 0)[:, None, None], q_BNTK[rows_B, :, last_B.clamp(min=0)], before_BNK)
