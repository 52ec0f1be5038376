"""Gates over time: which gate is open at which token; and the effect of gates set by hand.

[IITD-2 "LSTM": gates are between 0 (closed) and 1 (open); forget = 1 and input = 0 keep a cell for ever],
[IITD-2 "Gated Recurrent Units (GRUs)": update = 0 keeps h]. IITD-2 calls gates probabilities; they are
shares. An encoder that reads from both ends has gates in each direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nextword.core.contracts import NATS_PER_BIT
from nextword.core.errors import ConfigError, DataError
from nextword.core.suggestions import unknown
from nextword.drawing.heat import Names, heat
from nextword.drawing.page import Table
from nextword.drawing.svg import Axis, Guide, Series, lines
from nextword.probe.result import Figure, ProbeResult, row_of
from nextword.probe.selection import check_layer
from nextword.probe.settings import ProbeSettings
from nextword.probe.subject import Subject, TokenRow
from nextword.probe.words import WordSubject

Array = np.ndarray[Any, np.dtype[Any]]
OPEN, CLOSED = 0.9, 0.1
_TOKENS, _SHOWN, _HELD = 200, 48, 80
_UNITS = 24


class OfGates:
    """How open the gates are, token by token."""

    about = "openness of each gate over time; --set-gate forget=1,input=0 sets gates by hand"
    needs = "networks with gates (lstm, gru, gru-torch, mingru)"

    def fits(self, subject: Subject) -> bool:
        """Accept recurrent cells that have gates, also in taggers and classifiers."""
        return bool(_gates_of(subject))

    def look(self, subject: Subject, settings: ProbeSettings, against: Subject | None = None) -> ProbeResult:
        """Show the gates as they are, or the effect of setting them by hand."""
        if settings.set_gate:
            return _by_hand(subject, settings)
        layer = check_layer(settings.layer, subject.layers)
        row, layers, found = _openness(subject, settings.tokens or _TOKENS)
        parts: list[Figure | Table] = [_over_time(found, layers, row), _kinds(found, layers)]
        chosen = [place for place, name in enumerate(layers) if name.split(",")[0] == f"layer {layer + 1}"]
        parts += [_units(values[place], f"{layers[place]}, {name}", row)
                  for place in chosen for name, values in found.items()]  # fmt: skip
        arrays = {f"{name}_LTH": values for name, values in found.items()}
        return ProbeResult(
            "gates", subject.name, f"How open the gates are: {subject.name}", _sentence(found),
            'IITD-2 "LSTM"', arrays, {"L": layers, "T": row.labels}, tuple(parts),
        )  # fmt: skip


def _gates_of(subject: Subject) -> list[str]:
    """Return the names of the gates, if there are any."""
    if isinstance(subject, WordSubject):
        from nextword.probe import directions  # needs torch

        return directions.gates_of(subject.network.encoder)
    if subject.kind != "recurrent":
        return []
    from nextword.probe import gate_values  # needs torch

    return gate_values.gates_of(subject.network.layers[0])


def _openness(subject: Subject, tokens: int) -> tuple[TokenRow, list[str], dict[str, Array]]:
    """Return the text, the names of the layers (each direction of an encoder), and every gate's openness."""
    if isinstance(subject, WordSubject):
        from nextword.probe import directions  # needs torch

        encoder = subject.network.encoder
        names = [reader.name for reader in directions.readers(encoder)]
        found = directions.openness(encoder, subject.sentence_vectors(tokens))
        return subject.row_of_words(tokens), names, found
    from nextword.probe import gate_values  # needs torch

    row = subject.row(tokens)
    names = [f"layer {depth}" for depth in range(1, subject.layers + 1)]
    return row, names, gate_values.openness(subject.network, row.ids_T)


def _sentence(found: dict[str, Array]) -> str:
    summary = [f"{name} {100 * values.mean():.0f} %" for name, values in found.items()]
    widest = max(found, key=lambda name: float(found[name].mean(axis=2).std()))
    return (
        f"Open on average: {', '.join(summary)}; the one that changes most from token to token is {widest}."
    )


def _over_time(found: dict[str, Array], layers: list[str], row: TokenRow) -> Figure:
    names = [f"{layer}: {name}" for layer in layers for name in found]
    mean_RT = np.stack([found[name][place].mean(axis=1) for place in range(len(layers)) for name in found])
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


