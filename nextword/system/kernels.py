"""How many compiled products oneDNN keeps: it compiles one for every shape, half a megabyte each.

A server steps batches of any number of rows and reads prompts of any length, so it meets thousands of shapes.
By default the last 1,024 are kept, once by oneDNN and once more by torch for each thread: hundreds of
megabytes that fill over minutes. Compiling one again takes less than a millisecond.
"""

from __future__ import annotations

import os

KEPT = 64  # shapes: five products of a Transformer's step, for a dozen numbers of rows
_CAPACITIES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")  # oneDNN's variable, and torch's


def keep_few() -> None:
    """Bound what is kept; call it before torch is loaded. Values set by the user stay."""
    for name in _CAPACITIES:
        os.environ.setdefault(name, str(KEPT))
