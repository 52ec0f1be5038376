"""Eigenvalues of the recurrent matrix, and how its powers grow or decay.

[XMU "The gradient may be a trouble maker": eigenvalues above 1 explode, below 1 vanish]. What matters is |λ|,
and a matrix that is not normal can still grow at first: ||W^k|| is drawn beside |λ|^k. An encoder that
reads from both ends has matrices in each direction.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nextword.drawing.page import Table
from nextword.drawing.plane import plane
from nextword.drawing.svg import Axis, Guide, Series, lines
from nextword.probe.result import Figure, ProbeResult
from nextword.probe.selection import check_layer
from nextword.probe.settings import ProbeSettings
from nextword.probe.subject import Subject
from nextword.probe.words import WordSubject

Array = np.ndarray[Any, np.dtype[Any]]
_POWERS = (1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50, 63, 80, 100)
_TOKENS = 48
NEAR = 1e-4  # this near to the unit circle counts as on it
ALIKE = 0.01  # norms that differ by less than this share are called equal
_EXACT = 300  # rows up to which a norm is computed by singular values


class Eigenvalues:
    """Whether the map from state to state grows or decays."""

    about = "eigenvalues of the recurrent matrix, and the growth of its powers"
    needs = "recurrent networks with a matrix from state to state (rnn, lstm, gru, gru-torch)"

    def fits(self, subject: Subject) -> bool:
        """Accept recurrent networks and encoders with such a matrix, which a minGRU lacks."""
        if not isinstance(subject, WordSubject) and subject.kind != "recurrent":
            return False
        return any(view.weights for view in _views(subject, 0, 0))

    def look(self, subject: Subject, settings: ProbeSettings, against: Subject | None = None) -> ProbeResult:
        """Show the matrices of one layer (the first, if none is named), and its steps along the text."""
        layer = max(0, check_layer(settings.layer, subject.layers))
        powers = [k for k in _POWERS if k <= settings.powers]
        arrays: dict[str, Array] = {}
        parts: list[Figure] = []
        sentences = []
        for view in _views(subject, layer, settings.tokens or _TOKENS):
            found = {name: np.linalg.eigvals(weight) for name, weight in view.weights.items()}
            first = next(iter(found))
            growth = powers_of(view.weights[first], powers)
            arrays |= {f"λ {name}": values for name, values in found.items()}
            arrays[f"norm_K{view.way}"] = growth
            parts += [_spectrum(found, layer, view.way), _grown(first, found[first], powers, growth)]
            parts.append(_beyond(first, found[first], powers, growth))
            if view.steps is not None:
                along = arrays[f"products_K{view.way}"] = products(view.steps)
                parts.append(_along(along, found[first], view.way))
            sentences.append(_sentence(first, view.weights[first], found[first], powers, growth))
        return ProbeResult(
            "eigenvalues", subject.name, f"Eigenvalues of layer {layer + 1}: {subject.name}",
            " ".join(sentences), 'XMU "The gradient may be a trouble maker"', arrays,
            {"K": [str(k) for k in powers]}, tuple(parts),
        )  # fmt: skip


@dataclass(frozen=True)
class _View:
    """A layer that reads in one direction: its matrices by name, and its steps from the last to the first."""

    way: str  # ", left to right"; nothing for a language model
    weights: dict[str, Array]
    steps: Iterable[Array] | None = None  # None: there is no text, or a step has too many numbers


def _views(subject: Subject, layer: int, tokens: int) -> list[_View]:
    """Return each direction of a layer; ``tokens`` 0: without its steps along the text."""
    if isinstance(subject, WordSubject):
        return _encoder_views(subject, layer, tokens)
    from nextword.probe import matrices  # needs torch

    cell, steps = subject.network.layers[layer], None
    if tokens and cell.hidden * cell.parts <= matrices.LARGEST:
        steps = matrices.jacobians(subject.network, subject.row(tokens).ids_T, layer)
    return [_View("", matrices.weights_of(cell), steps)]


def _encoder_views(subject: WordSubject, layer: int, tokens: int) -> list[_View]:
    """Return both directions, with the steps along the longest sentence."""
    from nextword.probe import directions, matrices  # needs torch

    encoder, read = subject.network.encoder, {}
    if tokens and subject.words:
        longest = max(subject.sentence_vectors(tokens), key=lambda x_1TE: x_1TE.shape[1])
        read = dict(directions.inputs(encoder, longest))
    found: list[_View] = []
    for reader in directions.readers(encoder):
        weights = {f"{name}, {reader.way}": w_HH for name, w_HH in matrices.weights_of(reader.cell).items()}
        if reader.layer == layer and weights:
            small = reader in read and reader.cell.hidden * reader.cell.parts <= matrices.LARGEST
            steps = directions.jacobians(reader, read[reader]) if small else None
            found.append(_View(f", {reader.way}", weights, steps))
    return found


def powers_of(weight_HH: Array, powers: list[int]) -> Array:
    """Return ||W^k|| for these k, in ascending order."""
    power, at, found = np.eye(len(weight_HH)), 0, []
    for k in powers:
        power = power @ np.linalg.matrix_power(weight_HH, k - at)
        at = k
        found.append(norm(power))
    return np.array(found)


def norm(matrix: Array) -> float:
    """Return the most by which a matrix can stretch a vector: its largest singular value."""
    largest = float(np.abs(matrix).max(initial=0.0))
    if not np.isfinite(largest) or largest == 0.0:
        return largest if largest == 0.0 else float("inf")
    scaled = matrix / largest  # so that squares cannot overflow
    if len(scaled) <= _EXACT:
        return largest * float(np.linalg.norm(scaled, 2))
    vector: Array = np.random.default_rng(0).normal(size=len(scaled))
    length = 0.0
    for _ in range(100):  # power iteration on MᵀM
        vector = scaled.T @ (scaled @ vector)
        before, length = length, float(np.linalg.norm(vector))
        if length == 0.0 or abs(length - before) <= 1e-9 * length:
            break
        vector /= length
    return largest * float(np.sqrt(length))


def products(steps: Iterable[Array]) -> Array:
    """Return ||J(T) … J(T-k+1)||: the factor on a gradient k tokens back from the end of the text."""
    product, found = None, []
    for step_SS in steps:
        product = step_SS if product is None else product @ step_SS
        found.append(norm(product))
    return np.array(found)


def departure(weight_HH: Array) -> float:
    """Return the departure from normality: ||W Wᵀ - Wᵀ W|| / ||W||², 0 for a normal matrix (Henrici 1962)."""
    gap = weight_HH @ weight_HH.T - weight_HH.T @ weight_HH
    return float(np.linalg.norm(gap) / max(float(np.linalg.norm(weight_HH)) ** 2, 1e-300))


def _sentence(name: str, weight_HH: Array, values: Array, powers: list[int], growth: Array) -> str:
    largest = float(np.abs(values).max())
    outside = int((np.abs(values) > 1 + NEAR).sum())
    return (
        f"The matrix '{name}' has largest |λ| = {largest:.3f} ({outside} of {len(values)} outside the "
        f"unit circle); {fate(largest, powers, growth)}; departure from normal {departure(weight_HH):.2f}."
    )


def fate(largest: float, powers: list[int], growth: Array) -> str:
    """Say what the measured powers do, where they are largest, and what |λ| says of the limit."""
    first, last, peak = float(growth[0]), float(growth[-1]), int(np.argmax(growth))
    way = (
        "grow" if last > first * (1 + ALIKE) else "fall" if last < first * (1 - ALIKE) else "keep their size"
    )
    said = f"up to k = {powers[-1]} its powers {way}, from ‖W‖ = {first:.3g} to {last:.3g}"
    if 0 < peak < len(powers) - 1 and float(growth[peak]) > max(first, last) * (1 + ALIKE):
        said += f", with a peak of {float(growth[peak]):.3g} at k = {powers[peak]}"
    limit = "grow" if largest > 1 + NEAR else "fall" if largest < 1 - NEAR else "keep their size"
    if limit == way:
        return said
    return f"{said}, while |λ| says that in the limit they {limit}"


def _spectrum(found: dict[str, Array], layer: int, way: str) -> Figure:
    title = f"Eigenvalues of the matrices from state to state, layer {layer + 1}{way}"
    rows = tuple(
        (
            name,
            float(np.abs(values).max()),
            float(np.abs(values).min()),
            int((np.abs(values) > 1 + NEAR).sum()),
            len(values),
        )
        for name, values in found.items()
    )
    return Figure(
        title,
        plane([(name, values.tolist()) for name, values in found.items()], title),
        "Every point is an eigenvalue λ. Outside the dotted circle |λ| > 1: along it a state, and a "
        "gradient, grows at "
        "every step; inside it fades.",
        Table(("matrix", "largest |λ|", "smallest |λ|", "outside the circle", "eigenvalues"), rows),
    )


def _grown(name: str, values: Array, powers: list[int], growth: Array) -> Figure:
    largest = float(np.abs(values).max())
    norms = tuple((float(k), round(float(y), 5)) for k, y in zip(powers, growth, strict=True))
    rates = tuple((float(k), round(largest**k, 5)) for k in powers)
    rows = tuple((k, float(y), largest**k) for k, y in zip(powers, growth, strict=True))
    title = f"How the powers of '{name}' grow"
    return Figure(
        title,
        lines([Series("‖W^k‖", norms), Series("|λ|max^k", rates)], title, Axis("power k, in steps", log=True),
              Axis("largest growth of a vector", log=True)),
        "The most by which k steps can stretch a vector. Where the norm lies above the power of "
        "the eigenvalue, the "
        "matrix is not normal: at first it is larger than |λ| predicts for the limit.",
        Table(("k", "‖W^k‖", "|λ|max^k"), rows),
    )  # fmt: skip


def _beyond(name: str, values: Array, powers: list[int], growth: Array) -> Figure:
    """Draw the transient growth of a matrix that is not normal."""
    largest = max(float(np.abs(values).max()), 1e-300)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        beyond = growth / largest ** np.array(powers, dtype=np.float64)
    points = tuple((float(k), round(float(y), 5)) for k, y in zip(powers, beyond, strict=True))
    title = f"Transient growth: how far the powers of '{name}' go beyond their eigenvalue"
    return Figure(
        title,
        lines([Series("‖W^k‖ / |λ|max^k", points)], title, Axis("power k, in steps", log=True),
              Axis("times what |λ|max alone predicts", zero=True), [Guide(1.0, "a normal matrix")]),
        "1 is a normal matrix, whose powers grow or fade as its eigenvalues predict from the first step on. "
        "What lies above is growth that the eigenvalues do not show.",
        Table(("k", "‖W^k‖ / |λ|max^k"), tuple((k, float(y)) for k, y in zip(powers, beyond, strict=True))),
    )  # fmt: skip


def _along(products_K: Array, values: Array, way: str) -> Figure:
    largest = float(np.abs(values).max())
    points = tuple((float(k), float(y)) for k, y in enumerate(products_K, start=1))
    rates = tuple((float(k), largest**k) for k in range(1, len(products_K) + 1))
    rows = tuple((k, float(y), largest**k) for k, y in enumerate(products_K.tolist(), start=1))
    title = f"What the steps do to a gradient along the text{way}"
    return Figure(
        title,
        lines([Series("‖J(t) … J(t-k+1)‖", points), Series("|λ|max^k of W", rates)], title,
              Axis("steps back k, from the end of the text"), Axis("largest growth of a gradient", log=True)),
        "J is the derivative of a whole step, gates and slopes of the activation included, at each "
        "token of the text: "
        "the product is the factor on a gradient on its way back through the layer.",
        Table(("k", "‖J(t) … J(t-k+1)‖", "|λ|max^k"), rows),
    )  # fmt: skip
