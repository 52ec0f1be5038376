"""Start from the weights of a network with a smaller vocabulary: what it knew keeps its place.

The new vocabulary begins with the old one, so a table only has more rows, and tags more scores. A word that
is new starts as the unknown word, as which it would have been read; a new tag starts at random.
"""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor, nn

from nextword.blocks.own_tags import AutoregressiveTags
from nextword.core.errors import ConfigError
from nextword.models.words import WordInput
from nextword.text.lexicon import UNKNOWN


@torch.no_grad()
def start_from_smaller(
    network: nn.Module, old: nn.Module, name: str, given: Collection[int] = ()
) -> tuple[int, int]:
    """Copy the weights of ``old`` (run ``name``); return how many words and tags are new.

    ``given``: rows of the table of words that are already filled, from a file of vectors.
    """
    before, now = old.state_dict(), network.state_dict()
    growing = _growing(network)
    for key in sorted({*before, *now}):
        theirs, ours = before.get(key), now.get(key)
        if theirs is None or ours is None or not _fits(theirs, ours, key in growing):
            raise ConfigError(
                f"--from {name} does not fit: '{key}' is {_shape(theirs)} there and {_shape(ours)} here; "
                "leave the settings of the group 'model' as they are in that run"
            )
        ours[tuple(slice(0, size) for size in theirs.shape)] = theirs.to(ours)
    tags = 0
    for part, was in zip(network.modules(), old.modules(), strict=True):
        if isinstance(part, WordInput) and isinstance(was, WordInput):
            words = len(part.table_VE) - len(was.table_VE)
            fresh = [row for row in range(len(was.table_VE), len(part.table_VE)) if row not in given]
            part.table_VE[fresh] = part.table_VE[UNKNOWN].clone()
        if isinstance(part, AutoregressiveTags) and isinstance(was, AutoregressiveTags):
            tags = part.first - was.first
            part.table_KE[was.first : part.first] = 0.0
            part.table_KE[part.first] = was.table_KE[was.first]  # what stands before the first tag
        if isinstance(part, nn.Linear) and isinstance(was, nn.Linear):
            tags = max(tags, part.out_features - was.out_features)
    return words, tags


def _growing(network: nn.Module) -> set[str]:
    """Return the weights whose size follows from words, characters or tags."""
    keys = network.state_dict()
    tables = {key for key in keys if key.endswith(("words.table_VE", "characters.table_AE"))}
    return tables | {key for key in keys if key.startswith("head.")}


def _fits(theirs: Tensor, ours: Tensor, may_grow: bool) -> bool:
    if theirs.ndim != ours.ndim:
        return False
    pairs = list(zip(theirs.shape, ours.shape, strict=True))
    return all(there <= here if may_grow else there == here for there, here in pairs)


def _shape(tensor: Tensor | None) -> str:
    return "missing" if tensor is None else " x ".join(map(str, tensor.shape)) or "one number"
