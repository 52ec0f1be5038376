"""The table of Narang et al. 2021 at its own size: settings and counts of every row, without building
anything.

[MAUSAM "Do Transformer Modifications Transfer Across Implementations and Applications?"]
"""

from __future__ import annotations

from typing import Any

from nextword.blocks.cost import Cost
from nextword.models.encoder_decoder import EncoderDecoderSettings, count
from nextword.models.modifications import (
    FULL,
    PARTS,
    ROWS,
    SOURCE,
    TABLE,
    TARGET,
    VOCABULARY,
    Modification,
)


def settings_of(row: Modification, size: dict[str, Any] | None = None) -> EncoderDecoderSettings:
    """Return the encoder-decoder of a row as it was measured; ``size`` changes sizes of both stacks."""
    base, size = PARTS | FULL | dict(row.both), size or {}
    encoder, decoder = base | dict(row.encoder) | size, base | dict(row.decoder) | size
    return EncoderDecoderSettings(encoder=encoder, decoder=decoder, **row.whole)


def count_of(row: Modification) -> Cost:
    """Count the weights of a row, and the products of a forward pass over one batch of the table."""
    return count(settings_of(row), VOCABULARY, ROWS, SOURCE, TARGET)


def listed() -> list[dict[str, Any]]:
    """List all modifications: name, paper, row of the table, and its costs, also relative to vanilla."""
    vanilla = count_of(TABLE[0])
    found = []
    for each in TABLE:
        own = count_of(each)
        found.append(
            {
                "name": each.name,
                "paper": each.paper,
                "row": each.row,
                "parameters": own.weights,
                "operations": own.products,
                "parameters_relative": round(own.weights / vanilla.weights, 4),
                "operations_relative": round(own.products / vanilla.products, 4),
            }
        )
    return found
