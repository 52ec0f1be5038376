"""What a weight is for, declared by the part that owns it.

Optimizers, initial weights and probes treat weights by role: which ones decay, which ones Muon updates, which
ones write to the stream. A part declares ``roles`` by attribute: of its own weights, of a linear map or of a
list of weights. Where nothing is declared, a matrix is a `Role.MATRIX` and anything smaller a `Role.BIAS`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum

from torch import nn


class Role(StrEnum):
    """The role of a weight of a network."""

    MATRIX = "matrix"  # computes features from features
    OUT = "out"  # the matrix by which a part writes to the stream
    GATE = "gate"  # the matrix of a gate beside the stream, which says what passes
    RECURRENT = "recurrent"  # from a state to the next one
    EMBEDDING = "embedding"  # a vector for each token
    POSITION = "position"  # a vector for each place
    HEAD = "head"  # from features to the scores of tokens
    NORM = "norm"  # the gain of a norm
    BIAS = "bias"
    SCALE = "scale"  # a number that a part's output is multiplied by
    STATE = "state"  # a state before the first token


Roles = Mapping[str, Role]  # attribute of a part -> what it is
TORCH: Mapping[type[nn.Module], Roles] = {  # torch's own parts, which cannot say it
    nn.Embedding: {"weight": Role.EMBEDDING},
    nn.LayerNorm: {"weight": Role.NORM},
}


def declared(part: nn.Module) -> Roles:
    """Return what a part declares of its weights; empty where it declares nothing."""
    roles: Roles | None = getattr(part, "roles", None)
    if roles is not None:
        return roles
    return next((own for kind, own in TORCH.items() if isinstance(part, kind)), {})


def roles_of(network: nn.Module) -> dict[str, Role]:
    """Return the role of every weight by name, in the order of ``named_parameters``; shared weights once."""
    found: dict[str, Role] = {}
    for name, weight in network.named_parameters():
        path, _, attribute = name.rpartition(".")
        owner = network.get_submodule(path)
        said = declared(owner).get(attribute)
        if said is None and (weight.ndim >= 2 or isinstance(owner, nn.ParameterList)):
            said = _said_above(network, path)
        found[name] = said or (Role.MATRIX if weight.ndim >= 2 else Role.BIAS)
    return found


def linears(network: nn.Module) -> Iterator[tuple[nn.Linear, Role]]:
    """Yield all linear maps in order, with the roles of their matrices."""
    for name, module in network.named_modules():
        if isinstance(module, nn.Linear):
            yield module, _said_above(network, name) or Role.MATRIX


def _said_above(network: nn.Module, path: str) -> Role | None:
    """Return what the part that holds this one declares of it."""
    above, _, attribute = path.rpartition(".")
    return declared(network.get_submodule(above)).get(attribute) if attribute else None
