"""Relative positions by buckets: a learned number for each head and distance, added to attention's scores.

Raffel et al. 2020 (T5): near distances have a bucket each, far ones share buckets of growing width. The
vanilla Transformer of the table [MAUSAM "Do Transformer Modifications Transfer Across Implementations and
Applications?"] has one table for all layers of a stack.
"""

from __future__ import annotations

import math
from typing import ClassVar, cast

import torch
from pydantic import Field
from torch import Tensor, nn

from nextword.blocks.cost import Cost, weights
from nextword.blocks.positions import NoPosition, Places
from nextword.blocks.roles import Role, Roles
from nextword.blocks.shape import Shape
from nextword.core.settings import Settings


class BucketSettings(Settings):
    """Relative positions (t5, t5-layers, t5-content, shaw)."""

    count: int = Field(32, ge=2, le=4096, description="buckets of distances; an even number if not causal")
    farthest: int = Field(128, ge=2, le=2**20, description="from this distance on, all share the last bucket")


def bucket(distances: Tensor, settings: BucketSettings, causal: bool) -> Tensor:
    """Return the bucket of each distance, key minus query: half of them exact, then logarithmic."""
    count = settings.count if causal else settings.count // 2
    side = torch.zeros_like(distances) if causal else (distances > 0).long() * count
    far = (-distances).clamp(min=0) if causal else distances.abs()
    exact = count // 2
    share = torch.log(far.clamp(min=1).float() / exact) / math.log(settings.farthest / exact)
    wide = exact + (share * (count - exact)).long()
    return side + torch.where(far < exact, far, wide.clamp(max=count - 1))


class Buckets(NoPosition):
    """A number for each head and bucket of distances, shared by all layers (T5).

    Attention with another number of heads, as some parts have, gets a table of its own, shared likewise.
    """

    biases = True
    roles: ClassVar[Roles] = {"table_NX": Role.POSITION}
    options: ClassVar[type[Settings]] = BucketSettings
    buckets_X: Tensor

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.settings, self.causal = shape.of(BucketSettings), shape.causal
        self.table_NX = nn.Parameter(torch.empty(shape.heads, self.settings.count).normal_(std=0.02))
        self.others = nn.ModuleDict()
        reach = torch.arange(-shape.context, shape.context + 1)
        self.register_buffer("buckets_X", bucket(reach, self.settings, self.causal), persistent=False)
        self.context = shape.context

    @classmethod
    def cost(cls, shape: Shape) -> Cost:
        """Count the table."""
        return weights(shape.heads * shape.of(BucketSettings).count)

    @classmethod
    def heads_cost(cls, shape: Shape) -> Cost:
        """Count another table."""
        return cls.cost(shape)

    def of_layer(self, shape: Shape) -> NoPosition:
        """Return the table of this number of heads."""
        if shape.heads == len(self.table_NX):
            return self
        name = str(shape.heads)
        if name not in self.others:
            self.others[name] = Buckets(shape)
        return cast(NoPosition, self.others[name])

    def bias(self, places: Places, keys: int) -> Tensor | None:
        """Return the numbers of all distances between these queries and the first keys."""
        S = torch.arange(keys, device=self.buckets_X.device)
        if isinstance(places, slice):
            queries = torch.arange(places.start, places.stop, device=S.device)
            return self.table_NX[:, self.buckets_X[S - queries[:, None] + self.context]]
        distances_BTS = S - places.to(S.device)[..., None]
        return self.table_NX[:, self.buckets_X[distances_BTS + self.context]].transpose(0, 1)


class LayerBuckets(NoPosition):
    """A number for each head and bucket of distances, in every layer its own."""

    biases = True
    options: ClassVar[type[Settings]] = BucketSettings

    @classmethod
    def layer_cost(cls, shape: Shape, tokens: int = 0) -> Cost:
        """Count the table of a layer."""
        return Buckets.cost(shape)

    def of_layer(self, shape: Shape) -> NoPosition:
        """Return a new table."""
        return Buckets(shape)


class ContentBuckets(LayerBuckets):
    """q · a of the bucket, in every layer and head its own vectors a: what a distance means depends on the
    token.

    "t5_contextual" of Narang et al. 2021.
    """

    looks = True

    @classmethod
    def layer_cost(cls, shape: Shape, tokens: int = 0) -> Cost:
        """Count a vector for each head and bucket."""
        vectors = shape.of(BucketSettings).count * shape.head_size
        return Cost(shape.heads * vectors, shape.heads * vectors * tokens)

    def of_layer(self, shape: Shape) -> NoPosition:
        """Return new vectors."""
        return _Vectors(shape, shape.heads)


class Shaw(ContentBuckets):
    """q · a of the distance, cut at the farthest: the same vectors for all heads (Shaw et al. 2018).

    Only keys have them: vectors for values, too, gained nothing in the paper. Distances share buckets as in
    T5 where there are more of them than ``buckets.count``.
    """

    @classmethod
    def layer_cost(cls, shape: Shape, tokens: int = 0) -> Cost:
        """Count a vector for each bucket."""
        vectors = shape.of(BucketSettings).count * shape.head_size
        return Cost(vectors, shape.heads * vectors * tokens)

    def of_layer(self, shape: Shape) -> NoPosition:
        """Return new vectors, which all heads share."""
        return _Vectors(shape, 1)


class _Vectors(NoPosition):
    """What the attention of one layer uses."""

    biases = True
    roles: ClassVar[Roles] = {"table_NXK": Role.POSITION}
    buckets_X: Tensor

    def __init__(self, shape: Shape, heads: int) -> None:
        super().__init__(shape)
        settings, self.context, self.scale = shape.of(BucketSettings), shape.context, shape.head_size**-0.5
        empty = torch.empty(heads, settings.count, shape.head_size)
        self.table_NXK = nn.Parameter(empty.normal_(std=shape.head_size**-0.5))
        reach = torch.arange(-shape.context, shape.context + 1)
        self.register_buffer("buckets_X", bucket(reach, settings, shape.causal), persistent=False)

    def looked(self, q_BNTK: Tensor, places: Places, keys: int) -> Tensor | None:
        """Return the products of every query with the vectors of its distances."""
        scores_BNTX = (q_BNTK @ self.table_NXK.transpose(-2, -1)).float() * self.scale  # as attention's are
        S = torch.arange(keys, device=self.buckets_X.device)
        if isinstance(places, slice):
            queries = torch.arange(places.start, places.stop, device=S.device)
            found_BNTS = self.buckets_X[S - queries[:, None] + self.context].expand(*q_BNTK.shape[:2], -1, -1)
        else:
            found_BTS = self.buckets_X[S - places.to(S.device)[..., None] + self.context]
            found_BNTS = found_BTS[:, None].expand(-1, q_BNTK.shape[1], -1, -1)
        return scores_BNTX.gather(-1, found_BNTS)
