"""A stack registered from outside: layers that are shared, repeated, pooled or different from the others."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nextword.blocks.block import Block
from nextword.blocks.cache import Memory, Reading
from nextword.blocks.feedforward import ReLU2, SwiGLU
from nextword.blocks.joins import Join
from nextword.blocks.positions import NoPosition
from nextword.blocks.shape import Shape
from nextword.blocks.stack import Stack
from nextword.core import catalog
from nextword.models.network import NeuralLanguageModel
from nextword.models.transformer import TransformerNetwork, TransformerSettings

V, L = 30, 3
HERE = sys.modules[__name__]


class Shared(Stack):
    """One layer, applied L times."""

    def make(self, shape: Shape, position: NoPosition) -> Iterator[nn.Module]:
        yield catalog.find("block", shape.block)(shape.at(0), position)

    def applied(self) -> Any:
        return [self.blocks[0]] * self.shape.layers


class OddGated(TransformerSettings):
    """Layers of odd index have another feed-forward part."""

    def parts_at(self, index: int) -> dict[str, str]:
        return {"ffn": "swiglu"} if index % 2 else {}


class Lanes(Join):
    """Two streams side by side: a layer reads the first and writes to both; the end is their mean."""

    def begin(self, x_BTD: Tensor) -> Tensor:
        return torch.cat([x_BTD, x_BTD], dim=-1)

    def look(self, stream: Tensor) -> Tensor:
        return stream.chunk(2, dim=-1)[0]

    def forward(self, stream: Tensor, y_BTD: Tensor) -> Tensor:
        return stream + torch.cat([y_BTD, y_BTD], dim=-1)

    def end(self, stream: Tensor) -> Tensor:
        return torch.stack(stream.chunk(2, dim=-1)).mean(dim=0)


class Halved(Stack):
    """After the first layer every two places become one: another resolution, with its own bookkeeping."""

    def before(self, place: int, stream: Tensor, reading: Reading) -> tuple[Tensor, Reading]:
        if place != 1:
            return stream, reading
        pooled_BTD = stream.unflatten(1, (-1, 2)).mean(dim=2)
        rows, columns = pooled_BTD.shape[:2]
        lengths = [-(-length // 2) for length in reading.lengths]
        return pooled_BTD, Reading([0] * rows, lengths, columns, columns, stream.device)


class Decoder(Block):
    """A layer that also looks at a source: a second state beside its own."""

    def __init__(self, shape: Shape, position: NoPosition) -> None:
        super().__init__(shape, position)
        self.around_cross = catalog.find("norm_place", shape.norm_place)(shape)
        self.cross = catalog.find("cross", "attention")(shape, position)

    def start(self, batch: int, source: Memory | None = None) -> Any:
        return super().start(batch), self.cross.start(batch, source)

    def forward(self, stream: Tensor, state: Any, reading: Reading, skip: int = 0) -> Any:
        y_BTD, _ = self.cross(self.around_cross.enter(stream), state[1], reading)
        stream, own = super().forward(self.around_cross.leave(stream, y_BTD), state[0], reading, skip)
        return stream, (own, state[1])


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    torch.manual_seed(0)
    for slot, name in (("stack", "Shared"), ("stack", "Halved"), ("join", "Lanes"), ("block", "Decoder")):
        monkeypatch.setitem(catalog.SLOTS[slot], name.lower(), f"stack_parts:{name}")
    monkeypatch.setitem(sys.modules, "stack_parts", HERE)


def settings(kind: type[TransformerSettings] = TransformerSettings, **values: Any) -> TransformerSettings:
    return kind(**{"hidden": 16, "layers": L, "heads": 2, "context": 12, "init": "gpt2", **values})


CASES = {
    "shared": lambda: settings(stack="shared"),
    "odd": lambda: settings(OddGated),
    "lanes": lambda: settings(connections="lanes"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_network_with_it_learns_and_reads_word_by_word_as_at_once(case):
    network = TransformerNetwork(CASES[case](), V, False)
    ids_BT = torch.randint(3, V, (4, 20))
    rule = torch.optim.Adam(network.parameters(), 1e-2)
    losses = []
    for _ in range(8):
        features, _ = network.read(ids_BT[:, :-1], network.start(4))
        loss = network.head.loss(features.flatten(0, 1), ids_BT[:, 1:].flatten())
        rule.zero_grad()
        loss.backward()
        rule.step()
        losses.append(loss.item())
    assert losses[-1] < 0.95 * losses[0]
    assert all(weight.grad is not None for weight in network.parameters())
    model = NeuralLanguageModel(network)
    at_once, _ = model.score(ids_BT, np.full(4, 20))
    state, one_by_one = model.start(4), []
    for t in range(20):
        one_by_one.append(model.next(state).gather(1, ids_BT[:, t : t + 1])[:, 0])
        _, state = model.step(ids_BT[:, t], state)
    torch.testing.assert_close(torch.stack(one_by_one, dim=1), at_once, atol=1e-5, rtol=1e-4)


def test_a_shared_layer_has_its_weights_once_and_a_state_for_each_application():
    shared, plain = (TransformerNetwork(settings(stack=name), V, False) for name in ("shared", "plain"))
    assert len(shared.stack.start(2)) == len(plain.stack.start(2)) == L
    assert len(shared.stack.blocks) == 1
    block = sum(weight.numel() for weight in plain.stack.blocks[0].parameters())
    counts = [sum(weight.numel() for weight in network.parameters()) for network in (plain, shared)]
    assert counts[0] - counts[1] == (L - 1) * block


def test_a_layer_knows_its_index_and_may_differ():
    network = TransformerNetwork(settings(OddGated), V, False)
    blocks = list(network.stack.blocks)
    assert [block.index for block in blocks] == [0, 1, 2]
    assert [type(block.ffn) for block in blocks] == [ReLU2, SwiGLU, ReLU2]
    assert [block.ffn.out.in_features for block in blocks] == [64, 48, 64]  # 4 D, and 8/3 D rounded up


def test_the_stream_after_every_application_can_be_read():
    network = TransformerNetwork(settings(stack="shared"), V, False).eval()
    x_BTD, reading = torch.randn(2, 5, 16), Reading([0, 0], [5, 5], 5, 12, torch.device("cpu"))
    streams = [stream for stream, _ in network.stack.run(x_BTD, network.stack.start(2), reading)]
    assert len(streams) == L
    features, _ = network.stack(x_BTD, network.stack.start(2), reading)
    assert torch.equal(network.stack.finish(streams[-1]), features)


def test_pooling_gives_a_reading_of_another_resolution_and_padding_changes_nothing():
    shape = Shape(16, L, 2, 2, 8, 32, 12, causal=False, stack="halved")
    stack = catalog.find("stack", "halved")(shape, NoPosition(shape)).eval()
    x_BTD = torch.randn(2, 8, 16)
    both, _ = stack(x_BTD, stack.start(2), Reading([0, 0], [8, 4], 8, 12, torch.device("cpu")))
    alone, _ = stack(x_BTD[1:, :4], stack.start(1), Reading([0], [4], 4, 12, torch.device("cpu")))
    assert both.shape == (2, 4, 16)
    torch.testing.assert_close(both[1, :2], alone[0])


def test_a_layer_that_looks_at_a_source_keeps_it_in_its_state():
    shape = Shape(16, L, 2, 2, 8, 32, 12, block="decoder")
    stack = Stack(shape, NoPosition(shape)).eval()
    source = Memory(torch.randn(2, 6, 16), torch.tensor([6, 2]))
    x_BTD = torch.randn(2, 5, 16)
    at_once, _ = stack(x_BTD, stack.start(2, source), Reading([0, 0], [5, 5], 5, 12, torch.device("cpu")))
    states = stack.start(2, source)
    for t in range(5):
        reading = Reading([t, t], [1, 1], 1, 12, torch.device("cpu"))
        y_BTD, states = stack(x_BTD[:, t : t + 1], states, reading)
        torch.testing.assert_close(y_BTD[:, 0], at_once[:, t], atol=1e-5, rtol=1e-4)
    shorter = Memory(source.features_BSD[:, :4], source.lengths_B.clamp(max=4))
    other, _ = stack(x_BTD, stack.start(2, shorter), Reading([0, 0], [5, 5], 5, 12, torch.device("cpu")))
    assert not torch.allclose(other[0], at_once[0])
    torch.testing.assert_close(other[1], at_once[1])
