"""How much a token still depends on what was read k tokens before: ||d loss(t) / d h(t-k)||, and by depth.

[IITD-2 "Vanishing Gradient Intuition", "Is Vanishing/Exploding Gradient Just an RNN Problem?"], [XMU
"The gradient may be a trouble maker"]. Every requested place of the text is a row of one batch, so that one
backward pass gives all of them: rows do not affect each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from nextword.blocks.states import join_rows
from nextword.models.network import Network
from nextword.models.recurrent import RecurrentNetwork
from nextword.models.transformer import TransformerNetwork
from nextword.probe import passes

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Distances:
    """Norms by layer, place and distance; ``norm_SPK[..., k - 1]`` is of what stood k tokens before."""

    sites: tuple[str, ...]
    norm_SPK: Array
    places_P: Array  # which ids of the text were predicted

    @property
    def mean(self) -> Array:
        """``mean_SK`` over the places."""
        mean_SK: Array = self.norm_SPK.mean(axis=1)
        return mean_SK


@dataclass(frozen=True)
class Depths:
    """Norms by layer, from the embeddings up."""

    layers: tuple[str, ...]
    activations_L: Array  # ||d loss / d x|| of a layer's activations, the mean over positions
    weights_L: Array  # ||d loss / d W|| of all its weights


def by_distance(network: Network, ids_T: Array, distance: int = 100, places: int = 16) -> Distances:
    """Return the norms at evenly spread places of a text that begins with START."""
    most = min(distance, len(ids_T) - 1, *((network.context,) if network.context is not None else ()))
    count = min(places, len(ids_T) - most)
    places_P = np.unique(np.linspace(most, len(ids_T) - 1, count).round().astype(np.int64))
    ids = torch.as_tensor(ids_T, device=network.device)
    rows_PK = torch.stack([ids[place - most : place] for place in places_P.tolist()])
    state = _before(network, ids, places_P - most)
    sites, norm_SPK = of_rows(network, rows_PK, ids[torch.as_tensor(places_P)], state)
    return Distances(sites, norm_SPK, places_P)


def of_rows(
    network: Network, rows_PK: Tensor, targets_P: Tensor, state: Any = None
) -> tuple[tuple[str, ...], Array]:
    """Return ``norm_SPK`` of the loss of each row's target, by layer and distance, the nearest token first.

    ``state``: what a recurrent network read before the rows; without it only the embeddings are measured.
    What stands outside a window has norm 0. The weights' gradients are not changed.
    """
    with torch.enable_grad():
        done = passes.run(network, rows_PK[:, -(network.context or 0) :], state)
        loss = passes.losses(network, done.features_BTD[:, -1], targets_P)
        sites = done.sites if state is not None or isinstance(network, TransformerNetwork) else done.sites[:1]
        tensors = [tensor for site in sites for tensor in site.tensors]
        found = list(torch.autograd.grad(loss, tensors, allow_unused=True))
    norm_SPK = np.zeros((len(sites), *rows_PK.shape))
    for norm_PK, site in zip(norm_SPK, sites, strict=True):
        own = [found.pop(0) for _ in site.tensors]
        near = site.gather(own).norm(dim=-1).flip(1).double().cpu().numpy()[:, : rows_PK.shape[1]]
        norm_PK[:, : near.shape[1]] = near
    return tuple(site.name for site in sites), norm_SPK


@torch.no_grad()
def _before(network: Network, ids: Tensor, cuts: Array) -> Any:
    """Return a recurrent network's state at the start of each row; other networks start from nothing."""
    if not isinstance(network, RecurrentNetwork):
        return None
    state, read, found = network.start(1), 0, []
    for cut in cuts.tolist():
        state = network.read(ids[None, read:cut], state)[1]
        read = cut
        found.append(state)
    return join_rows(found)


def by_depth(network: Network, ids_T: Array) -> Depths:
    """Return the norms of the mean loss of a text, layer by layer."""
    ids = torch.as_tensor(ids_T, device=network.device)
    if isinstance(network, TransformerNetwork):
        ids = ids[: network.window]
    layers = _layers(network)
    with torch.enable_grad():
        done, targets = _one_row(network, ids)
        loss = passes.losses(network, done.features_BTD.flatten(0, 1), targets) / len(targets)
        tensors = [tensor for site in done.sites for tensor in site.tensors]
        weights = [weight for _, module in layers for weight in module.parameters()]
        found = list(torch.autograd.grad(loss, [*tensors, *weights], allow_unused=True))
    squares = np.zeros(len(layers))
    for site in done.sites:
        x_BTD = site.gather([found.pop(0) for _ in site.tensors]) * len(targets)
        squares[site.depth] += float(x_BTD.norm(dim=-1).mean()) ** 2
    of_weights = []
    for _, module in layers:
        own = [found.pop(0) for _ in module.parameters()]
        of_weights.append(sum(float(each.norm()) ** 2 for each in own if each is not None) ** 0.5)
    return Depths(tuple(name for name, _ in layers), np.sqrt(squares), np.array(of_weights))


def _one_row(network: Network, ids: Tensor) -> tuple[passes.Pass, Tensor]:
    """Predict every position of the text: in one row, or in as many windows as there are positions."""
    if network.context is not None and not isinstance(network, TransformerNetwork):
        C = network.context
        padded = torch.cat([ids.new_full((C - 1,), cast(Any, network).nothing), ids[:-1]])
        return passes.run(network, padded.unfold(0, C, 1)), ids[1:]
    return passes.run(network, ids[None, :-1]), ids[1:]


def _layers(network: Network) -> list[tuple[str, nn.Module]]:
    """Return the modules of every depth, the embeddings first."""
    own = cast(Any, network)
    if isinstance(network, TransformerNetwork):
        deep = list(own.stack.blocks)
    elif isinstance(network, RecurrentNetwork):
        deep = list(own.layers)
    else:
        return [("words", own.embedding), ("hidden layer", own.words_to_hidden)]
    return [("words", own.embedding), *((f"layer {depth}", each) for depth, each in enumerate(deep, start=1))]
