"""The loss of an output layer: Σ -log softmax(x Wᵀ + b)[target], and its gradients.

[XMU "Maximum likelihood", IITD-1 "Training a RNN Language Model": cross-entropy of the next word]
"""

from __future__ import annotations

import torch
from torch import Tensor

CHUNK = 256  # rows whose logits are held at once


def plain_linear_cross_entropy(
    x_ND: Tensor, weight_VD: Tensor, bias_V: Tensor, targets_N: Tensor, smoothing: float = 0.0
) -> Tensor:
    """The same as one would write it: all logits, then their log-softmax.

    With label smoothing s the target distribution is (1-s) of the word and s spread over all possible words.
    """
    logits_NV = torch.addmm(bias_V, x_ND, weight_VD[: len(bias_V)].T)
    logp_NV = torch.log_softmax(logits_NV.to(torch.promote_types(logits_NV.dtype, torch.float32)), dim=-1)
    loss_N = -logp_NV.gather(1, targets_N[:, None])[:, 0]
    if smoothing:
        possible_V = torch.isfinite(bias_V)
        even_N = -logp_NV[:, possible_V].mean(dim=-1)
        loss_N = (1 - smoothing) * loss_N + smoothing * even_N
    return loss_N.sum()


linear_cross_entropy = plain_linear_cross_entropy
