"""Sizes of every neural family, from small to large: the presets, and what ``--minutes`` chooses from.

A rung has about three times the weights of the one below, without the output layer. The highest learning rate
falls as layers grow wider; the rates are for AdamW with a short warm-up (measured: docs/auto.md).
"""

from __future__ import annotations

from nextword.core.family import Rung

RECURRENT = ("rnn", "lstm", "gru", "gru-torch", "mingru")


def _rate(base: float, width: int) -> float:
    """Return a rate that falls with the square root of the width; ``base`` is that of width 128."""
    return float(f"{base * (128 / width) ** 0.5:.2g}")


def _recurrent(base: float) -> tuple[Rung, ...]:
    sizes = (
        ("nano", 1, 64), ("tiny", 1, 128), ("mini", 1, 256), ("small", 2, 256), ("medium", 2, 512),
        ("large", 2, 1024),
    )  # fmt: skip
    return tuple(
        Rung(
            name,
            {"model.layers": layers, "model.hidden": hidden, "train.rate": _rate(base / layers, hidden)},
            f"{layers} x {hidden}",
        )
        for name, layers, hidden in sizes
    )


def _transformer(base: float) -> tuple[Rung, ...]:
    sizes = (
        ("nano", 2, 64, 64), ("tiny", 2, 128, 128), ("mini", 4, 128, 128), ("small", 4, 256, 256),
        ("medium", 6, 384, 256), ("large", 8, 512, 256),
    )  # fmt: skip
    return tuple(
        Rung(
            name,
            {
                "model.layers": layers,
                "model.hidden": hidden,
                "model.context": context,
                "train.rate": _rate(base, hidden),
            },
            f"{layers} x {hidden}, {context} tokens of context",
        )
        for name, layers, hidden, context in sizes
    )


def _window(base: float) -> tuple[Rung, ...]:
    sizes = (
        ("nano", 64, 64), ("tiny", 96, 128), ("mini", 128, 256), ("small", 192, 384), ("medium", 256, 768),
        ("large", 512, 1536),
    )  # fmt: skip
    return tuple(
        Rung(
            name,
            {"model.embedding": embedding, "model.hidden": hidden, "train.rate": _rate(base, hidden)},
            f"{hidden} hidden, embeddings of {embedding}",
        )
        for name, embedding, hidden in sizes
    )


LADDERS: dict[str, tuple[Rung, ...]] = {
    "window": _window(5e-3),
    "rnn": _recurrent(5e-3),
    **{family: _recurrent(8e-3) for family in RECURRENT if family != "rnn"},
    "transformer": _transformer(6e-3),
}


def ladder(family: str) -> tuple[Rung, ...]:
    """Return the sizes of a family; a family of another package has only its own."""
    return LADDERS.get(family, ())