def _kinds(found: dict[str, Array], layers: list[str]) -> Table:
    rows = [
        (layers[depth], name, round(float(values[depth].mean()), 3),
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


def _units(values_TH: Array, name: str, row: TokenRow) -> Figure:
    """Return the units of one gate that move most."""
    most = np.sort(np.argsort(-values_TH.std(axis=0))[:_UNITS])
    title = f"{name.capitalize()} gate: the {len(most)} units that move most"
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

    fixed = parse(settings.set_gate, _gates_of(subject))
    chosen = check_layer(settings.layer, subject.layers)
    layers = range(subject.layers) if chosen < 0 else [chosen]
    named = ", ".join(f"{name} = {value:g}" for name, value in fixed.items())
    if isinstance(subject, WordSubject):
        return _of_an_encoder(subject, settings, fixed, layers, named)
    row = subject.row(settings.tokens or _HELD)
    if len(row) < 4:
        raise DataError(
            "the text has fewer than three words, so no gate can be set in its middle; give more --text"
        )
    since = (len(row) - 1) // 2
    found = gate_values.clamp(subject.network, row.ids_T, fixed, list(layers), since)
    arrays = {
        "nats_T": found.nats_T, "held_T": found.clamped_T, "change_LT": found.change_LT,
        "held_change_LT": found.clamped_change_LT,
    }  # fmt: skip
    depth = layers[0]
    moves = found.change_LT[depth], found.clamped_change_LT[depth]
    title = f"Gates set by hand ({named}): {subject.name}"
    return ProbeResult(
        "gates", subject.name, title, _outcome(found, since, layers, named),
        'IITD-2 "How Does LSTM Solve Vanishing Gradients?"', arrays, {"T": row.labels[1:]},
        (_moved(*moves, row.labels[:-1], since, f"layer {depth + 1}"), _cost(found, row, since)),
    )  # fmt: skip


def _of_an_encoder(
    subject: WordSubject, settings: ProbeSettings, fixed: dict[str, float], layers: Sequence[int], named: str
) -> ProbeResult:
    """Set gates from the middle of the longest sentence on, in each direction."""
    from nextword.probe import directions  # needs torch

    tokens = settings.tokens or _TOKENS
    sentence = max(subject.sentences(tokens), key=len)
    if len(sentence) < 3:
        raise DataError(
            "no sentence has three words, so no gate can be set in the middle of one; give more --text"
        )
    x_1TE = max(subject.sentence_vectors(tokens), key=lambda x_1TE: x_1TE.shape[1])
    found = directions.hold(subject.network.encoder, x_1TE, fixed, layers)
    shown = [place for place, reader in enumerate(found.readers) if reader.layer == layers[0]]
    rows = [place for place, reader in enumerate(found.readers) if reader.layer in layers]
    moves = [_moved(found.change_RT[place], found.held_change_RT[place],
                    found.readers[place].ordered(sentence), found.since, found.readers[place].name)
             for place in shown]  # fmt: skip
    memory = _memory(float(found.held_change_RT[rows, found.since :].max()))
    return ProbeResult(
        "gates", subject.name, f"Gates set by hand ({named}): {subject.name}",
        f"With {named} after the first {found.since} words of each direction, {memory}; what the encoder "
        f"says of a word moves by {100 * float(found.moved_T.mean()):.3g} % of its length on average.",
        'IITD-2 "How Does LSTM Solve Vanishing Gradients?"',
        {"change_LT": found.change_RT, "held_change_LT": found.held_change_RT, "moved_T": found.moved_T},
        {"L": [reader.name for reader in found.readers], "T": sentence}, tuple(moves),
    )  # fmt: skip


def _memory(most: float) -> str:
    if most == 0.0:
        return "the memory stays exactly as it was"
    return f"the memory moves by at most {most:.3g} a token"


def _outcome(found: Any, since: int, layers: Any, named: str) -> str:
    before, after = (np.exp(each[since:].mean()) for each in (found.nats_T, found.clamped_T))
    memory = _memory(float(found.clamped_change_LT[list(layers), since:].max()))
    return (
        f"With {named} from token {since} on, {memory}; the perplexity of the tokens after it goes from "
        f"{before:.4g} to {after:.4g}."
    )


def _moved(free: Array, clamped: Array, labels: Sequence[str], since: int, layer: str) -> Figure:
    points = [
        tuple((float(t), float(y)) for t, y in enumerate(values, start=1)) for values in (free, clamped)
    ]
    rows = tuple(zip(labels, free.tolist(), clamped.tolist(), strict=True))
    return Figure(
        f"How far the memory of {layer} moves at each token",
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
