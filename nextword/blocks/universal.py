"""The Universal Transformer: the same layers again and again, each time told which time it is (slot "stack").

Dehghani et al. 2019, a row of the table [MAUSAM "Do Transformer Modifications Transfer Across Implementations
and Applications?"]. With halting (Graves 2016) every token decides by itself after how many steps it is done;
it then keeps its vector, which others still look at. There is a state for every step, so that reading token
by token gives what reading at once gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import ClassVar, Literal, cast

import torch
from pydantic import Field
from torch import Tensor, nn

from nextword.blocks import losses
from nextword.blocks.block import Layer
from nextword.blocks.cache import Reading
from nextword.blocks.cost import Cost, Load, linear, weights
from nextword.blocks.positions import NoPosition, Places, waves
from nextword.blocks.roles import Role, Roles
from nextword.blocks.shape import Shape
from nextword.blocks.stack import Stack, layer_cost, outer_cost
from nextword.core.contracts import State
from nextword.core.settings import Settings

HALTED = 1e-6  # a sum of shares this close to 1 is done


class RecurrenceSettings(Settings):
    """Repeated layers (stack = universal)."""

    steps: int = Field(
        6, ge=1, le=1024, description="times that the layers are applied, with vectors of the step"
    )
    before: int = Field(
        0, ge=0, le=1024, description="times that they are applied before, without such vectors"
    )
    after: int = Field(0, ge=0, le=1024, description="times that they are applied after, likewise")
    vectors: Literal["waves", "learned", "none"] = Field(
        "waves",
        description="added at each step: waves of position and step, learned ones of the step, or none",
    )
    halting: Literal["none", "accumulate", "basic"] = Field(
        "none",
        description="whether a token stops by itself; its output: mean over steps, or the update of t2t",
    )
    epsilon: float = Field(0.05, gt=0, lt=1, description="a token stops when its shares sum to 1 minus this")
    ponder: float = Field(0.01, ge=0, le=100, description="weight of the loss on the number of steps")


class Universal(Stack):
    """L layers with weights of their own, applied together several times; usually L = 1."""

    takes_lanes: ClassVar[bool] = False  # its stream is one vector a token
    options: ClassVar[type[Settings]] = RecurrenceSettings
    roles: ClassVar[Roles] = {"steps_SD": Role.POSITION}
    waves_SD: Tensor

    def __init__(self, shape: Shape, position: NoPosition) -> None:
        super().__init__(shape, position)
        self.settings = shape.of(RecurrenceSettings)
        if self.settings.vectors == "learned":
            self.steps_SD = nn.Parameter(torch.empty(self.settings.steps, shape.width).normal_(std=1.0))
        elif self.settings.vectors == "waves":
            longest = max(shape.context, self.settings.steps + 1)
            self.register_buffer("waves_SD", waves(longest, shape.width), persistent=False)
        if self.settings.halting != "none":
            self.halt = nn.Linear(shape.width, 1)
            nn.init.constant_(self.halt.bias, 1.0)

    @property
    def rounds(self) -> int:
        """Return how often the layers are applied."""
        return self.settings.before + self.settings.steps + self.settings.after

    def applied(self) -> Sequence[Layer]:
        """Return the layers, as often as they are applied."""
        return [cast(Layer, block) for block in self.blocks] * self.rounds

    def run(
        self, x_BTD: Tensor, states: Sequence[State], reading: Reading, skip: int = 0
    ) -> Iterator[tuple[Tensor, State]]:
        """Apply the layers round by round; with halting, what a token has become when it is done."""
        size, halting = len(self.blocks), self.settings.halting != "none"
        layers = self.applied()
        stream, halted = self.begin(x_BTD), None
        for round_ in range(self.rounds):
            step = round_ - self.settings.before
            is_step = 0 <= step < self.settings.steps
            if is_step and halting:
                halted = Halting.begun(stream, self.settings) if halted is None else halted
                share_BT = torch.sigmoid(self.halt(stream).float()).squeeze(-1)
            old = stream
            stream = self.told(stream, step, reading.places) if is_step else stream
            for at, block in enumerate(self.blocks):
                number = round_ * size + at
                stream, state = cast(Layer, block)(stream, states[number], reading)
                is_end = at + 1 == size
                if is_end and is_step and halted is not None:
                    stream = halted.step(share_BT, old, stream, step + 1 == self.settings.steps)
                    if step + 1 == self.settings.steps:
                        stream = halted.out_BTD
                        losses.add("ponder", self.settings.ponder, partial(halted.cost, reading))
                yield (stream[:, skip:] if number + 1 == len(layers) else stream), state

    def told(self, stream: Tensor, step: int, places: Places) -> Tensor:
        """Add the vectors of this step, and of the places."""
        if self.settings.vectors == "learned":
            return stream + self.steps_SD[step]
        if self.settings.vectors == "waves":
            return stream + self.waves_SD[places] + self.waves_SD[step + 1]
        return stream

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count the weights once, and the products of all rounds."""
        own = shape.of(RecurrenceSettings)
        layers = sum([layer_cost(shape.at(index), load) for index in range(shape.layers)], Cost())
        vectors = weights(own.steps * shape.width if own.vectors == "learned" else 0)
        halt = Cost() if own.halting == "none" else linear(shape.width, 1, load.tokens, bias=True)
        rounds = own.before + own.steps + own.after
        return layers.applied(rounds) + vectors + halt.applied(own.steps) + outer_cost(shape)


