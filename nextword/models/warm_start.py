"""Start from the weights of another run: fine-tuning and domain adaptation, also with another vocabulary.

Rows that belong to tokens are copied by the token's text; a new token begins at the mean of the old ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from nextword.core.contracts import Tokenizer
from nextword.core.errors import ConfigError
from nextword.models.network import Network

Build = Callable[[int], Network]  # a network for this many tokens


def start_from(
    network: Network, old: Network, words: tuple[Tokenizer, Tokenizer], build: Build, name: str
) -> int:
    """Copy the weights of ``old`` (run ``name``); ``words``: its tokenizer and ours. Count the new tokens."""
    theirs, ours = words
    rows = None if _same_words(theirs, ours) else _known_rows(theirs, ours)
    ends = {} if rows is None else _word_rows(network, build)
    before, weights = old.state_dict(), {}
    for key, tensor in network.state_dict().items():
        found = before.get(key)
        if found is not None and key in ends:
            found = _by_words(found, rows, theirs.vocab_size)
        if found is None or found.shape != tensor.shape:
            raise ConfigError(
                f"--from {name} does not fit: '{key}' is {_shape(found)} there and {_shape(tensor)} here; "
                "leave the settings of the group 'model' as they are in that run"
            )
        weights[key] = found
    network.load_state_dict(weights)
    return 0 if rows is None else int((rows < 0).sum())


def _same_words(theirs: Tokenizer, ours: Tokenizer) -> bool:
    return theirs.vocab_size == ours.vocab_size and all(
        theirs.piece(index) == ours.piece(index) for index in range(ours.vocab_size)
    )


def _known_rows(theirs: Tokenizer, ours: Tokenizer) -> Tensor:
    """Return for each of our tokens its id there; -1: it is new."""
    numbers = {theirs.piece(index): index for index in reversed(range(theirs.vocab_size))}
    specials = range(3)
    return torch.tensor(
        [at if at in specials else numbers.get(ours.piece(at), -1) for at in range(ours.vocab_size)]
    )


def _word_rows(network: Network, build: Build) -> Mapping[str, int]:
    """Return which weights have a row for each token: those that grow with one token more."""
    larger = build(network.vocab_size + 1).state_dict()
    return {
        key: len(tensor)
        for key, tensor in network.state_dict().items()
        if tensor.ndim and key in larger and len(larger[key]) == len(tensor) + 1
    }


def _by_words(found: Tensor, rows: Tensor | None, count: int) -> Tensor:
    """Return the rows of our tokens, then those that do not belong to a token."""
    assert rows is not None
    words, rest = found[:count], found[count:]
    if not found.is_floating_point():
        return found
    fresh = words.float().mean(dim=0).to(found.dtype)
    rows = rows.to(found.device)
    is_new = (rows < 0).view(-1, *[1] * (found.ndim - 1))
    return torch.cat([torch.where(is_new, fresh, words[rows.clamp(min=0)]), rest])


def _shape(tensor: Tensor | None) -> str:
    return "missing" if tensor is None else " x ".join(map(str, tensor.shape)) or "one number"
