"""Products with a matrix that is kept in panels, compiled for processors with 16 registers of 8 numbers.

y = x Wᵀ + b of float32. A panel holds 16 columns of Wᵀ side by side; six rows of x times a panel are twelve
sums, which stay in registers while both are read once; the next panel is fetched meanwhile. Every sum is made
in one order, whatever the number of rows: a row's product has the same bits in every batch. Arrays are given
by their addresses, since a step has many products and an array takes longer to hand over than a number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

Array = npt.NDArray[Any]
_code: Any = cgutils
PANEL = 16
"""Columns of a panel."""
_LANES = 8  # numbers of a register
_TILE = 6  # rows whose sums fit into registers
_DEPTH = 256  # numbers of a column of a panel that stay in the nearest cache: 16 KB of a panel
_ROWS = 192  # rows of x that stay in the second: 192 KB
_SIZE = 4  # bytes of a number


def _tile(rows: int) -> Any:
    """Return code that adds the products of some rows with a part of a panel to what they begin with."""

    def typed(
        context: Any, x: Any, stride: Any, panel: Any, depth: Any, begin: Any, stride_begin: Any,
        y: Any, stride_y: Any, ahead: Any, pace: Any,
    ) -> Any:  # fmt: skip
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            x, stride, panel, depth, begin, stride_begin, y, stride_y, ahead, pace = arguments
            single, byte, word = ir.FloatType(), ir.IntType(8).as_pointer(), ir.IntType(32)
            vector = ir.VectorType(single, _LANES)
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
            return context.get_dummy_value()

        return types.void(*[types.intp] * 10), generate

    return intrinsic(typed)


def _copied(context: Any, source: Any, target: Any, count: Any) -> Any:
    """Copy some numbers from one address to another."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, target, count = arguments
        pointer = ir.FloatType().as_pointer()
        source, target = builder.inttoptr(source, pointer), builder.inttoptr(target, pointer)
        _code.memcpy(builder, target, source, count)
        return context.get_dummy_value()

    return types.void(*[types.intp] * 3), generate


_tile1, _tile2, _tile3, _tile4, _tile5, _tile6 = (_tile(rows) for rows in range(1, _TILE + 1))
_copy: Any = intrinsic(_copied)


@njit(cache=True, nogil=True)
def _add(
    rows: int, x: int, stride: int, panel: int, depth: int, begin: int, stride_begin: int, y: int,
    stride_y: int, ahead: int, pace: int,
) -> None:  # fmt: skip
    """Multiply one tile of up to six rows."""
    if rows == 6:
        _tile6(x, stride, panel, depth, begin, stride_begin, y, stride_y, ahead, pace)
    elif rows == 5:
        _tile5(x, stride, panel, depth, begin, stride_begin, y, stride_y, ahead, pace)
    elif rows == 4:
        _tile4(x, stride, panel, depth, begin, stride_begin, y, stride_y, ahead, pace)
    elif rows == 3:
        _tile3(x, stride, panel, depth, begin, stride_begin, y, stride_y, ahead, pace)
    elif rows == 2:
        _tile2(x, stride, panel, depth, begin, stride_begin, y, stride_y, ahead, pace)
    else:
        _tile1(x, stride, panel, depth, begin, stride_begin, y, stride_y, ahead, pace)


@njit("void(intp, intp, intp, intp, intp, intp, intp)", cache=True, nogil=True)
def multiply(x: int, N: int, depth: int, panels: int, bias: int, y: int, width: int) -> None:
    """Write y = x Wᵀ + b: at ``x`` are N rows of ``depth`` numbers, at ``y`` rows of ``width``.

    ``panels`` and ``bias``: what `in_panels` returns. All rows are contiguous.
    """
    edge_RC = np.empty((_ROWS, PANEL), np.float32)  # the last panel may be narrower than others
    for top in range(0, N, _ROWS):
        rows = min(_ROWS, N - top)
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
                        rows * (tile + 1) // tiles - row, x + ((top + row) * depth + first) * _SIZE, depth,
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
