"""Each fast recurrent layer is its plain cell, and both are torch's where torch has it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nextword.blocks.cells import Cell
from nextword.blocks.recurrent import GRU, LSTM, RNN, MinGRU, TorchGRU
from nextword.core import catalog

LAYERS = {
    **{f"rnn-{name}": (lambda e, h, name=name: RNN(e, h, name)) for name in catalog.names("cell_activation")},
    "lstm": LSTM,
    "gru": GRU,
    "gru-torch": TorchGRU,
    "mingru": MinGRU,
}
T, B, E, H = 7, 3, 5, 4


def problem(name: str, dtype: torch.dtype, positions: int = T):
    layer = LAYERS[name](E, H).to(dtype)
    for weight in layer.parameters():
        nn.init.normal_(weight, std=0.5)
    x_TBE = torch.randn(positions, B, E, dtype=dtype, requires_grad=True)
    state = tuple(torch.randn(B, H, dtype=dtype, requires_grad=True) for _ in range(layer.parts))
    return layer, x_TBE, state


def outcome(read, layer: Cell, x_TBE, state, lengths_B=None):
    """Outputs, last state, and all gradients of a sum that tells every number apart."""
    h_TBH, after = read(layer, x_TBE, state, lengths_B)
    torch.manual_seed(1)
    if lengths_B is not None:  # what stands past the end may be anything
        real = torch.arange(len(x_TBE))[:, None] < lengths_B
        h_TBH = torch.where(real[..., None], h_TBH, torch.zeros_like(h_TBH))
    parts = [part if part.dtype == torch.float64 else part.float() for part in (h_TBH, *after)]
    total = sum((part * torch.randn_like(part)).sum() for part in parts)  # the same noise for every type
    leaves = [x_TBE, *state, *layer.parameters()]
    return [h_TBH, *after, *torch.autograd.grad(total, leaves)]


def fast(layer, x_TBE, state, lengths_B):
    return layer.read_all(x_TBE, state, lengths_B)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
@pytest.mark.parametrize("lengths", [None, [7, 3, 0]])
def test_fast_layer_is_its_plain_cell_forwards_and_backwards(name, dtype, error, lengths):
    layer, x_TBE, state = problem(name, dtype)
    lengths_B = None if lengths is None else torch.tensor(lengths)
    plain = outcome(Cell.read, layer, x_TBE, state, lengths_B)
    for ours, theirs in zip(outcome(fast, layer, x_TBE, state, lengths_B), plain, strict=True):
        size = max(1.0, theirs.detach().abs().max().item())
        torch.testing.assert_close(ours, theirs, atol=error * size, rtol=0)


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_of_plain_and_fast_layers_hold_numerically(name):
    layer, x_TBE, state = problem(name, torch.float64, positions=3)
    names = [name for name, _ in layer.named_parameters()]

    def run(read):
        def call(x_TBE, *rest):
            weights = {f"layer.{n}": w for n, w in zip(names, rest[layer.parts :], strict=True)}
            return torch.func.functional_call(Reader(layer, read), weights, (x_TBE, rest[: layer.parts]))

        return call

    leaves = (x_TBE, *state, *layer.parameters())
    assert torch.autograd.gradcheck(run(Cell.read), leaves)
    assert torch.autograd.gradcheck(run(fast), leaves)


class Reader(nn.Module):
    def __init__(self, layer, read):
        super().__init__()
        self.layer, self.how = layer, read

    def forward(self, x_TBE, state):
        h_TBH, after = self.how(self.layer, x_TBE, state, None)
        return (h_TBH, *after)


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_hold_where_the_words_need_none(name):
    layer, x_TBE, state = problem(name, torch.float64)
    layer.read_all(x_TBE.detach(), state, None)[0].sum().backward()
    assert all(weight.grad is not None for weight in layer.parameters())


@pytest.mark.needs("bf16")
@pytest.mark.parametrize("name", LAYERS)
def test_bfloat16_products_are_near(name):
    layer, x_TBE, state = problem(name, torch.float32)
    exact = outcome(fast, layer, x_TBE, state)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        near = outcome(fast, layer, x_TBE, state)
    for low, high in zip(near, exact, strict=True):
        assert (low - high).abs().max().item() < 0.05 * (1 + high.abs().max().item())


@pytest.mark.parametrize("name", LAYERS)
def test_one_word_at_a_time_is_all_at_once(name):
    layer, x_TBE, state = problem(name, torch.float32)
    with torch.no_grad():
        all_TBH, last = layer.read(x_TBE, state)
        for t in range(T):
            h_1BH, state = layer.read(x_TBE[t : t + 1], state)
            torch.testing.assert_close(h_1BH[0], all_TBH[t], atol=1e-5, rtol=0)
    for ours, theirs in zip(state, last, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


def torch_twin(layer, kind, **options):
    twin = kind(E, H, **options).double()
    x_to, h_to = (dict(layer.named_children())[name] for name in ("x_to_gates", "h_to_gates"))
    copy_weights(twin, x_to, h_to)
    return twin


def copy_weights(twin, x_to, h_to):
    with torch.no_grad():
        twin.weight_ih_l0.copy_(x_to.weight)
        twin.bias_ih_l0.copy_(x_to.bias)
        twin.weight_hh_l0.copy_(h_to.weight)
        twin.bias_hh_l0.copy_(h_to.bias if h_to.bias is not None else torch.zeros_like(twin.bias_hh_l0))


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_rnn_agrees_with_torch(activation):
    layer, x_TBE, state = problem(f"rnn-{activation}", torch.float64)
    twin = nn.RNN(E, H, nonlinearity=activation).double()
    copy_weights(twin, layer.x_to_h, layer.h_to_h)
    for read in (Cell.read, fast):
        torch.testing.assert_close(
            read(layer, x_TBE, state, None)[0], twin(x_TBE, state[0][None])[0], atol=1e-10, rtol=0
        )


def test_lstm_agrees_with_torch():
    layer, x_TBE, state = problem("lstm", torch.float64)
    twin = torch_twin(layer, nn.LSTM)
    theirs, (h_1BH, c_1BH) = twin(x_TBE, (state[0][None], state[1][None]))
    for read in (Cell.read, fast):
        ours, (h_BH, c_BH) = read(layer, x_TBE, state, None)
        torch.testing.assert_close(ours, theirs, atol=1e-10, rtol=0)
        torch.testing.assert_close(h_BH, h_1BH[0], atol=1e-10, rtol=0)
        torch.testing.assert_close(c_BH, c_1BH[0], atol=1e-10, rtol=0)


def test_library_gru_agrees_with_torch_and_the_slides_does_not():
    layer, x_TBE, state = problem("gru-torch", torch.float64)
    theirs = torch_twin(layer, nn.GRU)(x_TBE, state[0][None])[0]
    for read in (Cell.read, fast):
        torch.testing.assert_close(read(layer, x_TBE, state, None)[0], theirs, atol=1e-10, rtol=0)
    slide = GRU(E, H).double()  # the same weights, z = 1 - u
    sign = torch.tensor([1.0] * H + [-1.0] * H + [1.0] * H, dtype=torch.float64)[:, None]
    with torch.no_grad():
        slide.x_to_all.weight.copy_(layer.x_to_gates.weight * sign)
        slide.x_to_all.bias.copy_((layer.x_to_gates.bias + layer.h_to_gates.bias) * sign[:, 0])
        slide.h_to_gates.weight.copy_((layer.h_to_gates.weight * sign)[: 2 * H])
        slide.h_to_new.weight.copy_(layer.h_to_gates.weight[2 * H :])
    assert (slide.read(x_TBE, state)[0] - theirs).detach().abs().max().item() > 1e-2
