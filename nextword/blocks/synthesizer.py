"""Synthesizers: attention whose scores are not, or not only, products of queries and keys (Tay et al. 2021).

Seven rows of the table [MAUSAM "Do Transformer Modifications Transfer Across Implementations and
Applications?"]. Random: a learned number for each pair of places. Factorized: such a matrix of low rank.
Dense: a token computes its scores of all places from its own vector. Plus: products of queries and keys are
added, or, alpha, mixed in with a learned weight.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from nextword.blocks.attention import Heads, seen_keys
from nextword.blocks.autocast import exact
from nextword.blocks.cache import KeysValues, Memory, Reading
from nextword.blocks.cost import Cost, Load, linear, weights
from nextword.blocks.positions import NoPosition
from nextword.blocks.roles import Role, Roles
from nextword.blocks.shape import Shape
from nextword.core.catalog import find
from nextword.core.settings import Settings


class SynthesizerSettings(Settings):
    """Synthesizers."""

    rank: int = Field(16, ge=1, le=4096, description="rank of the factorized one's matrices")


class Synthesizer(Heads):
    """softmax(scores + mask) V: the scores come from the class; a length past the context is not possible."""

    options: ClassVar[type[Settings]] = SynthesizerSettings
    weighs = False
    looks: ClassVar[bool] = False  # whether a token computes its own scores (dense)
    plus: ClassVar[bool] = False  # whether products of queries and keys are added
    mixes: ClassVar[bool] = False  # ... with a learned weight
    roles: ClassVar[Roles] = {"out": Role.OUT, "alpha": Role.SCALE}

    def __init__(self, shape: Shape, position: NoPosition) -> None:
        super().__init__(shape)
        self.causal, self.context = shape.causal, shape.context
        own = position.of_layer(shape)
        self.position = (own,)
        if not any(own is each for each in position.modules()):
            self.own_position = own
        self.counts = list(self.projected(shape))
        bias = shape.biased_attention
        self.from_x = nn.Linear(shape.width, sum(self.counts) * self.head_size, bias)
        self.out = nn.Linear(shape.heads * self.head_size, shape.width, bias)
        if self.mixes:
            self.alpha = nn.Parameter(torch.zeros(()))
        self.make_scores(shape)

    @classmethod
    def projected(cls, shape: Shape) -> tuple[int, int, int]:
        """Return how many heads of queries, keys and values there are."""
        queries = shape.heads if cls.looks or cls.plus else 0
        return queries, shape.kv_heads if cls.plus else 0, shape.kv_heads

    def make_scores(self, shape: Shape) -> None:
        """Make what the scores of places come from."""
        raise NotImplementedError

    def scores(self, q_BNTK: Tensor, reading: Reading) -> Tensor:
        """Return the scores of the first keys, in a shape that broadcasts to (B, N, T, S)."""
        raise NotImplementedError

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count the matrices that are kept, the scores, and the products of all pairs."""
        inner, bias = shape.heads * shape.head_size, shape.biased_attention
        into = linear(shape.width, sum(cls.projected(shape)) * shape.head_size, load.tokens, bias)
        out = linear(inner, shape.width, load.tokens, bias)
        pairs = load.tokens * load.length * inner
        own = find("position", shape.position).layer_cost(shape, load.tokens) + weights(1 if cls.mixes else 0)
        return into + out + own + Cost(0, pairs * (2 if cls.plus else 1)) + cls.scores_cost(shape, load)

    @classmethod
    def scores_cost(cls, shape: Shape, load: Load) -> Cost:
        """Count what the scores of places come from."""
        raise NotImplementedError

    def start(self, batch: int, source: Memory | None = None) -> KeysValues:
        """Return an empty cache; without products of queries and keys it holds values only."""
        size = self.head_size if self.plus else 0
        weight = self.from_x.weight
        return KeysValues(
            weight.new_zeros(batch, self.kv_heads, 0, size),
            weight.new_zeros(batch, self.kv_heads, 0, self.head_size),
        )

    def forward(
        self, x_BTD: Tensor, state: KeysValues, reading: Reading, skip: int = 0
    ) -> tuple[Tensor, KeysValues]:
        """Attend, for all tokens but the first ``skip``."""
        qkv_BNTK = self.split(self.from_x(x_BTD)).transpose(1, 2)
        q_BNTK, k_BNTK, v_BNTK = torch.split(qkv_BNTK, self.counts, dim=1)
        k_BNTK = k_BNTK if self.plus else v_BNTK[..., :0]
        state = KeysValues(reading.append(state.keys_BNSK, k_BNTK), reading.append(state.values_BNSK, v_BNTK))
        keys_BNSK, values_BNSK = (self.spread(part[:, :, : reading.keys]) for part in state)
        with exact(x_BTD):
            scores_BNTS = self.scores(q_BNTK, reading)
            if self.plus:
                content_BNTS = q_BNTK @ keys_BNSK.transpose(-2, -1) * self.scale
                scores_BNTS = self.mix(content_BNTS, scores_BNTS)
            bias = self.position[0].bias(reading.places, reading.keys)
            scores_BNTS = scores_BNTS if bias is None else scores_BNTS + bias
            seen = seen_keys(self.causal, reading)
            scores_BNTS = scores_BNTS if seen is None else scores_BNTS.masked_fill(~seen, -torch.inf)
            mixed_BNTK = scores_BNTS.softmax(dim=-1) @ values_BNSK
        return self.leave(mixed_BNTK[:, :, skip:]), state

    def mix(self, content_BNTS: Tensor, scores_BNTS: Tensor) -> Tensor:
        """Add the products to the scores of places, or mix them with a = σ(α)."""
        if not self.mixes:
            return content_BNTS + scores_BNTS
        return torch.lerp(content_BNTS, scores_BNTS.expand_as(content_BNTS), torch.sigmoid(self.alpha))


