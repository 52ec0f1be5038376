"""The fused loss is the plain loss: values and gradients, tied or not, forbidden words, smoothing, types."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from nextword.blocks import losses

torch.set_num_threads(1)


def _case(count: int, width: int, words: int, kind: torch.dtype = torch.float32, rows: int = 0):
    torch.manual_seed(count + words)
    x_ND = torch.randn(count, width, dtype=kind, requires_grad=True)
    weight_VD = (0.5 * torch.randn(words + rows, width, dtype=kind)).requires_grad_()
    bias_V = torch.randn(words, dtype=kind, requires_grad=True)
    targets_N = torch.randint(2, words, (count,))
    return x_ND, weight_VD, bias_V, targets_N


def _loss_and_gradients(function, case, forbidden=(), smoothing=0.0):
    x_ND, weight_VD, bias_V, targets_N = case
    closed_V = torch.zeros_like(bias_V)
    closed_V[list(forbidden)] = -torch.inf
    loss = function(x_ND, weight_VD, bias_V + closed_V, targets_N, smoothing)
    return loss, torch.autograd.grad(loss / 3, (x_ND, weight_VD, bias_V))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("forbidden", [(), (1,), (0, 1)])
@pytest.mark.parametrize(("count", "words", "rows"), [(1, 7, 0), (5, 33, 2), (70, 1500, 1)])
def test_fused_loss_is_the_plain_loss(count, words, rows, forbidden, smoothing, monkeypatch):
    monkeypatch.setattr(losses, "HELD", 20 * words)  # several chunks
    case = _case(count, 6, words, rows=rows)
    plain, expected = _loss_and_gradients(losses.plain_linear_cross_entropy, case, forbidden, smoothing)
    fused, found = _loss_and_gradients(losses.fused_linear_cross_entropy, case, forbidden, smoothing)
    torch.testing.assert_close(fused, plain)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def test_fused_loss_is_torchs_cross_entropy():
    x_ND, weight_VD, bias_V, targets_N = _case(40, 8, 300)
    found = losses.fused_linear_cross_entropy(x_ND, weight_VD, bias_V, targets_N)
    expected = F.cross_entropy(F.linear(x_ND, weight_VD, bias_V), targets_N, reduction="sum")
    torch.testing.assert_close(found, expected)


def test_label_smoothing_is_torchs():
    x_ND, weight_VD, bias_V, targets_N = _case(40, 8, 300)
    found = losses.fused_linear_cross_entropy(x_ND, weight_VD, bias_V, targets_N, 0.2)
    logits_NV = F.linear(x_ND, weight_VD, bias_V)
    expected = F.cross_entropy(logits_NV, targets_N, reduction="sum", label_smoothing=0.2)
    torch.testing.assert_close(found, expected)


def test_plain_loss_has_right_gradients_in_double():
    x_ND, weight_VD, bias_V, targets_N = _case(4, 3, 6, torch.float64)
    for smoothing in (0.0, 0.3):
        assert torch.autograd.gradcheck(
            lambda x, w, b, s=smoothing: losses.plain_linear_cross_entropy(x, w, b, targets_N, s),
            (x_ND, weight_VD, bias_V),
        )


def test_fused_loss_in_double_is_the_plain_loss():
    case = _case(9, 4, 50, torch.float64)
    plain, expected = _loss_and_gradients(losses.plain_linear_cross_entropy, case, (1,))
    fused, found = _loss_and_gradients(losses.fused_linear_cross_entropy, case, (1,))
    torch.testing.assert_close(fused, plain)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_without_gradients_it_is_the_same_number():
    case = _case(30, 5, 1200)
    with torch.no_grad():
        found = losses.fused_linear_cross_entropy(*case, 0.1)
    torch.testing.assert_close(found, losses.plain_linear_cross_entropy(*case, 0.1).detach())


def test_gradients_of_huge_logits_are_finite():
    x_ND, weight_VD, bias_V, targets_N = _case(6, 5, 40)
    case = ((1000 * x_ND).detach().requires_grad_(), weight_VD, bias_V, targets_N)
    plain, expected = _loss_and_gradients(losses.plain_linear_cross_entropy, case, (1,))
    fused, found = _loss_and_gradients(losses.fused_linear_cross_entropy, case, (1,))
    torch.testing.assert_close(fused, plain)
    for one, other in zip(found, expected, strict=True):
        assert torch.isfinite(one).all()
        torch.testing.assert_close(one, other, atol=1e-2, rtol=1e-4)


def test_a_broken_feature_is_seen_in_the_loss():
    x_ND, weight_VD, bias_V, targets_N = _case(6, 5, 40)
    with torch.no_grad():
        x_ND[2, 1] = torch.nan
    assert torch.isnan(losses.fused_linear_cross_entropy(x_ND, weight_VD, bias_V, targets_N))


@pytest.mark.needs("bf16")
def test_products_in_bfloat16_come_close():
    case = _case(20, 16, 400)
    _, expected = _loss_and_gradients(losses.plain_linear_cross_entropy, case, (1,))
    with torch.autocast("cpu", torch.bfloat16):
        loss, found = _loss_and_gradients(losses.fused_linear_cross_entropy, case, (1,))
    assert loss.dtype == torch.float32
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == torch.float32
        assert float((one - other).norm() / other.norm()) < 0.02


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("threads", [1, 2])
def test_compiled_rows_are_the_plain_rows(kind, threads, monkeypatch):
    monkeypatch.setattr(losses, "_SHARED_FROM", 1)
    monkeypatch.setattr(losses, "_NEAR", 300)  # three rows at a time
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    logits_CV, targets_C = (5 * torch.randn(7, 100)).to(kind), torch.randint(0, 100, (7,))
    bias_V = torch.randn(100)
    bias_V[3] = -torch.inf
    logp_C = losses.plain_row_log_probs(logits_CV, bias_V, targets_C)
    torch.testing.assert_close(losses.row_log_probs(logits_CV.clone(), bias_V, targets_C), logp_C)
    ours, theirs, sums = logits_CV.clone(), logits_CV.clone(), [torch.zeros(100), torch.zeros(100)]
    found = losses.row_gradients(ours, bias_V, targets_C, sums[0])
    expected = losses.plain_row_gradients(theirs, bias_V, targets_C, sums[1])
    torch.testing.assert_close(found[0], logp_C)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(ours, theirs, rtol=1e-2 if kind == torch.bfloat16 else 1e-5, atol=1e-5)
    torch.testing.assert_close(*sums, rtol=1e-2 if kind == torch.bfloat16 else 1e-5, atol=1e-2)
    assert not ours[:, 3].any()
    torch.set_num_threads(1)


def test_a_loss_is_differentiated_once():
    case = _case(3, 4, 20)
    loss = losses.fused_linear_cross_entropy(*case)
    loss.backward(retain_graph=True)
    with pytest.raises(AssertionError, match="once"):
        loss.backward()


def test_memory_first_used_for_measuring_serves_learning_too():
    torch.manual_seed(0)
    big = 3_000_000  # more logits than any other test here has
    x_ND, weight_VD = torch.randn(1, 2, requires_grad=True), torch.randn(big, 2)
    with torch.inference_mode():
        losses.linear_log_probs(x_ND, weight_VD, torch.zeros(big), torch.zeros(1, dtype=torch.int64))
    losses.linear_cross_entropy(
        x_ND, weight_VD, torch.zeros(big), torch.zeros(1, dtype=torch.int64)
    ).backward()
    assert x_ND.grad is not None
