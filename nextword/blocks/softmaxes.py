"""A mixture of softmaxes: K distributions of the next token, each of its own context, and their weighted
mean.

Yang et al. 2018, a row of the table [MAUSAM "Do Transformer Modifications Transfer Across Implementations and
Applications?"]. One softmax of D features can only tell as many contexts apart as a matrix of rank D can; the
mean of several can tell more. All sums are of logarithms, in float32.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from nextword.blocks.cost import Cost, linear
from nextword.blocks.heads import LogitsHead
from nextword.blocks.roles import Role, Roles
from nextword.core.settings import Settings


class SoftmaxesSettings(Settings):
    """A mixture of softmaxes (head = softmaxes)."""

    count: int = Field(
        4, ge=1, le=256, description="softmaxes K; the time of the output layer grows with them"
    )


class Softmaxes(LogitsHead):
    """p = Σ π_k softmax(U tanh(W_k h) + b), π = softmax(M h)."""

    options: ClassVar[type[Settings]] = SoftmaxesSettings
    roles: ClassVar[Roles] = {"weight_VD": Role.HEAD, "bias_V": Role.BIAS}
    rows: ClassVar[int] = 128

    def __init__(
        self,
        width: int,
        vocab_size: int,
        forbidden: tuple[int, ...] = (),
        embedding_VE: nn.Parameter | None = None,
        settings: SoftmaxesSettings | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__(vocab_size, forbidden, bias)
        self.count = (settings or SoftmaxesSettings()).count
        self.prior = nn.Linear(width, self.count, bias=False)
        self.contexts = nn.Linear(width, self.count * width, bias=False)
        nn.init.normal_(self.prior.weight, std=width**-0.5)
        nn.init.normal_(self.contexts.weight, std=width**-0.5)
        if embedding_VE is None:
            self.weight_VD = nn.Parameter(torch.empty(vocab_size, width).uniform_(-0.1, 0.1))
        else:
            self.weight_VD = embedding_VE

    def log_probs(self, features_BD: Tensor) -> Tensor:
        """Add up the softmaxes one after another: all at once would hold K times as many numbers."""
        prior_BK = self.prior(features_BD).float().log_softmax(dim=-1)
        contexts_BKD = torch.unflatten(torch.tanh(self.contexts(features_BD)), -1, (self.count, -1))
        weight_VD, sum_BV = self.weight_VD[: self.vocab_size], None
        bias_V = self.bias_V + self.closed_V
        for k in range(self.count):
            logits_BV = nn.functional.linear(contexts_BKD[:, k], weight_VD).float() + bias_V
            part_BV = prior_BK[:, k, None] + logits_BV.log_softmax(dim=-1)
            sum_BV = part_BV if sum_BV is None else log_sum(sum_BV, part_BV)
        assert sum_BV is not None
        return sum_BV

    @classmethod
    def cost(cls, width: int, vocab_size: int, tokens: int, tied: bool, settings: Any = None) -> Cost:
        """Count contexts, their weights, and a product with all tokens for each softmax."""
        count = (settings or SoftmaxesSettings()).count
        own = linear(width, count * width, tokens) + linear(width, count, tokens)
        return own + Cost(0 if tied else width * vocab_size, count * width * vocab_size * tokens)


def log_sum(a: Tensor, b: Tensor) -> Tensor:
    """Compute log(exp a + exp b); the gradient is 0, not NaN, where both are -inf."""
    is_closed = torch.isneginf(a) & torch.isneginf(b)
    safe = torch.logaddexp(a.masked_fill(is_closed, 0.0), b.masked_fill(is_closed, 0.0))
    return safe.masked_fill(is_closed, -torch.inf)
