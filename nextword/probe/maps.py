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
from nextword.blocks.cache import Reading
from nextword.blocks.pooling import Attention as AttentionPooling
from nextword.blocks.stack import Stack
from nextword.models.classifier import ClassifierNetwork
from nextword.models.encoders.transformer import TransformerEncoder
from nextword.models.transformer import TransformerNetwork
from nextword.models.words import Words
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
    return _explained(network.stack, x_BTD, reading)


def of_encoder(network: Any) -> TransformerEncoder | None:
    """Return the encoder of a tagger or classifier, if it is a Transformer that mixes by attention."""
    encoder = network.encoder
    if not isinstance(encoder, TransformerEncoder):
        return None
    is_attention = all(isinstance(cast(Any, block).mixer, Attention) for block in encoder.stack.applied())
    return encoder if is_attention else None


@torch.no_grad()
def encoded(network: Any, words: Words) -> AttentionMaps:
    """Compute the maps of a tagger's or classifier's encoder, for one sentence."""
    encoder = network.encoder
    x_BTE, T = network.words(words), words.words_BT.shape[1]
    reading = Reading([0], words.lengths_B.tolist(), T, max(T, encoder.context), x_BTE.device)
    x_BTD = encoder.position.embed(encoder.enter(x_BTE), reading.places)
    return _explained(encoder.stack, x_BTD, reading)


def has_pooling(network: Any) -> bool:
    """Tell whether a classifier weighs its words by attention."""
    return isinstance(network, ClassifierNetwork) and isinstance(network.pooling, AttentionPooling)


@torch.no_grad()
def pooled(network: ClassifierNetwork, words: Words) -> Array:
    """Return ``weights_T``: how much each word of one sentence counts for the label."""
    h_BTD = network.encoder(network.words(words), words.lengths_B)
    weights_T: Array = network.pooling.weights(h_BTD, words.lengths_B)[0].double().cpu().numpy()
    return weights_T


def _explained(stack: Stack, x_BTD: torch.Tensor, reading: Reading) -> AttentionMaps:
    """Compute the maps of all blocks."""
    found, gap = [], 0.0
    for block in stack.applied():
        own = cast(Any, block)
        entered_BTD = own.around_mixer.enter(x_BTD)
        weights_BNTS, given_BTD = own.mixer.explain(entered_BTD, reading)
        fast_BTD, _ = own.mixer(entered_BTD, own.start(1), reading)
        gap = max(gap, float((fast_BTD - given_BTD).abs().max()))
        found.append(weights_BNTS[0].double().cpu().numpy())
        x_BTD, _ = own(x_BTD, own.start(1), reading)
    return AttentionMaps(np.stack(found), gap)
