"""Functions that are compiled: by numba, once for each machine, since what was compiled is kept on disk.

Where nothing can be kept (the package on a read-only disk and no folder of the user's that can be written,
as in many containers), every process compiles them again, which takes seconds. numba alone would refuse to
work there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

_NOWHERE = "no locator available"  # numba's words for a cache that has no place


def compiled(*signature: str, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function when it is first called, with a signature now; arguments as of ``numba.njit``."""
    njit: Any = numba.njit  # its overloads take no **options
    return lambda function: _kept(lambda **keeping: njit(*signature, **options, **keeping)(function))


def compiled_callback(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function that C calls by its address, now."""
    return lambda function: _kept(lambda **keeping: numba.cfunc(signature, **keeping)(function))


def _kept(compile_: Callable[..., Any]) -> Any:
    """Compile and keep the result, or without a place for it, do not keep it."""
    try:
        return compile_(cache=True)
    except RuntimeError as error:
        if _NOWHERE not in str(error):
            raise
        return compile_()