class Dense(Synthesizer):
    """A token's scores of all places are ReLU(q) P, one matrix P for all heads."""

    looks = True
    roles: ClassVar[Roles] = {"out": Role.OUT, "alpha": Role.SCALE, "places_KW": Role.MATRIX}

    def make_scores(self, shape: Shape) -> None:
        """Make P."""
        std = self.head_size**-0.5
        self.places_KW = nn.Parameter(torch.empty(self.head_size, shape.context).normal_(std=std))

    def scores(self, q_BNTK: Tensor, reading: Reading) -> Tensor:
        """Compute ReLU(q) P; the scores of places that do not exist yet are left out."""
        return (torch.relu(q_BNTK) @ self.places_KW)[..., : reading.keys]

    @classmethod
    def scores_cost(cls, shape: Shape, load: Load) -> Cost:
        """Count P, and its product with all queries."""
        products = load.tokens * shape.heads * shape.head_size * shape.context
        return Cost(shape.head_size * shape.context, products)


class Random(Synthesizer):
    """A learned number for each head and pair of places, the same for all texts."""

    roles: ClassVar[Roles] = {"out": Role.OUT, "alpha": Role.SCALE, "places_NWW": Role.POSITION}

    def make_scores(self, shape: Shape) -> None:
        """Make the matrix of each head."""
        size = (shape.heads, shape.context, shape.context)
        self.places_NWW = nn.Parameter(torch.empty(size).normal_(std=0.02))

    def scores(self, q_BNTK: Tensor, reading: Reading) -> Tensor:
        """Look up the rows of the tokens' places."""
        return rows_of(self.places_NWW[..., : reading.keys], reading)

    @classmethod
    def scores_cost(cls, shape: Shape, load: Load) -> Cost:
        """Count the matrices."""
        return weights(shape.heads * shape.context**2)


class Factorized(Synthesizer):
    """A matrix of low rank for each head: R₁ᵀ R₂."""

    roles: ClassVar[Roles] = {"out": Role.OUT, "queries_NRW": Role.POSITION, "keys_NRW": Role.POSITION}

    def make_scores(self, shape: Shape) -> None:
        """Make both factors of each head."""
        size = (shape.heads, shape.of(SynthesizerSettings).rank, shape.context)
        self.queries_NRW = nn.Parameter(torch.empty(size).normal_(std=size[1] ** -0.25))
        self.keys_NRW = nn.Parameter(torch.empty(size).normal_(std=size[1] ** -0.25))

    def scores(self, q_BNTK: Tensor, reading: Reading) -> Tensor:
        """Multiply the factors of the tokens' places."""
        rows = rows_of(self.queries_NRW.transpose(1, 2), reading)
        return rows @ self.keys_NRW[..., : reading.keys]

    @classmethod
    def scores_cost(cls, shape: Shape, load: Load) -> Cost:
        """Count both factors, and their product, which all rows share."""
        rank = shape.of(SynthesizerSettings).rank
        return Cost(2 * shape.heads * rank * shape.context, shape.heads * rank * load.length**2)


def rows_of(table_NWX: Tensor, reading: Reading) -> Tensor:
    """Return a table's rows at the tokens' places: (N, T, X), or (B, N, T, X) where rows differ."""
    places = reading.places
    return table_NWX[:, places] if isinstance(places, slice) else table_NWX[:, places].transpose(0, 1)


class DensePlus(Dense):
    """Dense scores, and products of queries and keys added to them."""

    plus = True


class DensePlusAlpha(DensePlus):
    """Dense scores, mixed with products of queries and keys by a learned weight."""

    mixes = True


class RandomPlus(Random):
    """Random scores, and products of queries and keys added to them."""

    plus = True


class RandomPlusAlpha(RandomPlus):
    """Random scores, mixed with products of queries and keys by a learned weight."""

    mixes = True
