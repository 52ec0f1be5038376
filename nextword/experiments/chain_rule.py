"""Backpropagation through time with numbers: every derivation on the slides equals autograd.

[IITD-1 "Backpropagation for RNNs", "Training The Parameters of RNNs"; XMU "Chain rule: interactive session"]
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nextword.core.events import Event, Progress, Stage
from nextword.drawing.page import Table
from nextword.drawing.svg import bars
from nextword.experiments import blanks, fitting
from nextword.experiments import derivations as by
from nextword.experiments.blanks import Blank, Exercise
from nextword.experiments.derivations import Example, Floats
from nextword.experiments.finding import Judge, Verdict
from nextword.experiments.result import Chart, ExperimentResult, cells, finish

SLIDE = 'IITD-1 "Backpropagation for RNNs", XMU "Chain rule: interactive session"'
CLAIM = (
    "The gradient of a repeated weight is the sum of the gradients of each time it appears; "
    '∂h_t/∂w = Diag(σ\') [h_{t-1} ⊗ I + W_h ∂h_{t-1}/∂w]: "help me to verify it".'
)
SUM = "the gradient of a repeated weight is the sum over its appearances"
FORWARD = "∂h_t/∂w = Diag(σ') [h_{t-1} ⊗ I + W_h ∂h_{t-1}/∂w], as printed"
CLAIMS = (SUM, FORWARD)
SLIP = (
    "The slide prints h_{t-1} ⊗ I, which is d² × d and cannot be added to W_h ∂h/∂w (d × d²): "
    "with h_{t-1}ᵀ ⊗ I the shapes fit and the numbers agree."
)
WORDS = ("<START>", "I", "am", "30")
NEXT = "."
ENOUGH = 1e-10


def small() -> Example:
    """Make two hidden units that read "<START> I am 30", with numbers that can be followed by hand."""
    return Example(
        W_h=np.array([[0.5, -0.3], [0.2, 0.4]]),
        W_e=np.array([[1.0, 0.0], [0.0, 1.0]]),
        b=np.array([0.1, 0.0]),
        W_y=np.array([[1.0, -1.0], [0.5, 0.5], [-1.0, 1.0]]),
        e_TE=np.array([[0.2, 0.1], [0.6, -0.4], [-0.3, 0.5], [0.4, 0.3]]),
        target=0,
    )


def differences(example: Example) -> dict[str, float]:
    """Return the largest difference of each derivation from autograd."""
    one, each = by.by_autograd(example)
    appearances = by.by_appearance(example)
    found = {
        "backpropagation through time": (by.by_backpropagation(example), one),
        "sum over appearances": (appearances.sum(axis=0), one),
        "each appearance by itself": (appearances, each),
        "sum over states, ∂h_T/∂h_k ∂h_k/∂w": (by.by_states(example), one),
        "forward: Diag(σ')[hᵀ ⊗ I + W ∂h/∂w]": (by.by_forward_mode(example), one),
    }
    return {name: float(np.abs(ours - theirs).max()) for name, (ours, theirs) in found.items()}


def exercise() -> Exercise:
    """Return the blanks, for the small example."""
    example = small()
    h, each = by.states(example), by.by_appearance(example)
    slope, step = 1 - h[4] ** 2, by.step_slope(example, h[4])
    error = by.prediction(example, h[4]) - np.eye(3)[example.target]
    back, total = by.loss_slope(example, h[4]), each.sum(axis=0)
    asked = (
        ("a", "σ'(4)₁ = 1 - h₄₁²", slope[0], f"1 - ({h[4][0]:.4f})²"),
        ("b", "[∂h₄/∂h₃]₁₂ = σ'(4)₁ W₁₂", step[0, 1], f"{slope[0]:.4f} · ({example.W_h[0, 1]})"),
        ("c", "[∂ℓ/∂h₄]₁ = Σ_v (ŷ_v - y_v) W_y[v, 1]", back[0],
         " + ".join(f"({e:.4f})({w})" for e, w in zip(error, example.W_y[:, 0], strict=True))),
        ("d", "[∂ℓ/∂W_h|(4)]₁₁ = [∂ℓ/∂h₄]₁ σ'(4)₁ h₃₁", each[3][0, 0],
         f"({back[0]:.4f})({slope[0]:.4f})({h[3][0]:.4f})"),
        ("e", "[∂ℓ/∂h₃]₁ = Σ_j [∂ℓ/∂h₄]_j [∂h₄/∂h₃]_j1", (back @ step)[0],
         f"({back[0]:.4f})({step[0, 0]:.4f}) + ({back[1]:.4f})({step[1, 0]:.4f})"),
        ("f", "[∂ℓ/∂W_h]₁₁, the sum over all four appearances", total[0, 0],
         " + ".join(f"({value:.4f})" for value in each[:, 0, 0])),
    )  # fmt: skip
    found = tuple(Blank(name, question, float(answer), how) for name, question, answer, how in asked)
    return Exercise(
        "Fill in the blanks to three decimals; a blank shows whether it is right. Everything needed is "
        "in the table above.", found,
    )  # fmt: skip


def check(name: str, value: float) -> str:
    """Tell whether an answer to a blank is right: ``check("a", 0.5)``."""
    return blanks.check(exercise().blanks, name, value)


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Derive, compare, draw the share of each appearance, and ask."""
    fitting.refuse("chain-rule", run)
    examples = 5 if quick else 40
    yield Stage("derive four times", examples, "networks")
    worst = differences(small())
    for seed in range(examples):
        example = by.random_example(hidden=2 + seed % 7, words=5, length=1 + seed % 9, seed=seed)
        worst = {name: max(worst[name], value) for name, value in differences(example).items()}
        yield Progress(seed + 1)
    most = max(worst.values())
    rows = tuple((name, f"{value:.1e}") for name, value in worst.items())
    *others, forward = worst.values()
    judge = Judge(quick)
    judge.exact(SUM, max(others) < ENOUGH, f"equal to autograd within {max(others):.0e} (float64)")
    judge.exact(
        FORWARD,
        Verdict.CORRECTED if forward < ENOUGH else Verdict.FAILED,
        f"equal within {forward:.0e} with hᵀ ⊗ I; h ⊗ I as printed has the wrong shape",
    )
    heads = ("derivation, in plain NumPy", "largest difference from autograd")
    yield from finish(
        ExperimentResult(
            "chain-rule", "The chain rule through time", SLIDE, CLAIM,
            f"four derivations equal autograd within {most:.0e}, with hᵀ ⊗ I for h ⊗ I",
            judge.findings,
            "Backpropagation through time, the sum over appearances, the sum over states and the forward "
            f"recursion in plain NumPy, against autograd, in {examples + 1} random networks (float64).",
            (
                Table(heads, rows, f"Four derivations in {examples + 1} networks, against autograd"),
                _picture(small()), SLIP, _given(small()), exercise(),
            ),
        ),
        out,
    )  # fmt: skip


