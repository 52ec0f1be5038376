"""Parts of a Transformer that cannot go together: one sentence each, which names both settings.

`models.build` asks here before it returns a shape, so that a mistake ends before anything is read. What a
part can do, it says itself: ``biases``, ``weighs``, ``has_heads``, ``lanes`` and so on.
"""

from __future__ import annotations

from typing import Any

from nextword.core.catalog import find
from nextword.core.errors import ConfigError

# Mixers that attend to whatever they are allowed to see, and those that can see both sides of a token.
PREFIXES = ("attention", "differential", "latent", "value-residual")
BOTH_SIDES = (*PREFIXES, "lightconv", "dynamicconv")


def refuse_impossible(settings: Any, head_size: int) -> None:
    """Raise an error for the first two settings that do not work together."""
    _check_position(settings, head_size)
    _check_joins(settings)
    _check_order(settings)
    _check_mixers(settings)
    _check_blocks(settings)
    _check_sphere(settings)
    _check_width(settings)
    _check_objective(settings)
    _check_endless(settings)


def _check_position(settings: Any, head_size: int) -> None:
    if settings.position == "rope" and head_size % 2:
        raise ConfigError(
            f"'model.position' is 'rope', which rotates pairs, but a head has {head_size} features; "
            f"change 'model.heads' or 'model.head_size' so that it is even, or choose another position"
        )


def _check_joins(settings: Any) -> None:
    if settings.connections in ("plain", "sphere") and settings.init in ("zero", "fixup"):
        raise ConfigError(
            f"'model.connections' is '{settings.connections}' and 'model.init' is '{settings.init}', so that "
            "the first block would return zeros only; set 'model.init' to 'gpt2'"
        )
    place, stack = find("norm_place", settings.norm_place), find("stack", settings.stack)
    if getattr(find("join", settings.connections), "lanes", 1) > 1:
        shown = f"'model.connections' is '{settings.connections}', which has several streams, but"
        if getattr(place, "norms_stream", False):
            raise ConfigError(
                f"{shown} 'model.norm_place' is '{settings.norm_place}', which norms a single one; set "
                "'model.norm_place' to 'pre'"
            )
        if not getattr(stack, "takes_lanes", True):
            raise ConfigError(
                f"{shown} 'model.stack' is '{settings.stack}', which works on a single one; set "
                "'model.stack' to 'plain' or 'shared'"
            )


def _check_blocks(settings: Any) -> None:
    """Refuse layers that a stack, a block or an init cannot be made of."""
    mixer, block = settings.mixer, settings.block
    if block == "weighted" and not getattr(find("mixer", mixer), "has_heads", True):
        raise ConfigError(
            f"'model.block' is 'weighted', whose branches are heads of attention, but 'model.mixer' is "
            f"'{mixer}'; set 'model.mixer' to 'attention', or 'model.block' to 'serial'"
        )
    is_shared = mixer == "value-residual" and settings.stack in ("shared", "universal")
    if getattr(find("mixer", mixer), "mixes_values", False) and (is_shared or block == "evolved"):
        other = "block" if block == "evolved" else "stack"
        raise ConfigError(
            f"'model.mixer' is '{mixer}', which mixes values of the first layer into those of others, "
            f"but 'model.{other}' is '{getattr(settings, other)}', where no other layer has such values; "
            "leave one of them out"
        )
    if block != "serial" and settings.order not in ("AF", "AXF"):
        raise ConfigError(
            f"'model.order' is '{settings.order}', but 'model.block' is '{block}', which has an order of its "
            "own; leave one of them out"
        )


def _check_sphere(settings: Any) -> None:
    if settings.init == "sphere" and settings.stack != "sphere":
        raise ConfigError(
            f"'model.init' is 'sphere', but 'model.stack' is '{settings.stack}', which does not keep its "
            "weights there; set 'model.stack' to 'sphere', or 'model.init' to 'gpt2'"
        )
    if settings.qk_norm == "sphere" and not getattr(find("mixer", settings.mixer), "norms_queries", True):
        raise ConfigError(
            f"'model.qk_norm' is 'sphere', but 'model.mixer' is '{settings.mixer}', which does not norm "
            "queries and keys; leave one of them out"
        )


def _check_order(settings: Any) -> None:
    orders = {
        settings.order,
        *(settings.parts_at(index).get("order", "") for index in range(settings.layers)),
    }
    if not settings.reads_source and any("X" in order for order in orders):
        raise ConfigError(
            "'model.order' has an X, attention to a source, but this model reads none; leave the X out"
        )


