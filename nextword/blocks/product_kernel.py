"""Products with a matrix that is kept in panels, compiled for the registers of this processor.

y = x Wᵀ + b of float32. A panel holds as many columns of Wᵀ side by side as fill two registers. With AVX2,
which has 16 registers of 8 numbers, six rows of x times a panel are twelve sums; with AVX-512, which has 32
of 16 numbers, twelve rows are 24 sums. They stay in registers while both are read once; the next panel is
fetched meanwhile. Every sum is made in one order, whatever the number of rows: a row's product has the same
bits in every batch. Arrays are given by their addresses, since a step has many products and an array takes
longer to hand over than a number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from nextword.system.compiled import compiled

Array = npt.NDArray[Any]
_code: Any = cgutils
_IS_WIDE = bool(get_host_cpu_features().get("avx512f"))
_LANES = 16 if _IS_WIDE else 8  # numbers of a register
_TILE = 12 if _IS_WIDE else 6  # rows whose sums fit into registers
PANEL = 2 * _LANES
"""Columns of a panel."""
_DEPTH = 4096 // PANEL  # numbers of a column of a panel that stay in the nearest cache: 16 KB of a panel
_ROWS = 192  # rows of x that stay in the second: 192 KB
_SIZE = 4  # bytes of a number
_SHARED = 1024  # numbers: rows at a distance of 4 KB have the same few places in the nearest cache


def _tile(
    builder: Any, rows: int, x: Any, stride: Any, panel: Any, depth: Any, begin: Any, stride_begin: Any,
    y: Any, stride_y: Any, ahead: Any, pace: Any,
) -> None:  # fmt: skip
    """Write code that adds the products of some rows with a part of a panel to what they begin with."""
    single, byte, word = ir.FloatType(), ir.IntType(8).as_pointer(), ir.IntType(32)
    vector, nothing = ir.VectorType(single, _LANES), ir.FunctionType(ir.VoidType(), [])
    kind = ir.FunctionType(vector, [vector] * 3)
    fma = _code.get_or_insert_function(builder.module, kind, f"llvm.fma.v{_LANES}f32")
    kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
    fetch = _code.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    how = [ir.Constant(word, number) for number in (0, 2, 1)]  # to be read, second cache, data
    steps = [ir.Constant(depth.type, _LANES * v) for v in range(PANEL // _LANES)]

    def wide(pointer: Any, offset: Any) -> Any:
        return builder.bitcast(builder.gep(pointer, [offset]), vector.as_pointer())

    def spread(number: Any) -> Any:
        one = builder.insert_element(ir.Constant(vector, None), number, ir.Constant(word, 0))
        return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(word, _LANES), None))

    def of_rows(address: Any, stride: Any) -> list[Any]:
        found = [builder.inttoptr(address, single.as_pointer())]
        for _ in range(rows - 1):
            found.append(builder.gep(found[-1], [stride]))
        return found

    x_rows, y_rows = of_rows(x, stride), of_rows(y, stride_y)
    panel = builder.inttoptr(panel, single.as_pointer())
    ahead = builder.inttoptr(ahead, single.as_pointer())
    sums = []
    for row in of_rows(begin, stride_begin):
        for step in steps:
            sums.append(_code.alloca_once(builder, vector))
            builder.store(builder.load(wide(row, step), align=_SIZE), sums[-1])
    with _code.for_range(builder, depth) as loop:
        builder.asm(nothing, "", "", [], True)  # unrolled, the loop would need more registers than there are
        later = builder.gep(ahead, [builder.mul(loop.index, pace)])
        builder.call(fetch, [builder.bitcast(later, byte), *how])
        at = builder.mul(loop.index, ir.Constant(depth.type, PANEL))
        columns = [builder.load(wide(panel, builder.add(at, step)), align=_SIZE) for step in steps]
        places = iter(sums)
        for row in x_rows:
            number = spread(builder.load(builder.gep(row, [loop.index])))
            for column in columns:
                place = next(places)
                builder.store(builder.call(fma, [number, column, builder.load(place)]), place)
    places = iter(sums)
    for row in y_rows:
        for step in steps:
            builder.store(builder.load(next(places)), wide(row, step), align=_SIZE)


def _added(
    context: Any, rows: Any, x: Any, stride: Any, panel: Any, depth: Any, begin: Any, stride_begin: Any,
    y: Any, stride_y: Any, ahead: Any, pace: Any,
) -> Any:  # fmt: skip
    """Multiply one tile, which has code of its own for each number of rows."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows, *others = arguments
        after = builder.append_basic_block("after")
        choice = builder.switch(rows, after)
        for many in range(1, _TILE + 1):
            block = builder.append_basic_block(f"rows{many}")
            choice.add_case(ir.Constant(rows.type, many), block)
            builder.position_at_end(block)
            _tile(builder, many, *others)
            builder.branch(after)
        builder.position_at_end(after)
        return context.get_dummy_value()

    return types.void(*[types.intp] * 11), generate


