"""The members of a mixture: models, and memories that read the features of one of them.

Interpolation is linear, so a cache over a mixture of an LSTM and counts is the same as the mixture of counts
with an LSTM that has the cache: (1-λ) Σ μ_k p_k + λ p_cache. Each memory is therefore kept with its network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nextword.core.contracts import LanguageModel, NetworkModel
from nextword.core.errors import ConfigError


@dataclass(frozen=True)
class Attached:
    """A memory as a member: of which member (None: it needs none), and what it is in a phrase."""

    memory: Any  # a `mixtures.memory.Memory`, or a LanguageModel where ``of`` is None
    of: int | None
    told: str = ""


Member = LanguageModel | Attached


@dataclass(frozen=True)
class Group:
    """A model with its memories as one model; its weight; and the numbers of the members it is made of."""

    model: LanguageModel
    weight: float
    numbers: tuple[int, ...]


def together(members: Sequence[Member], weights: Sequence[float]) -> list[Group]:
    """Group each model with the memories that read its features."""
    groups = []
    for number, member in enumerate(members):
        if isinstance(member, Attached):
            if member.of is None:
                groups.append(Group(member.memory, weights[number], (number,)))
            continue
        own = [at for at, other in enumerate(members) if isinstance(other, Attached) and other.of == number]
        shares = [weights[number], *(weights[at] for at in own)]
        model = _remembering(member, [members[at] for at in own], shares) if own else member
        groups.append(Group(model, sum(shares), (number, *own)))
    if sum(len(group.numbers) for group in groups) != len(members):
        raise ConfigError("a memory names a member that is missing or is not a model; make the mixture again")
    return groups


def network_of(model: Any) -> Any:
    """Return the network whose features a memory can read; None where there is none."""
    return model.network if isinstance(model, NetworkModel) else None


def _remembering(model: LanguageModel, memories: Sequence[Any], shares: Sequence[float]) -> LanguageModel:
    if network_of(model) is None:
        raise ConfigError("a memory reads the features of a model that has none; make the mixture again")
    from nextword.mixtures.remembering import Remembering  # needs torch

    usable: Any = model
    weights = shares if sum(shares) > 0 else [1.0, *([0.0] * len(memories))]
    return Remembering(usable, [each.memory for each in memories], weights)
