"""Keys and values of a search: what all hypotheses of a prompt have written is one tree, never copied.

A beam takes rows again at every step. Instead of copying windows, each row notes which nodes of its tree are
its own text; one product serves all hypotheses of a prompt, and a bias hides the nodes of the others. A
node is written once. Only the newest state of a search may be used, since all states share the trees.
Letters: U trees, S nodes, R rows of a tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from nextword.blocks.cache import KeysValues
from nextword.blocks.sources import Sharing, join_sources, take_sources

_AHEAD = 16  # steps for which a new buffer has room


class Branches(NamedTuple):
    """Trees of keys and values, the tree of each row, and its nodes: ``bias_BS`` is 0 there, else -inf."""

    keys_UNSK: Tensor
    values_UNSK: Tensor
    rows_B: Tensor
    bias_BS: Tensor

    def taken(self, rows_B: Tensor) -> Branches:
        """Take these rows; the trees are shared, those that nobody needs are dropped now and then."""
        (keys, values), rows = take_sources(self[:2], self.rows_B, rows_B)
        return Branches(keys, values, rows, self.bias_BS.index_select(0, rows_B.to(rows.device)))

    def joined(self, states: Sequence[Branches]) -> Branches:
        """Put the rows of several states into one."""
        (keys, values), rows = join_sources([each[:2] for each in states], [s.rows_B for s in states], (2, 2))
        most = max(each.bias_BS.shape[1] for each in states)
        biases = [F.pad(each.bias_BS, (0, most - each.bias_BS.shape[1]), value=-torch.inf) for each in states]
        return Branches(keys, values, rows, torch.cat(biases))

    def grown(self, new: tuple[Tensor, Tensor], sharing: Sharing) -> Branches:
        """Write one node for each row; ``new``: its key and value, ``x_BN1K``."""
        used, each = self.bias_BS.shape[1], sharing.each
        places_B = sharing.places(len(self.rows_B))
        found = []
        for old_UNSK, x_BN1K in zip(self[:2], new, strict=True):
            buffer_UNSK = _with_room(old_UNSK, used, each)
            nodes_UNRK = buffer_UNSK[:, :, used : used + each]
            if sharing.is_even:
                nodes_UNRK.copy_(sharing.group(x_BN1K))
            else:
                nodes_UNRK[self.rows_B, :, places_B] = x_BN1K[:, :, 0]
            found.append(buffer_UNSK)
        own_BR = torch.arange(each, device=places_B.device) == places_B[:, None]
        own_BR = torch.where(own_BR, 0.0, -torch.inf)
        return Branches(found[0], found[1], self.rows_B, torch.cat([self.bias_BS, own_BR], dim=1))

    def plain(self) -> KeysValues:
        """Return a window of its own for each row."""
        is_own_BS = self.bias_BS == 0
        most = int(is_own_BS.sum(dim=1).max())
        order_BS = (~is_own_BS).to(torch.int8).argsort(dim=1, stable=True)[:, :most]
        keys, values = (part[self.rows_B[:, None], :, order_BS].transpose(1, 2) for part in self[:2])
        return KeysValues(keys.contiguous(), values.contiguous())


def branched(state: KeysValues, counts_B: Tensor) -> Branches:
    """Return a tree for each row, of the tokens of its window; ``counts_B``: how many these are."""
    used, device = int(counts_B.max()), state.keys_BNSK.device
    is_own_BS = torch.arange(used) < counts_B[:, None]
    bias_BS = torch.zeros(is_own_BS.shape).masked_fill_(~is_own_BS, -torch.inf).to(device)
    keys, values = (part[:, :, :used].clone(memory_format=torch.contiguous_format) for part in state)
    return Branches(keys, values, torch.arange(len(counts_B), device=device), bias_BS)


def plain(state: Any) -> Any:
    """Return layers' states with windows in the places of trees."""
    if isinstance(state, Branches):
        return state.plain()
    return tuple(map(plain, state)) if type(state) is tuple else state


def _with_room(old_UNSK: Tensor, used: int, more: int) -> Tensor:
    """Return a buffer with room for more nodes; what was written is copied only where a new one is needed."""
    U, N, S, K = old_UNSK.shape
    if used + more <= S:
        return old_UNSK
    buffer_UNSK = old_UNSK.new_zeros(U, N, used + more * _AHEAD, K)  # hidden nodes are finite
    buffer_UNSK[:, :, :used] = old_UNSK[:, :, :used]
    return buffer_UNSK
