"""The attention of a Transformer, layer by layer: softmax(Q Kᵀ / √K), as the fast path computes it.

[MAUSAM "Transformer Language Model"]. The weights are recomputed from queries and keys, and their output is
compared with that of the layer itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch

from nextword.blocks.attention import Attention
from nextword.models.transformer import TransformerNetwork
from nextword.probe import passes

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class AttentionMaps:
    """``weights_LNTS``: how much token t takes from token s; rows sum to 1."""

    weights_LNTS: Array
    gap: float  # the largest difference between the output of these weights and the layers' own


def has_attention(network: TransformerNetwork) -> bool:
    """Tell whether every block mixes by attention."""
    return all(isinstance(cast(Any, block).mixer, Attention) for block in network.stack.applied())


@torch.no_grad()
def attention(network: TransformerNetwork, ids_T: Array) -> AttentionMaps:
    """Compute the maps of all layers and heads, for one row of no more tokens than the window holds."""
    ids_1T = torch.as_tensor(ids_T, device=network.device)[None]
    reading = passes.reading_of(network, 1, len(ids_T))
    x_BTD = network.position.embed(passes.words_of(network, ids_1T), reading.places)
    found, gap = [], 0.0
    for block in network.stack.applied():
        own = cast(Any, block)
        entered_BTD = own.around_mixer.enter(x_BTD)
        weights_BNTS, given_BTD = own.mixer.explain(entered_BTD, reading)
        fast_BTD, _ = own.mixer(entered_BTD, own.start(1), reading)
        gap = max(gap, float((fast_BTD - given_BTD).abs().max()))
        found.append(weights_BNTS[0].double().cpu().numpy())
        x_BTD, _ = own(x_BTD, own.start(1), reading)
    return AttentionMaps(np.stack(found), gap)