def _check_width(settings: Any) -> None:
    base = getattr(settings, "base_width", 0)
    if base and settings.scale != "linear":
        raise ConfigError(
            f"'model.base_width' is {base}, which scales attention by 1 / head_size, but 'model.scale' is "
            f"'{settings.scale}'; set 'model.scale' to 'linear'"
        )


def _check_endless(settings: Any) -> None:
    """Refuse to read on where what is remembered would grow, or a place has no meaning."""
    if not getattr(settings, "endless", False):
        return
    layers = range(settings.layers)
    for name in {settings.parts_at(index).get("mixer", settings.mixer) for index in layers}:
        if not getattr(find("mixer", name), "bounded", False):
            raise ConfigError(
                f"'model.endless' is true, but 'model.mixer' is '{name}', whose state grows with the text; "
                "set 'model.mixer' to 'window' or to a recurrent or linear one"
            )
    if not getattr(find("position", settings.position), "endless", False):
        raise ConfigError(
            f"'model.endless' is true, but 'model.position' is '{settings.position}', which ends with the "
            "context; set 'model.position' to 'rope' or 'none'"
        )
    if settings.stack not in ("plain", "shared", "transparent", "sphere"):
        raise ConfigError(
            f"'model.endless' is true, but 'model.stack' is '{settings.stack}', which works on whole "
            "windows; set 'model.stack' to 'plain'"
        )


def _check_mixers(settings: Any) -> None:
    """Refuse what no layer would use: positions or weights of scores, where no mixer has scores."""
    names = {settings.parts_at(index).get("mixer", settings.mixer) for index in range(settings.layers)}
    mixers = [find("mixer", name) for name in names]
    position, shown = find("position", settings.position), f"'model.mixer' is '{settings.mixer}'"
    adds, looks = (getattr(position, each, False) for each in ("biases", "looks"))
    if adds and not any(getattr(mixer, "adds_positions", True) for mixer in mixers):
        raise ConfigError(
            f"'model.position' is '{settings.position}', which is added to scores of attention, but {shown}, "
            "which has none to add it to; set 'model.position' to 'none' or 'rope'"
        )
    if looks and not any(getattr(mixer, "looks_at_distance", True) for mixer in mixers):
        raise ConfigError(
            f"'model.position' is '{settings.position}', which needs plain attention, but {shown}; set "
            "'model.position' to 't5-layers', or 'model.mixer' to 'attention'"
        )
    if adds and settings.mixer == "window" and settings.windowed.first:
        raise ConfigError(
            "'model.windowed.first' keeps the first tokens at a distance of their own, but 'model.position' "
            f"is '{settings.position}', which is added by true distances; set 'model.position' to 'rope'"
        )
    if settings.weighing != "softmax" and not any(getattr(mixer, "weighs", True) for mixer in mixers):
        raise ConfigError(
            f"'model.weighing' is '{settings.weighing}', which needs scores of attention, but {shown}; leave "
            "'model.weighing' out, or set 'model.mixer' to 'attention'"
        )


def _check_objective(settings: Any) -> None:
    """Refuse parts that look back only where a model sees both sides of a token."""
    name = getattr(settings, "objective", "causal")
    if name == "causal":
        return
    if settings.encoder_layers and name != "span":
        raise ConfigError(
            f"'model.encoder_layers' is {settings.encoder_layers}, but the objective '{name}' has no encoder "
            "beside the model; leave it out, or set model.objective=span"
        )
    looks = PREFIXES if name != "masked" and not settings.encoder_layers else BOTH_SIDES
    mixers = {settings.mixer} | {
        settings.parts_at(index).get("mixer", settings.mixer) for index in range(settings.layers)
    }
    for mixer in sorted(mixers - set(looks)):
        if ":" not in mixer:  # a part from outside knows itself
            raise ConfigError(
                f"'model.mixer' is '{mixer}', which looks back only, but the objective '{name}' needs one "
                f"that sees both sides of a token; choose one of: {', '.join(looks)}"
            )
    if settings.ahead:
        raise ConfigError(
            f"'model.ahead' is {settings.ahead}, further tokens that are predicted, but the objective is "
            f"'{name}', which predicts what is hidden; leave one of them out"
        )
    if settings.stack in ("hourglass", "funnel"):
        raise ConfigError(
            f"'model.stack' is '{settings.stack}', which contradicts the objective '{name}': it has no "
            "feature of every token that saw both sides; set model.stack=plain"
        )