def _picture(example: Example) -> Chart:
    each = by.by_appearance(example)
    named = [*(f"step {i}, reading {word}" for i, word in enumerate(WORDS, start=1)), "their sum, ∂ℓ₄/∂W_h"]
    sizes = [float(np.linalg.norm(part)) for part in (*each, each.sum(axis=0))]
    drawn = bars(list(zip(named, sizes, strict=True)), "What each appearance of W_h adds to its gradient",
                 "length of the gradient of that appearance of W_h")  # fmt: skip
    parts = zip(named, (*each, each.sum(axis=0)), strict=True)
    rows = tuple(cells(name, part.ravel()) for name, part in parts)
    table = Table(("appearance", "W₁₁", "W₁₂", "W₂₁", "W₂₂"), rows)
    caption = (
        f'What each appearance of W_h adds, after "{" ".join(WORDS)}" with "{NEXT}" to come. The first adds '
        "nothing, since h₀ = 0; the earlier ones are shortened by every step between."
    )
    return Chart(drawn, caption, table)


def _given(example: Example) -> Table:
    """Return all the numbers an answer needs."""
    h_SH = by.states(example)
    after = ("nothing", *WORDS)
    rows: list[tuple[str, str]] = [(f"h_{t} (after {after[t]})", _shown(h)) for t, h in enumerate(h_SH)]
    rows += [("W_h", _matrix(example.W_h)), ("W_y", _matrix(example.W_y))]
    rows += [("ŷ", _shown(by.prediction(example, h_SH[-1]))), ('y, for "."', "(1, 0, 0)")]
    title = "The small network: two hidden units, three words to choose from"
    return Table(("given", "value"), tuple(rows), title)


def _shown(vector: Floats) -> str:
    return "(" + ", ".join(f"{value:.4f}" for value in vector) + ")"


def _matrix(matrix: Floats) -> str:
    return "(" + "; ".join(", ".join(f"{value:g}" for value in row) for row in matrix) + ")"
