"""`BaseScore` as a function that Python calls without anything in between, as it calls those written in C.

A call of a compiled kernel by numba takes longer than reading a word: it unpacks a tuple and converts every
argument. Here compiled code gets the arguments as Python has them (METH_FASTCALL), and asks Python's C
interface for the few numbers it needs. What it cannot do at once, it leaves to `steps.Steps.score`, which
gives the same results; a test compares the two.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
from numba import carray, types  # type: ignore[attr-defined]

from nextword.formats import walk_kernels as kernels
from nextword.formats.steps import Steps
from nextword.system.compiled import compiled, compiled_callback
from nextword.text.kernels import word_at

_OBJECT = types.intp  # the address of a Python object; 0: there was an error


def _python(name, result, *args):
    return types.ExternalFunction(name, result(*args))


_float = _python("PyFloat_FromDouble", _OBJECT, types.float64)
_is_instance = _python("PyObject_IsInstance", types.intc, _OBJECT, _OBJECT)
_item = _python("PyTuple_GetItem", _OBJECT, _OBJECT, types.intp)
_address = _python("PyLong_AsVoidPtr", types.intp, _OBJECT)
_bytes = _python("PyByteArray_AsString", types.intp, _OBJECT)
_size = _python("PyByteArray_Size", types.intp, _OBJECT)
_resize = _python("PyByteArray_Resize", types.intc, _OBJECT, types.intp)
_utf8 = _python("PyUnicode_AsUTF8AndSize", types.intp, _OBJECT, types.intp)
_clear = _python("PyErr_Clear", types.void)
_call = _python("PyObject_Vectorcall", _OBJECT, _OBJECT, types.intp, types.intp, _OBJECT)


@compiled(inline="always")
def _number(array, place):
    """Return a number of an array, given its address."""
    return np.int64(kernels.load_uint64(array, place))


@compiled(inline="always")
def _row(address):
    return carray(kernels.pointer(address), (kernels.ANY,), np.int64)


@compiled(inline="always")
def _read(at, before, word, after):
    """Read a word; return log10 p, or NaN where something else must be done first."""
    head = _row(at)
    kind, size = head[kernels.KIND], head[kernels.BYTES]
    if _is_instance(before, kind) != 1 or _is_instance(after, kind) != 1 or _size(before) != size:
        return np.nan
    context = _row(_bytes(before))
    if context[kernels.MAKER] != head[kernels.NUMBER]:
        return np.nan
    text = _utf8(word, at + 8 * kernels.LETTERS)
    if text == 0 or (_size(after) != size and _resize(after, size) != 0):
        _clear()
        return np.nan
    letters = carray(kernels.pointer(text), (kernels.ANY,), np.uint8)
    index = word_at(letters, np.uint64(head[kernels.LETTERS]), kernels.vocabulary(head))
    return kernels.step(head, context, index, _row(_bytes(after)))


@compiled_callback(_OBJECT(_OBJECT, types.intp, types.intp, _OBJECT))
def _base_score(me, args, count, names):
    """Be a function with positional arguments; ``me`` is what `function` makes."""
    if count == 3 and names == 0:
        head = _number(_address(_item(me, 0)), 0)
        log10 = _read(head, _number(args, 0), _number(args, 1), _number(args, 2))
        if log10 == log10:
            return _float(log10)
    return _call(_item(me, 1), args, count, names)


class _Definition(ctypes.Structure):
    """Python's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("about", ctypes.c_char_p),
    )


_FAST_WITH_NAMES = 0x80 | 0x02  # METH_FASTCALL | METH_KEYWORDS
_DEFINITION = _Definition(
    b"BaseScore",
    _base_score.address,
    _FAST_WITH_NAMES,
    b"BaseScore(in_state, word, out_state)\n--\n\nReturn log10 p of a word after a state.",
)
_new = ctypes.pythonapi.PyCFunction_NewEx
_new.restype, _new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object, ctypes.py_object)


def function(steps: Steps) -> Callable[..., float]:
    """Return `Steps.score` of a model whose compiled code has taken over, as a compiled function."""
    me = (steps.place.ctypes.data, steps.score)  # what must live as long as the function
    made: Callable[..., float] = _new(ctypes.addressof(_DEFINITION), me, "nextword.kenlm")
    return made
