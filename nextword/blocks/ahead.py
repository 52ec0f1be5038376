"""Further tokens: besides the next one, the one after it and so on, each by a small part of its own.

Gloeckle et al. 2024: what is learned sees further ahead, and nothing changes where the model is used. Here a
part is a feed-forward one in the place of a whole layer: h' = N₂(h + F(N₁(h))), then the same output layer.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

from nextword.blocks.block import make_norm, norm_cost
from nextword.blocks.cost import Cost, Load
from nextword.blocks.shape import Shape
from nextword.core.catalog import find


class Ahead(nn.Module):
    """The features that predict one certain token ahead."""

    def __init__(self, shape: Shape, scale: float) -> None:
        super().__init__()
        self.scale = scale  # of the network's features, as its head is given them
        self.before, self.after = make_norm(shape), make_norm(shape)
        self.ffn = find("ffn", shape.ffn)(shape)

    def forward(self, features_BTD: Tensor) -> Tensor:
        """Return the features for this distance."""
        x_BTD = features_BTD / self.scale
        found: Tensor = self.after(x_BTD + self.ffn(self.before(x_BTD))) * self.scale
        return found

    @classmethod
    def cost(cls, shape: Shape) -> Cost:
        """Count the weights; a model that is used does not apply them."""
        own: Cost = find("ffn", shape.ffn).cost(shape, Load(1, 1))
        return Cost((own + norm_cost(shape) + norm_cost(shape)).weights)


def further_loss(part: nn.Module, head: nn.Module, features_BTD: Tensor, targets_BT: Tensor) -> Tensor:
    """Compute the mean of -log p of these targets; negative ones do not count."""
    is_counted_BT = targets_BT >= 0
    if not bool(is_counted_BT.any()):
        return torch.zeros((), device=features_BTD.device)
    targets_N = targets_BT[is_counted_BT]
    nats: Tensor = cast(Any, head).loss(part(features_BTD)[is_counted_BT], targets_N)
    return nats / len(targets_N)
