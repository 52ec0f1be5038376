"""Attention as on the slides, recomputed with NumPy, and a decoder's step with it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nextword.core.catalog import find

H, D, S = 4, 6, 5


def softmax(e):
    e = np.exp(e - e.max())
    return e / e.sum()


def made(name):
    torch.manual_seed(1)
    part = find("attention", name)(H if name != "dot" else D, D)
    z, h = torch.randn(H if name != "dot" else D), torch.randn(S, D)
    return part, z, h


def run(part, z, h, real=S):
    bias = torch.zeros(1, 1, S)
    bias[..., real:] = -torch.inf
    with torch.no_grad():
        c, weights = part(z[None, None], part.prepare(h[None]), bias)
    return c[0, 0].numpy(), weights[0, 0].numpy()


def weight(linear):
    return linear.weight.detach().numpy()


SCORES = {  # e(j) from z and h(j), as the slides write it
    "dot": lambda part, z, h: z @ h,
    "bilinear": lambda part, z, h: z @ weight(part.from_source) @ h,
    "mlp": lambda part, z, h: weight(part.to_score)[0] @ np.tanh(
        weight(part.from_state) @ z + weight(part.from_source) @ h + part.from_source.bias.detach().numpy()
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("real", [S, 3])
def test_slide_scores_become_weights_and_a_context(name, real):
    """e(j) = score(z, h(j)); α = softmax(e); c = Σ α(j) h(j), over the words that are there."""
    part, z, h = made(name)
    c, weights = run(part, z, h, real)
    alpha = softmax(np.array([SCORES[name](part, z.numpy(), h[j].numpy()) for j in range(real)]))
    np.testing.assert_allclose(weights[:real], alpha, atol=1e-6)
    assert (weights[real:] == 0).all()
    np.testing.assert_allclose(c, (alpha[:, None] * h[:real].numpy()).sum(axis=0), atol=1e-6)


def test_slide_queries_keys_and_values():
    """q = Q z, k = K h, v = V h, one head: α = softmax(q · k / √K), c = Σ α v."""
    part, z, h = made("multihead")
    assert part.heads == 1
    c, weights = run(part, z, h)
    matrices = weight(part.from_source)
    q, k, v = weight(part.from_state) @ z.numpy(), h.numpy() @ matrices[:D].T, h.numpy() @ matrices[D:].T
    alpha = softmax(k @ q / np.sqrt(D))
    np.testing.assert_allclose(weights, alpha, atol=1e-6)
    np.testing.assert_allclose(c, weight(part.out) @ (alpha @ v), atol=1e-6)


@pytest.mark.parametrize("name", ["dot", "bilinear", "mlp", "multihead"])
def test_gradients_of_attention_are_those_of_differences(name):
    torch.manual_seed(2)
    part = find("attention", name)(D, D).double()
    z, h = torch.randn(1, 2, D).double().requires_grad_(), torch.randn(1, S, D).double().requires_grad_()
    bias = torch.zeros(1, 1, S).double()
    assert torch.autograd.gradcheck(
        lambda a, b: part(a, part.prepare(b), bias)[0], (z, h), atol=1e-3, eps=1e-3
    )
