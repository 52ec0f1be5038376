"""From settings to the sizes of a Transformer; combinations that do not work: `models.impossible`.

The parts themselves are named in the catalog and made in `blocks.stack` and `blocks.block`; their settings
are in `models.parts`.
"""

from __future__ import annotations

from typing import Any

from nextword.blocks.shape import Shape
from nextword.core.catalog import find
from nextword.core.errors import ConfigError
from nextword.models.impossible import refuse_impossible

FIELDS = {"connections": "join"}  # settings whose field of a shape has another name
DIFFER = {  # settings in which a layer may differ from the others -> the slot that names its values
    "norm": "norm",
    "norm_place": "norm_place",
    "qk_norm": "qk_norm",
    "ffn": "ffn",
    "mixer": "mixer",
    "connections": "join",
    "block": "block",
    "order": "",
    "inner": "number",
    "heads": "number",
}
NAMING = [name for name, slot in DIFFER.items() if slot not in ("", "number")]  # ... of those, names of parts
HEAD_SIZE = 64  # where the number of heads is chosen here
ROUND = 8  # an inner width chosen here is a multiple of this


def shape_of(settings: Any) -> Shape:
    """Return the sizes, with a value for everything that was left open."""
    heads = settings.heads or chosen_heads(settings.hidden, settings.fewest_heads)
    head_size = settings.head_size or _head_size(settings.hidden, heads)
    kv_heads = settings.kv_heads or heads
    if heads % kv_heads:
        raise ConfigError(
            f"'model.kv_heads' is {kv_heads}, which does not divide 'model.heads' {heads}; "
            f"try {_either(_near(kv_heads, heads))}"
        )
    refuse_impossible(settings, head_size)
    return Shape(
        width=settings.hidden,
        layers=settings.layers,
        heads=heads,
        kv_heads=kv_heads,
        head_size=head_size,
        inner=settings.inner or _inner(settings.hidden, settings.ffn),
        context=settings.context,
        bias=settings.bias,
        dropout=settings.dropout,
        norm=settings.norm,
        norm_eps=settings.norm_eps,
        norm_place=settings.norm_place,
        qk_norm=settings.qk_norm,
        mixer=settings.mixer,
        ffn=settings.ffn,
        join=settings.connections,
        block=settings.block,
        stack=settings.stack,
        order=settings.order,
        position=settings.position,
        final_norm="" if settings.final_norm == "same" else settings.final_norm,
        attention_bias={"same": None, "yes": True, "no": False}[settings.attention_bias],
        scale=settings.scale,
        weighing=settings.weighing,
        cross_heads=getattr(settings, "cross_heads", 0),
        cross_size=getattr(settings, "cross_size", 0),
        base=settings.base,
        different=_different(settings),
        options=settings.option_groups(),
    )


def keep_of(settings: Any) -> int:
    """Return how many tokens are read again when the context is full."""
    return min(int(settings.context * settings.overlap), settings.context - 1)


def chosen_heads(hidden: int, fewest: int = 1) -> int:
    """Return about one head for every 64 features, each of the same size, an even one if possible.

    A narrow model has ``fewest`` of them if its width allows.
    """
    wanted = max(fewest, hidden // HEAD_SIZE)
    even = [n for n in range(1, wanted + 1) if hidden % (2 * n) == 0]
    return max(even, default=1)


def _head_size(hidden: int, heads: int) -> int:
    if hidden % heads:
        raise ConfigError(
            f"'model.heads' is {heads}, which does not divide 'model.hidden' {hidden}; "
            f"try {_either(_near(heads, hidden))}, or set 'model.head_size'"
        )
    return int(hidden // heads)


def _different(settings: Any) -> dict[int, dict[str, Any]]:
    """Return what single layers have in place of the common parts, as fields of a shape."""
    found: dict[int, dict[str, Any]] = {}
    for index in range(settings.layers):
        if parts := settings.parts_at(index):
            found[index] = {FIELDS.get(setting, setting): name for setting, name in parts.items()}
            if "ffn" in parts and not settings.inner and "inner" not in parts:
                found[index]["inner"] = _inner(settings.hidden, parts["ffn"])
    return found


def _inner(hidden: int, ffn: str) -> int:
    """Return 4 D, or 8/3 D for gated parts, rounded up."""
    exact = int(hidden * find("ffn", ffn).ratio)
    return -(-exact // ROUND) * ROUND


def _near(number: int, whole: int) -> list[int]:
    """Return the divisors of a whole number next to a number: one below, one above."""
    divisors = [d for d in range(1, whole + 1) if whole % d == 0]
    below = [d for d in divisors if d < number][-1:]
    return below + [d for d in divisors if d > number][:1]


def _either(numbers: list[int]) -> str:
    return " or ".join(map(str, numbers))
