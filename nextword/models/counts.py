"""Parameters and operations of a Transformer language model by formula: from settings to integers.

Nothing is built, so that a model of any size is counted at once. Every part has its formula beside its code
(``cost``); a part from outside that has none is counted by building it without memory.
"""

from __future__ import annotations

from typing import Any

from nextword.blocks.ahead import Ahead
from nextword.blocks.cost import Cost, Load, weights
from nextword.core.catalog import find
from nextword.models.build import shape_of


def count(settings: Any, vocab_size: int, rows: int = 1, length: int = 0) -> Cost:
    """Count the weights, and the products of a forward pass over rows of a length; 0: the context."""
    shape = shape_of(settings)
    load = Load(rows, length or shape.context)
    embedding, head = find("embedding", settings.embedding_kind), find("head", settings.head)
    of_embedding, of_head = own_options(embedding, settings), own_options(head, settings)
    words = embedding.cost(vocab_size, shape.width, load.tokens, of_embedding)
    if settings.tied:
        out = embedding.tied_cost(head, shape.width, vocab_size, load.tokens, of_head, of_embedding)
    else:
        out = head.cost(shape.width, vocab_size, load.tokens, False, of_head)
    is_biased = settings.head_bias and not (settings.tied and settings.embedding_kind == "adaptive")
    bias = weights(vocab_size if is_biased and settings.head != "adaptive" else 0)
    position = find("position", shape.position).cost(shape)
    ahead = Ahead.cost(shape).times(getattr(settings, "ahead", 0))
    total: Cost = words + out + bias + position + ahead + find("stack", shape.stack).cost(shape, load)
    return total


def own_options(kind: Any, settings: Any) -> Any:
    """Return the options of a part, if it has any."""
    own = getattr(kind, "options", None)
    return None if own is None else next(each for each in settings.option_groups() if isinstance(each, own))
