"""How strongly the loss of a word depends on words further back: the gradient by distance.

∂J(t)/∂h(t-k) [IITD-2 "Vanishing Gradient Intuition"] is measured where every family has it: at the vector of
the word k places back, e(t-k). For a recurrent model that is ∂J(t)/∂h(t-k) and one fixed matrix more.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from nextword.blocks.embeddings import Embedding
from nextword.experiments.small import Floats, Ints
from nextword.models.network import Head, Network
from nextword.tasks.objectives.bptt import is_recurrent


def by_distance(network: Network, rows_BT: Ints) -> Floats:
    """``(B, T - 1)``: ‖∂J/∂e‖ of the last word's loss, by how far back the word stands, the nearest first."""
    ids_BT = torch.from_numpy(np.ascontiguousarray(rows_BT))
    read_BT, target_B = ids_BT[:, :-1], ids_BT[:, -1]
    caught: list[Tensor] = []

    def catch(module: nn.Module, inputs: object, output: Tensor) -> None:
        output.retain_grad()
        caught.append(output)

    words = next(module for module in network.modules() if isinstance(module, Embedding))
    handle = words.register_forward_hook(catch)
    was_training = network.training
    network.eval()
    try:
        with torch.enable_grad():
            lengths_B = torch.full((len(read_BT),), read_BT.shape[1])
            features_BTD, _ = network.read(read_BT, network.start(len(read_BT)), lengths_B)
            loss = cast(Head, network.head).loss(features_BTD[:, -1], target_B)
            torch.autograd.backward(loss)
    finally:
        handle.remove()
        network.zero_grad()
        network.train(was_training)
    return _norms(network, caught[0], read_BT.shape[1])


def _norms(network: Network, vectors: Tensor, T: int) -> Floats:
    """The gradients' lengths, however a family lays its words out."""
    assert vectors.grad is not None
    grad = vectors.grad.detach().double()
    if is_recurrent(network):
        grad = grad.transpose(0, 1)  # positions came first
    if grad.dim() == 4:  # a window: the words of the last place
        grad = grad[:, -1]
    norms_BT = grad.norm(dim=-1).flip(1).numpy()
    padded = np.zeros((len(norms_BT), T))
    padded[:, : norms_BT.shape[1]] = norms_BT[:, :T]
    return padded


def middle(norms_BT: Floats) -> Floats:
    """The mean over rows, relative to the word read last."""
    mean_T = norms_BT.mean(axis=0)
    return np.asarray(mean_T / mean_T[0]) if mean_T[0] > 0 else mean_T