def _copied(context: Any, source: Any, target: Any, count: Any) -> Any:
    """Copy some numbers from one address to another."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, target, count = arguments
        pointer = ir.FloatType().as_pointer()
        source, target = builder.inttoptr(source, pointer), builder.inttoptr(target, pointer)
        _code.memcpy(builder, target, source, count)
        return context.get_dummy_value()

    return types.void(*[types.intp] * 3), generate


_add: Any = intrinsic(_added)
_copy: Any = intrinsic(_copied)


@compiled("void(intp, intp, intp, intp, intp, intp, intp)", nogil=True)
def multiply(x: int, N: int, depth: int, panels: int, bias: int, y: int, width: int) -> None:
    """Write y = x Wᵀ + b: at ``x`` are N rows of ``depth`` numbers, at ``y`` rows of ``width``.

    ``panels`` and ``bias``: what `in_panels` returns. All rows are contiguous.
    """
    edge_RC = np.empty((_ROWS, PANEL), np.float32)  # the last panel may be narrower than others
    is_apart = depth % _SHARED != 0
    stride_x = depth if is_apart else depth + PANEL
    apart_RI = np.empty((0 if is_apart else min(N, _ROWS), stride_x), np.float32)
    for top in range(0, N, _ROWS):
        rows, own_x = min(_ROWS, N - top), x + top * depth * _SIZE
        if not is_apart:
            for row in range(rows):
                _copy(own_x + row * depth * _SIZE, apart_RI.ctypes.data + row * stride_x * _SIZE, depth)
            own_x = apart_RI.ctypes.data
        tiles = (rows + _TILE - 1) // _TILE
        pace = max(1, PANEL // tiles)  # tiles share the fetching of the next panel
        for left in range(0, width, PANEL):
            is_whole = left + PANEL <= width
            if is_whole:
                out, stride = y + (top * width + left) * _SIZE, width
            else:
                out, stride = edge_RC.ctypes.data, PANEL
            for first in range(0, depth, _DEPTH):
                deep = min(_DEPTH, depth - first)
                panel = panels + (left * depth + first * PANEL) * _SIZE
                for tile in range(tiles):  # of nearly equal numbers of rows
                    row = rows * tile // tiles
                    own = out + row * stride * _SIZE
                    begin, stride_begin = (bias + left * _SIZE, 0) if first == 0 else (own, stride)
                    _add(
                        rows * (tile + 1) // tiles - row, own_x + (row * stride_x + first) * _SIZE, stride_x,
                        panel, deep, begin, stride_begin, own, stride,
                        panel + deep * (PANEL + tile * pace) * _SIZE, pace,
                    )  # fmt: skip
            if not is_whole:
                for row in range(rows):
                    target = y + ((top + row) * width + left) * _SIZE
                    _copy(out + row * stride * _SIZE, target, width - left)


def in_panels(weight_OI: Array, bias_O: Array | None) -> tuple[Array, Array]:
    """Return a matrix in panels and its bias; columns past the last are 0."""
    width, depth = weight_OI.shape
    whole = -(-width // PANEL)
    padded_OI, padded_O = np.zeros((whole * PANEL, depth), np.float32), np.zeros(whole * PANEL, np.float32)
    padded_OI[:width] = weight_OI
    if bias_O is not None:
        padded_O[:width] = bias_O
    return np.ascontiguousarray(padded_OI.reshape(whole, PANEL, depth).transpose(0, 2, 1)), padded_O
