"""Texts cut into blocks anywhere, their ids, and files split and joined again as the compressor does it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from nextword.core.contracts import Block, Encoded

BLOCKS = [Block(b"the cat sat\nthe dog\n", True)]


def cut(data: bytes, places: list[int]) -> list[Block]:
    """The data as blocks that end anywhere."""
    ends = sorted({min(place, len(data)) for place in places} | {len(data)})
    return [Block(data[a:b], b == len(data)) for a, b in zip([0, *ends[:-1]], ends, strict=True)]


def all_ids(parts: Iterable[Encoded]) -> list[int]:
    """The ids of all parts in one list."""
    return [int(i) for part in parts for i in part.ids]


def join(tokenizer: Any, data: bytes) -> tuple[bytes, float, list[int]]:
    """Split a file and join it again, as the compressor does; also the cost of the side symbols."""
    joiner, out, nats, ids = tokenizer.joiner(), b"", 0.0, []
    joiner.begin()
    for index, symbols in tokenizer.split(data):
        ids.append(index)
        asking, waiting = joiner.push(index), list(symbols)
        try:
            expected = next(asking)
            while True:
                p, symbol = waiting.pop(0)
                assert np.array_equal(p, expected)
                assert p.dtype == np.float64
                assert math.isclose(p.sum(), 1.0, abs_tol=1e-9)
                nats -= math.log(p[symbol])
                expected = asking.send(symbol)
        except StopIteration as stop:
            out += stop.value
        assert not waiting
    assert len(out) - len(data) in (0, 1)
    return out[: len(data)], nats, ids
