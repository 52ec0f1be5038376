"""Attention over the tokens so far or a whole row: the slot "mixer".

"Self-attention only on words generated uptil now, not on whole sentence" [MAUSAM "Decoders"]; "Multiple
heads" [MAUSAM "Transformers (2017) Made Many Changes at Once!"]; shared keys and values: Ainslie et al. 2023.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nextword.blocks.autocast import is_autocast
from nextword.blocks.cache import KeysValues, Memory, Reading
from nextword.blocks.cost import Cost, Load, linear
from nextword.blocks.packed import PackedLinear, uses_panels
from nextword.blocks.positions import NoPosition, Places
from nextword.blocks.roles import Role, Roles
from nextword.blocks.shape import Shape
from nextword.blocks.sources import Sharing
from nextword.core.catalog import find

if TYPE_CHECKING:
    from nextword.blocks.branches import Branches

_FEW, _FEW_KEYS = 8, 48  # queries and keys up to which three plain steps are faster than the fused one
_SHORT = 64  # queries of a row up to which the compiled loop is as fast as the fused product of that row


class Heads(nn.Module):
    """What every attention has: Attention(Q, K, V) = softmax(s Q Kᵀ) V in N heads, and the output matrix.

    s is 1/√K, or what the slot "scale" names.

    M heads of keys and values serve N heads of queries, N / M each: M = N is multi-head attention,
    M = 1 multi-query. The products with Q, K and V and the softmax are in float32 even under bfloat16
    autocast, where their derivative would be slow.
    """

    roles: ClassVar[Roles] = {"out": Role.OUT}
    adds_positions: ClassVar[bool] = True  # whether it has scores that positions are added to
    looks_at_distance: ClassVar[bool] = False  # ... also those that depend on the query
    has_heads: ClassVar[bool] = True  # whether its output matrix sees heads side by side
    norms_queries: ClassVar[bool] = False  # whether the slot "qk_norm" norms queries and keys
    weighs: ClassVar[bool] = True  # whether the slot "weighing" turns its scores to weights
    from_x: nn.Linear
    out: nn.Linear

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_size = shape.heads, shape.kv_heads, shape.head_size
        self.scale: float = find("scale", shape.scale)(shape.head_size)
        weighing = find("weighing", shape.weighing)
        self.weighing = None if weighing.fused else weighing(shape)

    def split(self, projected_BTX: Tensor) -> Tensor:
        """Return ``x_BTNK`` in float32, with an axis for the heads."""
        heads_BTNK = projected_BTX.view(*projected_BTX.shape[:-1], -1, self.head_size)
        return heads_BTNK.float() if heads_BTNK.dtype == torch.bfloat16 else heads_BTNK

    def weigh(
        self,
        q_BNTK: Tensor,
        keys_BNSK: Tensor,
        values_BNSK: Tensor,
        mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        """Compute softmax(s Q Kᵀ + mask) V; a Boolean mask is true at the keys that are used."""
        if is_autocast(q_BNTK):
            with torch.autocast(q_BNTK.device.type, enabled=False):
                return self._weigh(q_BNTK, keys_BNSK, values_BNSK, mask, is_causal)
        return self._weigh(q_BNTK, keys_BNSK, values_BNSK, mask, is_causal)

    def _weigh(
        self, q_BNTK: Tensor, keys_BNSK: Tensor, values_BNSK: Tensor, mask: Tensor | None, is_causal: bool
    ) -> Tensor:
        if self.weighing is not None:
            return self._weigh_plainly(q_BNTK, keys_BNSK, values_BNSK, mask, is_causal)
        is_shared = self.kv_heads != self.heads
        if not (is_shared or is_causal or torch.is_grad_enabled()) and _are_few(q_BNTK, keys_BNSK):
            return self._weigh_few(q_BNTK, keys_BNSK, values_BNSK, mask)
        return F.scaled_dot_product_attention(
            q_BNTK, keys_BNSK, values_BNSK, mask, is_causal=is_causal, scale=self.scale, enable_gqa=is_shared
        )

    def _weigh_few(
        self, q_BNTK: Tensor, keys_BNSK: Tensor, values_BNSK: Tensor, mask: Tensor | None
    ) -> Tensor:
        """Compute the same in three steps, which is faster while a text is written token by token."""
        scores_BNTS = torch.matmul(q_BNTK, keys_BNSK.transpose(-2, -1)).mul_(self.scale)
        if mask is not None:
            hidden = mask.dtype == torch.bool
            scores_BNTS = scores_BNTS.masked_fill_(~mask, -torch.inf) if hidden else scores_BNTS.add_(mask)
        return torch.matmul(scores_BNTS.softmax(dim=-1), values_BNSK)

    def _weigh_plainly(
        self, q_BNTK: Tensor, keys_BNSK: Tensor, values_BNSK: Tensor, mask: Tensor | None, is_causal: bool
    ) -> Tensor:
        """Compute all scores, then the weights as the slot "weighing" says."""
        assert self.weighing is not None
        keys_BNSK, values_BNSK = self.spread(keys_BNSK), self.spread(values_BNSK)
        scores_BNTS = q_BNTK @ keys_BNSK.transpose(-2, -1) * self.scale
        if is_causal:
            mask = torch.ones(scores_BNTS.shape[-2:], dtype=torch.bool, device=scores_BNTS.device).tril()
        weights_BNTS: Tensor = self.weighing(scores_BNTS, mask)
        return weights_BNTS @ values_BNSK

    def spread(self, shared_BMSK: Tensor) -> Tensor:
        """Repeat heads of keys or values for all heads of queries that they serve."""
        each = self.heads // self.kv_heads
        return shared_BMSK if each == 1 else shared_BMSK.repeat_interleave(each, dim=1)

    def is_single(self, q_BNTK: Tensor, keys_UNSK: Tensor) -> bool:
        """Tell whether each row has one query that the compiled loop can answer (`look`)."""
        return q_BNTK.shape[2] == 1 and self.can_look(q_BNTK, keys_UNSK) and keys_UNSK.is_contiguous()

    def can_look(self, q_BNTK: Tensor, keys_UNSK: Tensor) -> bool:
        """Tell whether the compiled loop can answer queries."""
        if self.weighing is not None or torch.is_grad_enabled():
            return False
        return q_BNTK.is_cpu and q_BNTK.dtype == keys_UNSK.dtype == torch.float32

    def look(
        self,
        q_BN1K: Tensor,
        keys_UMSK: Tensor,
        values_UMSK: Tensor,
        sources_B: Tensor,
        counts_B: Tensor,
        bias_BS: Tensor | None = None,
    ) -> Tensor:
        """Compute softmax(s q Kᵀ) V for one query of each row: ``mixed_BN1K``, of the heads."""
        from nextword.blocks.attention_kernel import look

        q_BNK = q_BN1K[:, :, 0]
        B, N, K = q_BNK.shape
        if q_BNK.stride()[1:] != (K, 1) or q_BNK.stride(0) < N * K:
            q_BNK = q_BNK.contiguous()
        # addresses say nothing of types and strides, so that everything gets the ones that the loop reads
        sources_B, counts_B = (each.to(torch.int64).contiguous() for each in (sources_B, counts_B))
        keys_UMSK, values_UMSK = keys_UMSK.contiguous(), values_UMSK.float().contiguous()
        mixed_BNK = q_BNK.new_empty(B, N, K)
        bias, columns, step = mixed_BNK, 0, 0
        if bias_BS is not None:
            bias = bias_BS.float() if bias_BS.stride(1) == 1 else bias_BS.float().contiguous()
            columns, step = bias.shape[1], bias.stride(0)
        look(
            q_BNK.data_ptr(), q_BNK.stride(0), keys_UMSK.data_ptr(), values_UMSK.data_ptr(),
            sources_B.data_ptr(), counts_B.data_ptr(), bias.data_ptr(), columns,
            (B, *keys_UMSK.shape, step), N, mixed_BNK.data_ptr(), self.scale,
        )  # fmt: skip
        return mixed_BNK[:, :, None]

    def leave(self, mixed_BNTK: Tensor) -> Tensor:
        """Concatenate all heads and apply the output matrix."""
        y_BTD: Tensor = self.out(mixed_BNTK.transpose(1, 2).flatten(2))
        return y_BTD


class Attention(Heads):
    """Self-attention: each token sees itself and those before it, or, not causal, all tokens of its row.

    One matrix makes queries, keys and values.
    """

    looks_at_distance = True
    norms_queries = True

    def __init__(self, shape: Shape, position: NoPosition) -> None:
        super().__init__(shape)
        self.causal = shape.causal
        own = position.of_layer(shape)
        self.position = (own,)  # in a tuple, because its weights belong to the whole stack
        if not any(own is each for each in position.modules()):
            self.own_position = own
        self.norm = find("qk_norm", shape.qk_norm)(shape)
        # Whether a token sees all tokens before it by their keys alone.
        self.sees_all = type(self) is Attention and self.causal and not (own.biases or own.looks)
        bias = shape.biased_attention
        self.from_x = nn.Linear(shape.width, (shape.heads + 2 * shape.kv_heads) * self.head_size, bias)
        self.out = nn.Linear(shape.heads * self.head_size, shape.width, bias)

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count the matrices, and Q Kᵀ and its product with V for all pairs of a row."""
        weighing: Cost = find("weighing", shape.weighing).cost(shape, load)
        return matrices(shape, load) + Cost(0, pairs(shape, load)) + weighing

    def start(self, batch: int, source: Memory | None = None) -> KeysValues:
        """Return an empty cache of keys and values."""
        none_BNSK = self.from_x.weight.new_zeros(batch, self.kv_heads, 0, self.head_size)
        return KeysValues(none_BNSK, none_BNSK)

    def branched(self, state: KeysValues, counts_B: Tensor) -> KeysValues | Branches:
        """Return the state for a search, whose rows are taken again at every step (`blocks.branches`)."""
        if not self.sees_all or self.weighing is not None:  # nodes of a tree do not know their distances
            return state
        from nextword.blocks.branches import branched

        return branched(state, counts_B)

    def forward(self, x_BTD: Tensor, state: Any, reading: Reading, skip: int = 0) -> tuple[Tensor, Any]:
        """Attend, for all tokens but the first ``skip``; return also the keys and values of all tokens."""
        parts = self.project(x_BTD, reading.places)
        if isinstance(state, KeysValues):
            return self.attend(*parts, state, reading, skip)
        if reading.T > 1 or not reading.is_full:
            return self.attend(*parts, state.plain(), reading, skip)
        return self._attend_in_trees(*parts, state)

    def _attend_in_trees(
        self, q_BN1K: Tensor, k_BN1K: Tensor, v_BN1K: Tensor, state: Branches
    ) -> tuple[Tensor, Branches]:
        """Attend to the nodes of one token's own text; rows of a tree together."""
        sharing = Sharing(state.rows_B, len(state.keys_UNSK))
        state = state.grown((k_BN1K, v_BN1K), sharing)
        if self.is_single(q_BN1K, state.keys_UNSK):
            counts_B = state.rows_B  # not looked at: the bias says what is seen
            return self.leave(self.look(q_BN1K, *state[:3], counts_B, state.bias_BS)), state
        S = state.bias_BS.shape[1]
        bias_U1RS = sharing.group(state.bias_BS[:, None, None])
        keys_UNSK, values_UNSK = (part[:, :, :S] for part in state[:2])
        mixed_UNRK = self.weigh(sharing.group(q_BN1K), keys_UNSK, values_UNSK, bias_U1RS)
        return self.leave(sharing.ungroup(mixed_UNRK)), state

    def attend(
        self,
        q_BNTK: Tensor,
        k_BNTK: Tensor,
        v_BNTK: Tensor,
        state: KeysValues,
        reading: Reading,
        skip: int,
    ) -> tuple[Tensor, KeysValues]:
        """Append keys and values to the cache, and attend to all of it."""
        state = KeysValues(reading.append(state.keys_BNSK, k_BNTK), reading.append(state.values_BNSK, v_BNTK))
        if self.sees_all and reading.is_full and self.is_single(q_BNTK, state.keys_BNSK):
            return self.leave(self.look(q_BNTK, *state, *reading.ends)), state
        if self.sees_all and self._keeps_bits(q_BNTK, state.keys_BNSK, reading):
            return self.leave(self._weigh_alone(q_BNTK[:, :, skip:], state, reading, skip)), state
        keys_BNSK, values_BNSK = (part[:, :, : reading.keys] for part in state)
        mask, is_causal = self._mask(q_BNTK, reading, skip)
        return self.leave(self.weigh(q_BNTK[:, :, skip:], keys_BNSK, values_BNSK, mask, is_causal)), state

    def _keeps_bits(self, q_BNTK: Tensor, keys_BNSK: Tensor, reading: Reading) -> bool:
        """Tell whether matrices are multiplied by panels, which give a row the same bits in every batch."""
        is_packed = isinstance(self.from_x, PackedLinear) and uses_panels()
        return is_packed and reading.ahead is None and self.can_look(q_BNTK, keys_BNSK)

    def _weigh_alone(self, q_BNTK: Tensor, state: KeysValues, reading: Reading, skip: int) -> Tensor:
        """Compute softmax(s Q Kᵀ) V of each row by itself: padding would round it in another way.

        Few queries are answered one by one, as single tokens are; rows alike in length go together.
        """
        q_BNTK = q_BNTK[:, :, : max(reading.lengths) - skip]
        if q_BNTK.shape[2] <= _SHORT:
            return self._look_at_all(q_BNTK, state, reading.before, reading.lengths, skip)
        mixed_BNTK = torch.zeros_like(q_BNTK)
        for (before, length), rows in alike(reading.before, reading.lengths):
            T, S = length - skip, before + length
            if T <= 0:
                continue
            q_GNTK, own = q_BNTK[rows, :, :T], KeysValues(*(part[rows, :, :S] for part in state))
            if T <= _SHORT:
                counts = [before] * len(rows), [length] * len(rows)
                found_GNTK = self._look_at_all(q_GNTK, own, *counts, skip)
            else:
                is_causal = T == S
                seen = None if is_causal else torch.ones(T, S, dtype=torch.bool).tril(S - T)
                found_GNTK = self.weigh(q_GNTK, *own, seen, is_causal)
            mixed_BNTK[rows, :, :T] = found_GNTK
        return mixed_BNTK

    def _look_at_all(
        self, q_BNTK: Tensor, state: KeysValues, before: Sequence[int], lengths: Sequence[int], skip: int
    ) -> Tensor:
        """Answer all queries of all rows in one loop; past a row's end they see its first key."""
        B, N, T, K = q_BNTK.shape
        before_B1, lengths_B1 = torch.tensor(before)[:, None], torch.tensor(lengths)[:, None]
        places_T = torch.arange(skip, skip + T)
        counts_BT = torch.where(places_T < lengths_B1, before_B1 + places_T + 1, 1)
        sources_BT = torch.arange(B)[:, None].expand(B, T)
        q_XN1K = q_BNTK.transpose(1, 2).reshape(B * T, N, 1, K)
        mixed_XN1K = self.look(q_XN1K, *state, sources_BT.flatten(), counts_BT.flatten())
        return mixed_XN1K.view(B, T, N, K).transpose(1, 2)

    def explain(self, x_BTD: Tensor, reading: Reading) -> tuple[Tensor, Tensor]:
        """Return ``weights_BNTS`` without a past, and their output: the plain equivalent of `forward`."""
        q_BNTK, k_BNTK, v_BNTK = self.project(x_BTD, reading.places)
        k_BNTK, v_BNTK = self.spread(k_BNTK), self.spread(v_BNTK)
        scores_BNTS = q_BNTK @ k_BNTK.transpose(-2, -1) * self.scale
        bias, seen = self._bias(q_BNTK, reading), seen_keys(self.causal, reading)
        scores_BNTS = scores_BNTS if bias is None else scores_BNTS + bias
        if self.weighing is not None:
            weights_BNTS = self.weighing(scores_BNTS, seen)
        else:
            scores_BNTS = scores_BNTS if seen is None else scores_BNTS.masked_fill(~seen, -torch.inf)
            weights_BNTS = scores_BNTS.softmax(dim=-1)
        return weights_BNTS, self.leave(weights_BNTS @ v_BNTK)

    def project(self, x_BTD: Tensor, places: Places) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values; queries and keys are normed and rotated together."""
        qkv_BTXK = self.split(self.from_x(x_BTD))
        qk_BTNK, v_BTNK = torch.split(qkv_BTXK, [self.heads + self.kv_heads, self.kv_heads], dim=2)
        qk_BNTK = self.position[0].turn(self.norm(qk_BTNK), places).transpose(1, 2)
        return qk_BNTK[:, : self.heads], qk_BNTK[:, self.heads :], v_BTNK.transpose(1, 2)

    def _bias(self, q_BNTK: Tensor, reading: Reading) -> Tensor | None:
        """Return what positions add to the scores, by themselves or by the queries."""
        position = self.position[0]
        bias = position.bias(reading.places, reading.keys)
        looked = position.looked(q_BNTK, reading.places, reading.keys)
        return bias if looked is None else looked

    def _mask(self, q_BNTK: Tensor, reading: Reading, skip: int) -> tuple[Tensor | None, bool]:
        """Return what is added to the scores or which keys are seen, and whether the mask is causal."""
        bias = self._bias(q_BNTK, reading)
        if bias is not None:
            seen = seen_keys(self.causal, reading)
            return (bias if seen is None else bias.masked_fill(~seen, -torch.inf))[..., skip:, :], False
        if not self.causal:
            return reading.filled(), False
        if skip:
            return reading.seen()[..., skip:, :], False
        return reading.mask, reading.is_causal


def alike(before: Sequence[int], lengths: Sequence[int]) -> Iterable[tuple[tuple[int, int], list[int]]]:
    """Return the rows that have read and will read the same number of tokens, by these two numbers."""
    groups: dict[tuple[int, int], list[int]] = {}
    for row, both in enumerate(zip(before, lengths, strict=True)):
        groups.setdefault(both, []).append(row)
    return groups.items()


def _are_few(q_BNTK: Tensor, keys_BNSK: Tensor) -> bool:
    """Tell whether there are few queries and keys, each head's together in memory."""
    _, N, S, K = keys_BNSK.shape
    is_near = keys_BNSK.stride()[1:] == (keys_BNSK.stride(0) // N, K, 1)
    return q_BNTK.shape[2] <= _FEW and S <= _FEW_KEYS and is_near and keys_BNSK.device.type == "cpu"


def seen_keys(causal: bool, reading: Reading) -> Tensor | None:
    """Return True where a token sees a key; None: everywhere."""
    return reading.seen() if causal else reading.filled()


def matrices(shape: Shape, load: Load) -> Cost:
    """Count the matrices of self-attention, the norm of queries and keys, and positions of its own."""
    inner, bias = shape.heads * shape.head_size, shape.biased_attention
    into = linear(shape.width, inner + 2 * shape.kv_heads * shape.head_size, load.tokens, bias)
    out = linear(inner, shape.width, load.tokens, bias)
    position: Cost = find("position", shape.position).layer_cost(shape, load.tokens)
    own: Cost = find("qk_norm", shape.qk_norm).cost(shape)
    return into + out + own + position


def pairs(shape: Shape, load: Load) -> int:
    """Count the multiply-adds of all pairs of tokens: their scores, and their part in the sum of values."""
    return 2 * load.tokens * load.length * shape.heads * shape.head_size


def sqrt(head_size: int) -> float:
    """Return 1 / √K: scores keep their variance, however large a head is (Vaswani et al. 2017)."""
    return float(head_size**-0.5)


def linear_scale(head_size: int) -> float:
    """Return 1 / K, as the maximal update parametrization has it (Yang et al. 2022)."""
    return 1.0 / head_size


def no_scale(head_size: int) -> float:
    """Return 1: the size of the query matrix has to make up for it, as in T5."""
    return 1.0
