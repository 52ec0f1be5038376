"""Gates over time: which gate is open at which token; and the effect of gates set by hand.

[IITD-2 "LSTM": gates are between 0 (closed) and 1 (open); forget = 1 and input = 0 keep a cell for ever],
[IITD-2 "Gated Recurrent Units (GRUs)": update = 0 keeps h]. IITD-2 calls gates probabilities; they are
shares.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nextword.core.catalog import unknown
from nextword.core.contracts import NATS_PER_BIT
from nextword.core.errors import ConfigError, DataError
from nextword.drawing.heat import Names, heat
from nextword.drawing.page import Table
from nextword.drawing.svg import Axis, Guide, Series, lines
from nextword.probe.result import Figure, ProbeResult, row_of
from nextword.probe.selection import check_layer
from nextword.probe.settings import ProbeSettings
from nextword.probe.subject import Subject, TokenRow

Array = np.ndarray[Any, np.dtype[Any]]
OPEN, CLOSED = 0.9, 0.1
_TOKENS, _SHOWN, _HELD = 200, 48, 80
_UNITS = 24


class OfGates:
    """How open the gates are, token by token."""

    about = "openness of each gate over time; --set-gate forget=1,input=0 sets gates by hand"
    needs = "networks with gates (lstm, gru, gru-torch, mingru)"

    def fits(self, subject: Subject) -> bool:
        """Accept recurrent cells that have gates."""
        if subject.kind != "recurrent":
            return False
        from nextword.probe import gate_values  # needs torch

        return bool(gate_values.gates_of(subject.network))

    def look(self, subject: Subject, settings: ProbeSettings, against: Subject | None = None) -> ProbeResult:
        """Show the gates as they are, or the effect of setting them by hand."""
        if settings.set_gate:
            return _by_hand(subject, settings)
        from nextword.probe import gate_values  # needs torch

        row = subject.row(settings.tokens or _TOKENS)
        layer = check_layer(settings.layer, len(subject.network.layers))
        found = gate_values.openness(subject.network, row.ids_T)
        parts: list[Figure | Table] = [_over_time(found, row), _kinds(found)]
        if layer >= 0:
            parts += [_units(found, name, layer, row) for name in found]
        arrays = {f"{name}_LTH": values for name, values in found.items()}
        return ProbeResult(
            "gates", subject.name, f"How open the gates are: {subject.name}", _sentence(found),
            'IITD-2 "LSTM"', arrays, {"T": row.labels}, tuple(parts),
        )  # fmt: skip


def _sentence(found: dict[str, Array]) -> str:
    summary = [f"{name} {100 * values.mean():.0f} %" for name, values in found.items()]
    widest = max(found, key=lambda name: float(found[name].mean(axis=2).std()))
    return (
        f"Open on average: {', '.join(summary)}; the one that changes most from token to token is {widest}."
    )


def _over_time(found: dict[str, Array], row: TokenRow) -> Figure:
    layers = len(next(iter(found.values())))
    names = [f"layer {depth + 1}: {name}" for depth in range(layers) for name in found]
    mean_RT = np.stack([found[name][depth].mean(axis=1) for depth in range(layers) for name in found])
    rows = tuple(map(row_of, row.labels, mean_RT.T.round(3).tolist()))
    shown = row.first(_SHOWN)
    return Figure(
        "Openness of the gates, token by token",
        heat(mean_RT[:, :_SHOWN], Names("gate", names), Names("token that is read", shown.labels),
             "Openness of the gates, token by token", "mean over the units (0 closed, 1 open)", (0.0, 1.0)),
        "Every column is a token as it is read, every row a gate: the mean over the layer's units. "
        f"The first {len(shown)} of {len(row)} tokens.",
        Table(("token", *names), rows),
    )  # fmt: skip


def _kinds(found: dict[str, Array]) -> Table:
    rows = [
        (f"layer {depth + 1}", name, round(float(values[depth].mean()), 3),
         round(100 * float((values[depth] > OPEN).mean()), 1),
         round(100 * float((values[depth] < CLOSED).mean()), 1),
         int((values[depth].mean(axis=0) > OPEN).sum()),
         int((values[depth].mean(axis=0) < CLOSED).sum()))
        for name, values in found.items() for depth in range(len(values))
    ]  # fmt: skip
    heads = (
        "layer", "gate", "mean", f"% above {OPEN}", f"% below {CLOSED}", "units open on average",
        "units closed on average",
    )  # fmt: skip
    return Table(heads, tuple(sorted(rows)))


def _units(found: dict[str, Array], name: str, layer: int, row: TokenRow) -> Figure:
    """Return the units of one gate that move most."""
    values_TH = found[name][layer]
    most = np.sort(np.argsort(-values_TH.std(axis=0))[:_UNITS])
    title = f"Layer {layer + 1}, {name} gate: the {len(most)} units that move most"
    return Figure(
        title,
        heat(values_TH[:_SHOWN, most].T, Names("unit", [str(unit + 1) for unit in most]),
             Names("token that is read", row.first(_SHOWN).labels), title, "openness (0 closed, 1 open)",
             (0.0, 1.0)),
    )  # fmt: skip


def parse(text: str, allowed: list[str]) -> dict[str, float]:
    """Parse ``forget=1,input=0`` into numbers from 0 to 1."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, equals, value = (each.strip() for each in part.partition("="))
        if name not in allowed:
            raise ConfigError(unknown("gate", name, allowed, "in '--set-gate'"))
        try:
            found[name] = float(value)
        except ValueError:
            found[name] = -1.0
        if not equals or not 0.0 <= found[name] <= 1.0:
            raise ConfigError(f"'--set-gate' sets '{name}' to '{value}'; a gate is a number from 0 to 1")
    return found


