"""What a part costs, by formula: weights, and the products of one forward pass; nothing is built.

A part has ``cost(shape, load)`` beside its code; a stack adds those of its layers. Products are
multiply-adds of matrix products (half of what `torch.utils.flop_counter` counts); element-by-element work is
left out, and a token is looked up by its index, which costs none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Cost:
    """Learned numbers, and multiply-adds of a forward pass."""

    weights: int = 0
    products: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.weights + other.weights, self.products + other.products)

    def __radd__(self, other: int) -> Cost:
        return self  # sum() begins with 0

    def times(self, copies: int) -> Cost:
        """Return the cost of several of these, each with its own weights."""
        return Cost(self.weights * copies, self.products * copies)

    def applied(self, times: int) -> Cost:
        """Return the cost of one of these that is applied several times."""
        return Cost(self.weights, self.products * times)


@dataclass(frozen=True)
class Load:
    """What one forward pass reads: B rows of T tokens, beside sources of S positions."""

    rows: int
    length: int
    source: int = 0

    @property
    def tokens(self) -> int:
        """Return B T."""
        return self.rows * self.length

    @property
    def source_tokens(self) -> int:
        """Return B S."""
        return self.rows * self.source

    def long(self, length: int) -> Load:
        """Return the same rows with another length."""
        return replace(self, length=length)


def linear(inputs: int, outputs: int, tokens: int, bias: bool = False) -> Cost:
    """Count a matrix that is applied to this many tokens."""
    return Cost(inputs * outputs + (outputs if bias else 0), inputs * outputs * tokens)


def weights(count: int) -> Cost:
    """Count weights that take part in no product."""
    return Cost(count)
