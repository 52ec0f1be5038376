"""Products in int8: near those in float32, the same in any batch, with every kernel."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from nextword.core import catalog
from nextword.core.contracts import END, START
from nextword.decode.generate import DecodeSettings, collect, generate
from nextword.models import int8
from nextword.models.int8 import Int8Head, Int8Linear, Int8Matrix, find_steps, use_int8
from nextword.models.network import NeuralLanguageModel

STEPS = find_steps()
needs_int8 = pytest.mark.skipif(not STEPS, reason="this machine has no int8 products")


@pytest.mark.parametrize("steps", [127, 63])
def test_weights_are_rounded_to_the_nearest_step(steps):
    weight = torch.randn(5, 40)
    matrix = Int8Matrix(weight, steps)
    assert matrix.q_OI.abs().max() == steps
    error = matrix.q_OI * matrix.scale_O[:, None] - weight
    assert (error.abs() <= matrix.scale_O[:, None] / 2 + 1e-7).all()


@needs_int8
@pytest.mark.parametrize("rows", [1, 3, 70])
def test_products_are_near_those_in_float32(rows):
    torch.manual_seed(0)
    weight, x = torch.randn(30, 64), torch.randn(rows, 64) * torch.logspace(-3, 3, rows)[:, None]
    exact, found = x @ weight.T, Int8Matrix(weight, STEPS)(x)
    for row in range(rows):  # one scale a row: small rows lose nothing beside large ones
        assert (found[row] - exact[row]).norm() < 0.03 * exact[row].norm()


@needs_int8
def test_row_does_not_depend_on_its_neighbours():
    torch.manual_seed(0)
    product = Int8Matrix(torch.randn(30, 64), STEPS)
    x = torch.randn(9, 64) * torch.logspace(-2, 2, 9)[:, None]
    together = product(x)
    assert all(torch.equal(product(x[row : row + 1])[0], together[row]) for row in range(9))


@pytest.mark.skipif(not int8.shifts(), reason="torch's own product is used here")
@pytest.mark.parametrize("rows", [1, 3, 70])
def test_onednn_gives_the_same_as_exact_sums(rows, monkeypatch):
    torch.manual_seed(0)
    weight, bias, x = torch.randn(30, 64), torch.randn(30), torch.randn(rows, 64)
    found = Int8Matrix(weight, STEPS, bias)(x)
    monkeypatch.setattr(int8, "shifts", lambda: False)
    exact = Int8Matrix(weight, STEPS, bias)
    exact.sums = lambda q_NI: (q_NI.long() @ exact.q_OI.long().T).int()
    assert torch.equal(found, exact(x))


@needs_int8
def test_zeros_stay_zeros():
    assert Int8Matrix(torch.randn(4, 8), STEPS)(torch.zeros(2, 8)).eq(0).all()


@pytest.fixture(params=["transformer", "lstm"])
def network(request):
    torch.manual_seed(0)
    made = catalog.find("model", request.param)
    built = made.build(made.Settings(hidden=32), 60, True)
    ids_BT = torch.from_numpy(np.random.default_rng(0).integers(3, 60, (30, 10)))
    ids_BT[:, -1] = END
    optimizer = torch.optim.Adam(built.parameters(), 0.02)
    for _ in range(20):
        read_BT = torch.cat([torch.full((30, 1), START), ids_BT[:, :-1]], dim=1)
        loss = built.head.loss(built.read(read_BT, built.start(30))[0].flatten(0, 1), ids_BT.flatten())
        optimizer.zero_grad()
        (loss / 300).backward()
        optimizer.step()
    built.fixed = True
    return built, ids_BT


@needs_int8
def test_network_loses_little_and_still_keeps_the_contract(network):
    built, ids_BT = network
    lengths_B = torch.full((30,), 10)
    before = NeuralLanguageModel(built).score(ids_BT, lengths_B)[0].mean()
    weights = {name: weight.clone() for name, weight in built.state_dict().items()}
    assert use_int8(built) == ""
    assert any(isinstance(part, Int8Linear | Int8Head) for part in built.modules())
    model = NeuralLanguageModel(built)
    after_BT, state = model.score(ids_BT, lengths_B)
    assert after_BT.mean() == pytest.approx(float(before), abs=0.05)
    assert after_BT.mean() != before
    assert set(built.state_dict()) == set(weights)
    logp_BV, state = model.next(model.start(30)), model.start(30)
    for place in range(10):
        own_B = logp_BV[torch.arange(30), ids_BT[:, place]]
        assert torch.allclose(own_B, after_BT[:, place], atol=2e-2)
        logp_BV, state = model.step(ids_BT[:, place], state)
    assert torch.isneginf(logp_BV[:, START]).all()
    assert torch.allclose(logp_BV.exp().sum(dim=1), torch.ones(30), atol=1e-5)


@needs_int8
def test_texts_in_int8_do_not_depend_on_the_batch(network):
    built, _ = network
    use_int8(built)
    model, prompts = NeuralLanguageModel(built), [[3], [4, 5], [6], [7, 8, 9]]
    texts = [
        collect(generate(model, prompts, DecodeSettings(decode="beam", max_tokens=8, batch=batch)))
        for batch in (1, 64)
    ]
    assert [text.ids for text in texts[0]] == [text.ids for text in texts[1]]


def test_machine_without_int8_keeps_float32_and_says_so(network, monkeypatch):
    built, _ = network
    monkeypatch.setattr(int8, "find_steps", lambda: 0)
    assert "fp32" in use_int8(built)
    assert not any(isinstance(part, Int8Linear | Int8Head) for part in built.modules())


def test_product_that_overflows_gets_smaller_weights_or_is_not_used(monkeypatch):
    """A processor without VNNI adds two products in 16 bits, one factor being shifted to 0 … 255."""

    def saturating(x_NI, weight_IO):
        pairs = (x_NI.long() + 128)[:, :, None] * weight_IO.long()
        sums = (pairs[:, ::2] + pairs[:, 1::2]).clamp(-(2**15), 2**15 - 1).sum(dim=1)
        return sums - 128 * weight_IO.long().sum(dim=0)

    monkeypatch.setattr(int8, "shifts", lambda: False)
    monkeypatch.setattr(torch, "_int_mm", saturating)
    assert find_steps.__wrapped__() == 63
    monkeypatch.setattr(torch, "_int_mm", lambda x, weight: torch.zeros(len(x), weight.shape[1]))
    assert find_steps.__wrapped__() == 0
    monkeypatch.delattr(torch, "_int_mm")
    assert find_steps.__wrapped__() == 0


@needs_int8
def test_bias_and_shape_of_a_linear_part_are_kept():
    torch.manual_seed(0)
    linear, x = nn.Linear(16, 8), torch.randn(2, 3, 16)
    found = Int8Linear(linear, STEPS)(x)
    assert found.shape == (2, 3, 8)
    assert torch.allclose(found, linear(x), atol=0.05)