class Halting:
    """Adaptive halting of every token: shares of the steps, which sum to 1, and what they weigh.

    A token runs while its shares sum to less than 1 - ε; the last one, the remainder, completes the sum.
    """

    def __init__(self, sum_BT: Tensor, out_BTD: Tensor, settings: RecurrenceSettings) -> None:
        self.sum_BT, self.out_BTD, self.settings = sum_BT, out_BTD, settings
        self.rest_BT, self.count_BT = torch.zeros_like(sum_BT), torch.zeros_like(sum_BT)
        self.is_done_BT = torch.zeros_like(sum_BT, dtype=torch.bool)
        self.shares: list[Tensor] = []

    @classmethod
    def begun(cls, stream: Tensor, settings: RecurrenceSettings) -> Halting:
        """Begin with nothing."""
        return cls(
            stream.new_zeros(stream.shape[:2], dtype=torch.float32), torch.zeros_like(stream), settings
        )

    def step(self, share_BT: Tensor, old: Tensor, new: Tensor, is_last: bool) -> Tensor:
        """Weigh a step; return new vectors of tokens that run, old ones of those that are done."""
        runs_BT = ~self.is_done_BT
        ends_BT = runs_BT & ((self.sum_BT + share_BT > 1 - self.settings.epsilon) | is_last)
        weight_BT = torch.where(ends_BT, 1 - self.sum_BT, torch.where(runs_BT, share_BT, 0.0))
        self.rest_BT = torch.where(ends_BT, 1 - self.sum_BT, self.rest_BT)
        self.sum_BT = self.sum_BT + weight_BT
        self.count_BT = self.count_BT + runs_BT
        self.is_done_BT = self.is_done_BT | ends_BT
        self.shares.append(weight_BT)
        stream = torch.where(runs_BT[..., None], new, old)
        weight_BT1 = weight_BT[..., None].to(stream.dtype)
        if self.settings.halting == "basic":
            self.out_BTD = torch.lerp(self.out_BTD, stream, weight_BT1)
        else:
            self.out_BTD = self.out_BTD + weight_BT1 * stream
        return stream

    def cost(self, reading: Reading) -> Tensor:
        """Return the mean of steps and remainder over the tokens."""
        price_BT = self.count_BT + self.rest_BT
        return price_BT.mean() if reading.is_full else price_BT[reading.real()].mean()
