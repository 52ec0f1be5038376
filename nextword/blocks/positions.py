"""Where a token stands: the slot "position".

"Delete all RNN components → Position encodings" [MAUSAM "Transformers (2017) Made Many Changes at Once!"].
Attention alone sees a set; a position part may add to the embeddings, rotate queries and keys, or add to the
scores of attention. A position is the number of tokens before a token in its window. There is one part for
all layers of a stack; an attention asks it, with `of_layer`, for what it uses.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from nextword.blocks.cost import Cost, weights
from nextword.blocks.roles import Role, Roles
from nextword.blocks.rotary import RotarySettings, frequencies
from nextword.blocks.shape import Shape
from nextword.core.settings import Settings

Places = slice | Tensor  # of the tokens read: the same in all rows, or positions_BT


class NoPosition(nn.Module):
    """No position: only the causal mask shows what came before. Also the default of every other part."""

    biases: ClassVar[bool] = False  # whether something is added to the scores of attention
    looks: ClassVar[bool] = False  # ... that depends on the query
    endless: ClassVar[bool] = True  # whether places past the context have a meaning

    def __init__(self, shape: Shape) -> None:
        super().__init__()

    @classmethod
    def cost(cls, shape: Shape) -> Cost:
        """Count what a stack has once; most have nothing."""
        return Cost()

    @classmethod
    def layer_cost(cls, shape: Shape, tokens: int = 0) -> Cost:
        """Count what one attention of its own adds."""
        return Cost()

    @classmethod
    def heads_cost(cls, shape: Shape) -> Cost:
        """Count what another number of heads adds to a stack."""
        return Cost()

    def of_layer(self, shape: Shape) -> NoPosition:
        """Return the part that one attention uses: this one, or one with weights of its own."""
        return self

    def embed(self, x_BTD: Tensor, places: Places) -> Tensor:
        """Return the input of the first block, from the embeddings."""
        return x_BTD

    def turn(self, x_BTNK: Tensor, places: Places) -> Tensor:
        """Rotate queries or keys."""
        return x_BTNK

    def bias(self, places: Places, keys: int) -> Tensor | None:
        """Return what to add to the scores: a shape that broadcasts to (B, N, T, S), for the first S keys."""
        return None

    def looked(self, q_BNTK: Tensor, places: Places, keys: int) -> Tensor | None:
        """Return what else to add, from the queries themselves."""
        return None


class Sinusoidal(NoPosition):
    """Waves of growing length, added: sin(p ω), cos(p ω) in turn, ω = 10000^(-2i/D) (Vaswani et al. 2017)."""

    endless = False
    table_WD: Tensor

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.register_buffer("table_WD", waves(shape.context, shape.width, shape.base), persistent=False)

    def embed(self, x_BTD: Tensor, places: Places) -> Tensor:
        """Add the wave of each position."""
        return x_BTD + self.table_WD[places]


class Learned(NoPosition):
    """A learned vector for each position of the window, added (GPT-2)."""

    endless = False
    roles: ClassVar[Roles] = {"table_WD": Role.POSITION}

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.table_WD = nn.Parameter(torch.empty(shape.context, shape.width).normal_(std=0.02))

    @classmethod
    def cost(cls, shape: Shape) -> Cost:
        """Count a vector for each place."""
        return weights(shape.context * shape.width)

    def embed(self, x_BTD: Tensor, places: Places) -> Tensor:
        """Add the vector of each position."""
        return x_BTD + self.table_WD[places]


class Rotary(NoPosition):
    """Pairs of elements of a query or key are rotated by p ω: scores see distances only (Su et al. 2021).

    A pair (2i, 2i + 1) is a complex number, and the rotation one product. Llama pairs i with i + K/2 instead:
    the same up to the order of the rows of the query and key matrices.
    """

    options: ClassVar[type[Settings]] = RotarySettings
    table_WJ2: Tensor

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        own = shape.of(RotarySettings)
        frequencies_J, sharper = frequencies(shape.head_size // 2, shape.base, shape.context, own)
        self.frequencies_J, self.sharper = frequencies_J, sharper
        table_WJ2 = self._turns(torch.arange(shape.context))
        self.register_buffer("table_WJ2", table_WJ2, persistent=False)

    def turn(self, x_BTNK: Tensor, places: Places) -> Tensor:
        """Compute x exp(i p ω)."""
        turns_TJ = torch.view_as_complex(self._at(places)).unsqueeze(-2)
        pairs = torch.view_as_complex(x_BTNK.reshape(*x_BTNK.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * turns_TJ).flatten(-2)

    def _at(self, places: Places) -> Tensor:
        """Look up the turns of these places; those past the table are computed."""
        last = places.stop if isinstance(places, slice) else int(places.max()) + 1
        if last <= len(self.table_WJ2):
            return self.table_WJ2[places]
        places = torch.arange(places.start, places.stop) if isinstance(places, slice) else places.cpu()
        return self._turns(places).to(self.table_WJ2.device)

    def _turns(self, places: Tensor) -> Tensor:
        """Return cos and sin of p ω, computed in float64."""
        angles_J = places.to(torch.float64)[..., None] * self.frequencies_J
        return (torch.stack([angles_J.cos(), angles_J.sin()], dim=-1) * self.sharper).float()


class ALiBi(NoPosition):
    """Scores fall with distance, in each head at its own slope 2^(-8h/N) (Press et al. 2022)."""

    biases = True
    slopes_N11: Tensor

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        slopes_N = torch.tensor(_slopes(shape.heads), dtype=torch.float32)
        self.register_buffer("slopes_N11", slopes_N[:, None, None], persistent=False)

    def bias(self, places: Places, keys: int) -> Tensor | None:
        """Return -slope · distance, to tokens on either side."""
        S = torch.arange(keys, device=self.slopes_N11.device)
        queries = torch.arange(places.start, places.stop) if isinstance(places, slice) else places[:, None]
        return self.slopes_N11 * -(S - queries.to(S.device)[..., None]).abs()


def waves(count: int, width: int, base: float = 1e4) -> Tensor:
    """Return ``waves_WD``: sin(p ω) and cos(p ω) in turn, for all positions p."""
    angles_WJ = _angles(count, -(-width // 2), base)
    return torch.stack([angles_WJ.sin(), angles_WJ.cos()], dim=-1).flatten(1)[:, :width].float()


def _angles(context: int, pairs: int, base: float) -> Tensor:
    """Return p ω of all positions p and frequencies ω = base^(-i/J), in float64."""
    frequencies_J = base ** (-torch.arange(pairs, dtype=torch.float64) / pairs)
    return torch.arange(context, dtype=torch.float64)[:, None] * frequencies_J


def _slopes(heads: int) -> list[float]:
    """Return powers of two; if the number of heads is not one, take every other slope of the next power."""
    power = 1 << (heads.bit_length() - 1)
    own = [2.0 ** (-8 * (h + 1) / power) for h in range(power)]
    return own if power == heads else own + _slopes(2 * power)[::2][: heads - power]
