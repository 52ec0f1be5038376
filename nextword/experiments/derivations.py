"""The gradient of a recurrent network's repeated weight, derived four times in plain NumPy.

[IITD-1 "Backpropagation for RNNs", "Training The Parameters of RNNs"; XMU "Chain rule: interactive session",
"Random truncation"]. The network is the slides': h_t = tanh(W_h h_{t-1} + W_e e_t + b), ŷ = softmax(W_y h_T).
The loss is that of the last word, ℓ_T = -log ŷ_T[next word]. Vec stacks columns, as on the slide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Example:
    """Weights, the vectors of the words that are read, and the word that comes next."""

    W_h: Floats  # from h to h
    W_e: Floats  # from e to h
    b: Floats
    W_y: Floats  # from h to the words
    e_TE: Floats
    target: int

    @property
    def T(self) -> int:  # noqa: N802 - the slide's letter
        """The number of words that are read."""
        return len(self.e_TE)


def random_example(hidden: int, words: int, length: int, seed: int, gain: float = 1.0) -> Example:
    """Draw random weights; the recurrent ones are orthogonal, times ``gain``."""
    rng = np.random.default_rng(seed)
    turn_HH, _ = np.linalg.qr(rng.normal(size=(hidden, hidden)))
    return Example(
        W_h=gain * turn_HH,
        W_e=rng.normal(size=(hidden, hidden)) / np.sqrt(hidden),
        b=0.1 * rng.normal(size=hidden),
        W_y=rng.normal(size=(words, hidden)),
        e_TE=0.3 * rng.normal(size=(length, hidden)),
        target=int(rng.integers(words)),
    )


def states(example: Example) -> Floats:
    """Return ``h_SH``: h_0 = 0, then one after each word."""
    h_SH = np.zeros((example.T + 1, len(example.b)))
    for t in range(1, example.T + 1):
        h_SH[t] = np.tanh(example.W_h @ h_SH[t - 1] + example.W_e @ example.e_TE[t - 1] + example.b)
    return h_SH


def prediction(example: Example, h_H: Floats) -> Floats:
    """Return ŷ = softmax(W_y h)."""
    scores_V = example.W_y @ h_H
    likely_V = np.exp(scores_V - scores_V.max())
    return np.asarray(likely_V / likely_V.sum())


def loss_slope(example: Example, h_H: Floats) -> Floats:
    """Return ∂ℓ/∂h = (ŷ - y)ᵀ W_y."""
    error_V = prediction(example, h_H)
    error_V[example.target] -= 1.0
    return np.asarray(error_V @ example.W_y)


def step_slope(example: Example, h_H: Floats) -> Floats:
    """Return ∂h_t/∂h_{t-1} = Diag(σ') W_h, from h_t: tanh' = 1 - h²."""
    return np.asarray((1 - h_H**2)[:, None] * example.W_h)


def direct_slope(h_H: Floats, before_H: Floats) -> Floats:
    """Return ∂f/∂w at one step, d × d²: Diag(σ') [h_{t-1}ᵀ ⊗ I]; the slide's h ⊗ I is d² × d."""
    return np.asarray((1 - h_H**2)[:, None] * np.kron(before_H[None], np.eye(len(h_H))))


def as_matrix(vec: Floats) -> Floats:
    """Turn Vec(W) back into W, column by column."""
    size = round(np.sqrt(len(vec)))
    return vec.reshape(size, size, order="F")


def by_backpropagation(example: Example) -> Floats:
    """Return ∂ℓ/∂W_h for the matrix itself: go back over the steps and sum [Werbos 1988]."""
    h_SH = states(example)
    g_H = loss_slope(example, h_SH[-1])
    total_HH = np.zeros_like(example.W_h)
    for t in range(example.T, 0, -1):
        d_H = g_H * (1 - h_SH[t] ** 2)  # through σ
        total_HH += np.outer(d_H, h_SH[t - 1])  # into this appearance of W_h
        g_H = example.W_h.T @ d_H  # into the state before
    return total_HH


def by_appearance(example: Example) -> Floats:
    """Return ``(T, d, d)``: ∂ℓ/∂W_h|(i) for each appearance i as if it were a weight of its own."""
    h_SH = states(example)
    found = []
    for i in range(1, example.T + 1):
        g_H = loss_slope(example, h_SH[-1])
        for t in range(example.T, i, -1):
            g_H = g_H @ step_slope(example, h_SH[t])
        found.append(np.outer(g_H * (1 - h_SH[i] ** 2), h_SH[i - 1]))
    return np.array(found)


def by_states(example: Example) -> Floats:
    """Return ∂ℓ/∂h_T Σ_k ∂h_T/∂h_k ∂h_k/∂w: Jacobians multiplied from the left end, then summed."""
    h_SH = states(example)
    total = np.zeros((len(example.b), len(example.b) ** 2))
    from_k_HH = np.eye(len(example.b))  # ∂h_T/∂h_k, beginning with k = T
    for k in range(example.T, 0, -1):
        total += from_k_HH @ direct_slope(h_SH[k], h_SH[k - 1])
        from_k_HH = from_k_HH @ step_slope(example, h_SH[k])
    return as_matrix(loss_slope(example, h_SH[-1]) @ total)


def by_forward_mode(example: Example) -> Floats:
    """Carry ∂h_t/∂w = Diag(σ') [h_{t-1}ᵀ ⊗ I + W_h ∂h_{t-1}/∂w] along with the state."""
    h_SH = states(example)
    dh_dw = np.zeros((len(example.b), len(example.b) ** 2))
    for t in range(1, example.T + 1):
        dh_dw = direct_slope(h_SH[t], h_SH[t - 1]) + step_slope(example, h_SH[t]) @ dh_dw
    return as_matrix(loss_slope(example, h_SH[-1]) @ dh_dw)


def by_autograd(example: Example) -> tuple[Floats, Floats]:
    """Do the same with torch in float64: the gradient of W_h, and of each appearance by itself."""
    import torch

    def as_tensor(array: Floats) -> torch.Tensor:
        return torch.tensor(array, dtype=torch.float64)

    W_h = as_tensor(example.W_h).requires_grad_()
    copies = [as_tensor(example.W_h).requires_grad_() for _ in range(example.T)]
    W_e, b, W_y, e_TE = map(as_tensor, (example.W_e, example.b, example.W_y, example.e_TE))
    for weights in ([W_h] * example.T, copies):
        h = torch.zeros(len(example.b), dtype=torch.float64)
        for weight, e in zip(weights, e_TE, strict=True):
            h = torch.tanh(weight @ h + W_e @ e + b)
        torch.autograd.backward(-torch.log_softmax(W_y @ h, dim=0)[example.target])
    grads = [weight.grad for weight in (W_h, *copies)]
    one, *each = [np.zeros_like(example.W_h) if grad is None else grad.numpy() for grad in grads]
    return one, np.array(each)


def at_random(example: Example, keep: float, factor: float, draws: int, rng: np.random.Generator) -> Floats:
    """Return ``(draws, d, d)``: at each step back the rest stays with probability ``keep``, times ``factor``.

    g_t = ∂f/∂w + factor ξ_t ∂f/∂h g_{t-1} with P(ξ = 1) = keep. Unbiased: factor = 1/keep.
    """
    h_SH = states(example)
    g_NH = np.repeat(loss_slope(example, h_SH[-1])[None], draws, axis=0)
    total_NHH = np.zeros((draws, *example.W_h.shape))
    for t in range(example.T, 0, -1):
        d_NH = g_NH * (1 - h_SH[t] ** 2)
        total_NHH += d_NH[:, :, None] * h_SH[t - 1]
        kept_N1 = (rng.random((draws, 1)) < keep) * factor
        g_NH = kept_N1 * (d_NH @ example.W_h)
    return total_NHH


def truncated(example: Example, steps: int) -> Floats:
    """Sum over the last ``steps`` appearances only: from i = T - τ + 1, where the slide begins at 1."""
    return np.asarray(by_appearance(example)[-steps:].sum(axis=0))
