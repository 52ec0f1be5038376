"""One forward pass of a network over some rows, with every layer's activations as nodes of the graph.

The equations are the blocks' own, combined as in the network's `read`, but token by token where there is a
recurrent state: only then is d loss / d h(t) available [IITD-2 "Vanishing Gradient Intuition"]. A test
compares the features with those that scoring uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from nextword.blocks.cache import Reading
from nextword.blocks.cells import Cell, CellState
from nextword.models.network import Head, Network
from nextword.models.recurrent import RecurrentNetwork
from nextword.models.transformer import TransformerNetwork
from nextword.models.window import WindowNetwork


@dataclass(frozen=True)
class Site:
    """The activations of one layer: a tensor for every position (B, H), or one for all (B, T, D)."""

    name: str
    tensors: tuple[Tensor, ...]
    depth: int  # 0: the embeddings

    def gather(self, found: Sequence[Tensor | None]) -> Tensor:
        """Return ``x_BTD`` of what belongs to this layer's tensors: themselves, or their gradients."""
        pairs = zip(found, self.tensors, strict=True)
        real = [torch.zeros_like(own) if each is None else each for each, own in pairs]
        return real[0] if self.tensors[0].dim() == 3 else torch.stack(real, dim=1)


@dataclass(frozen=True)
class Pass:
    """The result of a pass: the nodes of the graph from the embeddings up, and the features at the top."""

    sites: tuple[Site, ...]
    features_BTD: Tensor


def run(network: Network, ids_BT: Tensor, state: Any = None) -> Pass:
    """Read the tokens; ``state``: what stands before them, for a recurrent network."""
    if isinstance(network, RecurrentNetwork):
        return recurrent(network, ids_BT, network.start(len(ids_BT)) if state is None else state)
    if isinstance(network, TransformerNetwork):
        return transformer(network, ids_BT)
    return window(cast(WindowNetwork, network), ids_BT)


def words_of(network: Network, ids_BT: Tensor, scale: float = 1.0) -> Tensor:
    """Return the token embeddings as leaves of the graph."""
    x_BTE: Tensor = cast(Any, network).embedding(ids_BT) * scale
    return x_BTE.detach().requires_grad_(torch.is_grad_enabled())


def recurrent(
    network: RecurrentNetwork,
    ids_BT: Tensor,
    state: Any,
    layers: Sequence[nn.Module] | None = None,
) -> Pass:
    """Run layer by layer, token by token; ``layers``: others in their place."""
    x_BTE = words_of(network, ids_BT, network.scale_words)
    sites, x_TBE = [Site("words", (x_BTE,), 0)], x_BTE.transpose(0, 1)
    stacked = zip(layers or network.layers, network.joins, state, strict=True)
    for depth, (layer, join, before) in enumerate(stacked, start=1):
        states = steps(cast(Cell, layer), x_TBE, before)
        for part, name in enumerate(("h", "c")[: len(before)]):
            title = f"layer {depth}" if len(before) == 1 else f"layer {depth}, {name}"
            sites.append(Site(title, tuple(each[part] for each in states), depth))
        x_TBE = join(x_TBE, torch.stack([each[0] for each in states]))
    features_TBD: Tensor = network.fit(x_TBE) * network.scale_features
    return Pass(tuple(sites), features_TBD.transpose(0, 1))


def steps(layer: Cell, x_TBE: Tensor, state: CellState) -> list[CellState]:
    """Return the state after each token, by the cell's plain equations."""
    found = []
    for x_BE in x_TBE.unbind(0):
        state = layer(x_BE, state)
        found.append(state)
    return found


def transformer(network: TransformerNetwork, ids_BT: Tensor) -> Pass:
    """Run block by block, from an empty window."""
    B, T = ids_BT.shape
    reading = reading_of(network, B, T)
    x_BTD = words_of(network, ids_BT)
    sites = [Site("words", (x_BTD,), 0)]
    x_BTD = network.position.embed(x_BTD, reading.places)
    stack = network.stack
    for depth, (stream, _) in enumerate(stack.run(x_BTD, stack.start(B), reading), start=1):
        x_BTD = stream
        sites.append(Site(f"layer {depth}", (x_BTD,), depth))
    return Pass(tuple(sites), stack.finish(x_BTD))


def reading_of(network: TransformerNetwork, rows: int, columns: int) -> Reading:
    """Set up a pass over whole rows from nothing."""
    return Reading([0] * rows, [columns] * rows, columns, network.window, network.device)


def window(network: WindowNetwork, ids_BT: Tensor) -> Pass:
    """Return the feature of the last window of each row: the only one that its tokens are read for."""
    C = cast(int, network.context)
    B, T = ids_BT.shape
    padding_BC = ids_BT.new_full((B, max(0, C - T)), network.nothing)
    x_BTE = words_of(network, torch.cat([padding_BC, ids_BT], dim=1)[:, -C:], network.scale_words)
    e_BX = x_BTE.flatten(1)
    h_B1H = network.activation(network.words_to_hidden(e_BX))[:, None]
    features_BD: Tensor = network.fit(network.top(h_B1H[:, 0], e_BX)) * network.scale_features
    sites = (Site("words", (x_BTE,), 0), Site("hidden layer", (h_B1H,), 1))
    return Pass(sites, features_BD[:, None])


def losses(network: Network, features_ND: Tensor, targets_N: Tensor) -> Tensor:
    """Return Σ -log p of the tokens."""
    return cast(Head, network.head).loss(features_ND, targets_N)


def nats(network: Network, features_ND: Tensor, targets_N: Tensor) -> Tensor:
    """Return -log p of each token."""
    return -cast(Head, network.head).score(features_ND, targets_N)


@torch.no_grad()
def states_of(network: Network, rows: Sequence[Any], cells: bool = False) -> list[tuple[str, Tensor]]:
    """Return every layer's activations after each token of each row, rows one after another: (name, x_ND).

    Of a recurrent layer its h, with ``cells`` also c of an LSTM; windows of a Transformer are read one after
    the other, each from nothing.
    """
    found: dict[str, list[Tensor]] = {}
    for row in rows:
        ids_1T = torch.as_tensor(row, device=network.device)[None]
        limit = network.context if isinstance(network, TransformerNetwork) else None
        step = limit or max(1, ids_1T.shape[1])
        for piece_1T in (ids_1T[:, at : at + step] for at in range(0, ids_1T.shape[1], step)):
            for site in run(network, piece_1T).sites:
                if cells or not site.name.endswith(", c"):
                    name = site.name.removesuffix(", h")
                    found.setdefault(name, []).append(site.gather(site.tensors)[0])
    return [(name, torch.cat(parts)) for name, parts in found.items()]
