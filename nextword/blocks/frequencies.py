"""Token frequencies as a coordinate of the embeddings: where a head without a bias begins.

With b = log p(token) a new network begins as the unigram distribution (`SoftmaxHead.prepare`). Most published
Transformers have no b, and tied vectors: they must find the frequencies first, in a direction that all
vectors of a trained network share (Mu & Viswanath 2018, "All-but-the-Top"). Here it is there at the start,

    e_v[0] = a (log p(v) + c)         the first coordinate of each token v
    x̂ = norm(e_x)                     x̂_0 is nearly the same for every input x, since c is large
    logit_v = Σ_d g_d x̂_d e_v[d]      its first term is about log p(v) + c with g_0 = 1 / (a E x̂_0)

and nothing is added to the network: programs that know its parts can use its weights.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from nextword.blocks.embeddings import Embedding
from nextword.blocks.heads import SoftmaxHead
from nextword.blocks.norms import LayerNorm, RMSNorm

SIZE = 0.1  # a: the smaller, the faster training changes the frequencies, compared to other coordinates
OFFSET = 12.0  # c: more than log p of most tokens is below 0
_ABOVE = 4.0  # what is left of c, at least, in the mean over tokens: x̂_0 must not come near 0


def start_with_frequencies(network: Any, counts_V: Tensor, scale: float) -> None:
    """Set the first coordinate of tied vectors and the gains of the last norm, where there are both.

    The other gains undo that the first coordinate makes the others of x̂ smaller. Rows behind ``counts_V``,
    such as a blank, get the mean. ``scale``: what features are multiplied by before the head.
    """
    embedding, norm = network.embedding, getattr(network.stack, "norm", None)
    if not (isinstance(norm, LayerNorm | RMSNorm) and _is_tied(embedding, network.head)):
        return
    p_V = counts_V.to(embedding.weight_VE) + 0.5
    p_V = p_V / p_V.sum()
    tokens = len(p_V)
    with torch.no_grad():
        entropy = float(torch.special.entr(p_V).sum())  # -E log p: 12 nats for 160,000 tokens that are alike
        first_V = SIZE * (p_V.log() + max(OFFSET, entropy + _ABOVE))
        embedding.weight_VE[:tokens, 0] = first_V
        embedding.weight_VE[tokens:, 0] = p_V @ first_V
        norm.gain_D.fill_(1.0)
        normed_VD = norm(embedding(torch.arange(tokens, device=p_V.device)))
        norm.gain_D.fill_((p_V @ normed_VD[:, 1:].square().mean(dim=1)).rsqrt())
        norm.gain_D[0] = 1 / (scale * SIZE * (p_V @ normed_VD[:, 0]))


def _is_tied(embedding: nn.Module, head: nn.Module) -> bool:
    """Tell whether the head has the embedding's vectors and no bias."""
    if not (isinstance(embedding, Embedding) and isinstance(head, SoftmaxHead)):
        return False
    return head.weight_VD is embedding.weight_VE and not isinstance(head.bias_V, nn.Parameter)
