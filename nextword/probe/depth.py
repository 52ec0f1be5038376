"""Gradient norm by depth: whether the lower layers get as much gradient as the upper ones.

[IITD-2 "Is Vanishing/Exploding Gradient Just an RNN Problem?": deep networks have it, too; direct connections
help]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nextword.drawing.page import Table
from nextword.drawing.svg import Axis, Series, lines
from nextword.probe.gradients import KINDS
from nextword.probe.result import Figure, ProbeResult
from nextword.probe.settings import ProbeSettings
from nextword.probe.subject import Subject

if TYPE_CHECKING:
    from nextword.probe.distances import Depths

_TOKENS = 160


class Depth:
    """How the gradient changes from layer to layer."""

    about = "gradient norm by layer, of the layer's activations and of its weights"
    needs = "neural networks"

    def fits(self, subject: Subject) -> bool:
        """Accept any network of ours."""
        return subject.kind in KINDS

    def look(self, subject: Subject, settings: ProbeSettings, against: Subject | None = None) -> ProbeResult:
        """Show one network, or two in one picture."""
        from nextword.probe import distances  # needs torch

        tokens = settings.tokens or _TOKENS
        own = distances.by_depth(subject.network, subject.row(tokens).ids_T)
        arrays = {"activations_L": own.activations_L, "weights_L": own.weights_L}
        found = [(subject.name, own)]
        if against is not None:
            other = distances.by_depth(against.network, against.row(tokens).ids_T)
            arrays |= {"against_activations_L": other.activations_L, "against_weights_L": other.weights_L}
            found.append((against.name, other))
        return ProbeResult(
            "depth", subject.name, f"The gradient by depth: {subject.name}", _sentence(own),
            'IITD-2 "Is Vanishing/Exploding Gradient Just an RNN Problem?"', arrays, {"L": own.layers},
            (_picture(found),),
        )  # fmt: skip


def _sentence(own: Depths) -> str:
    first, last = own.activations_L[0], own.activations_L[-1]
    ratio = first / last if last > 0 else float("inf")
    return (
        f"The gradient of the embeddings is {ratio:.3g} times that of the top layer "
        f"({first:.3g} against {last:.3g})."
    )


def _picture(found: list[tuple[str, Depths]]) -> Figure:
    curves, rows = [], []
    is_pair = len(found) > 1
    for name, each in found:
        for kind, values in (("its numbers", each.activations_L), ("its weights", each.weights_L)):
            points = tuple((float(depth), float(value)) for depth, value in enumerate(values))
            curves.append(Series(f"{name}: {kind}" if is_pair else kind, points))
        cells = zip(each.layers, each.activations_L.tolist(), each.weights_L.tolist(), strict=True)
        rows += [(*((name,) if is_pair else ()), *cell) for cell in cells]
    longest = max((each.layers for _, each in found), key=len)
    x = Axis("layer, embeddings first", names=tuple((float(i), name) for i, name in enumerate(longest)))
    heads = (*(("run",) if is_pair else ()), "layer", "‖d loss / d numbers‖", "‖d loss / d weights‖")
    return Figure(
        "Gradient norm by layer",
        lines(curves, "Gradient norm by layer", x, Axis("gradient norm of a layer", log=True)),
        "How strongly the loss depends on each layer's numbers (of one position, the mean over the "
        "text) and on "
        "its weights.",
        Table(heads, tuple(rows)),
    )
