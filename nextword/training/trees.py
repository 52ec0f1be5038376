"""A carried state as a list of tensors, and back: what is written to disk has no tuples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import Tensor

from nextword.blocks.states import State, map_state


def leaves(state: State) -> list[Tensor]:
    """The tensors, in their order."""
    if isinstance(state, Tensor):
        return [state]
    return [] if state is None else [leaf for part in state for leaf in leaves(part)]


def filled(structure: State, tensors: Sequence[Tensor]) -> State:
    """This structure with these leaves: the way back from `leaves`."""
    rest: Iterator[Tensor] = iter(tensors)
    return map_state(lambda _: next(rest), structure)