def _by_hand(subject: Subject, settings: ProbeSettings) -> ProbeResult:
    from nextword.probe import gate_values  # needs torch

    fixed = parse(settings.set_gate, gate_values.gates_of(subject.network))
    count = len(subject.network.layers)
    chosen = check_layer(settings.layer, count)
    layers = range(count) if chosen < 0 else [chosen]
    row = subject.row(settings.tokens or _HELD)
    if len(row) < 4:
        raise DataError(
            "the text has fewer than three words, so no gate can be set in its middle; give more --text"
        )
    since = (len(row) - 1) // 2
    found = gate_values.clamp(subject.network, row.ids_T, fixed, list(layers), since)
    named = ", ".join(f"{name} = {value:g}" for name, value in fixed.items())
    arrays = {
        "nats_T": found.nats_T, "held_T": found.clamped_T, "change_LT": found.change_LT,
        "held_change_LT": found.clamped_change_LT,
    }  # fmt: skip
    depth = layers[0]
    title = f"Gates set by hand ({named}): {subject.name}"
    return ProbeResult(
        "gates", subject.name, title, _outcome(found, since, layers, named),
        'IITD-2 "How Does LSTM Solve Vanishing Gradients?"', arrays, {"T": row.labels[1:]},
        (_moved(found, row, since, depth), _cost(found, row, since)),
    )  # fmt: skip


def _outcome(found: Any, since: int, layers: Any, named: str) -> str:
    most = float(found.clamped_change_LT[list(layers), since:].max())
    before, after = (np.exp(each[since:].mean()) for each in (found.nats_T, found.clamped_T))
    memory = (
        "the memory stays exactly as it was"
        if most == 0.0
        else f"the memory moves by at most {most:.3g} a token"
    )
    return (
        f"With {named} from token {since} on, {memory}; the perplexity of the tokens after it goes from "
        f"{before:.4g} to {after:.4g}."
    )


def _moved(found: Any, row: TokenRow, since: int, depth: int) -> Figure:
    free, clamped = found.change_LT[depth], found.clamped_change_LT[depth]
    points = [
        tuple((float(t), float(y)) for t, y in enumerate(values, start=1)) for values in (free, clamped)
    ]
    rows = tuple(zip(row.labels[:-1], free.tolist(), clamped.tolist(), strict=True))
    return Figure(
        f"How far the memory of layer {depth + 1} moves at each token",
        lines([Series("as trained", points[0]), Series("gates set", points[1])],
              "How far the memory moves at each token", Axis("token that is read"),
              Axis("‖c(t) - c(t-1)‖, or of h", zero=True),
              [Guide(since + 0.5, "gates are set", upright=True)]),
        f"Up to token {since} both are the same; then the gates are set, and the memory moves as they "
        "let it.",
        Table(("token", "as trained", "gates set"), rows),
    )  # fmt: skip


def _cost(found: Any, row: TokenRow, since: int) -> Figure:
    bits = [values / NATS_PER_BIT for values in (found.nats_T, found.clamped_T)]
    shown = slice(max(0, since - 8), since + _SHOWN - 8)
    return Figure(
        "Surprise of each token, as trained and with the gates set",
        heat(np.stack(bits)[:, shown], Names("gates", ["as trained", "set"]),
             Names("token that is predicted", row.labels[1:][shown]), "Surprise of each token",
             "bits, -log2 p", (0.0, float(np.quantile(np.concatenate(bits), 0.97)))),
        "What the network still knows when its gates are set: the redder, the less expected.",
    )  # fmt: skip
