"""Keep big arrays in the process: glibc gives them back to the kernel at every step otherwise.

Training asks for the same large tensors again and again. glibc maps each one afresh and unmaps it afterwards,
and the page faults cost up to a third of the time. Three settings of its allocator end that.
"""

from __future__ import annotations

import sys

# Names and numbers of <malloc.h>.
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3
_SETTINGS = (
    (M_MMAP_THRESHOLD, 1 << 30),  # only single arrays above 1 GiB are mapped on their own
    (M_TRIM_THRESHOLD, (1 << 31) - 1),  # what is free stays with the process, up to 2 GiB
    (M_TOP_PAD, 256 << 20),  # grow by 256 MiB at a time; memory that is not touched costs nothing
)


def keep_big_arrays() -> bool:
    """Tell glibc to keep freed memory; whether it agreed. Elsewhere nothing is done.

    For programs, before they load numpy or torch; a library must not decide this for whoever imports it.
    """
    import ctypes
    import platform

    if sys.platform != "linux" or platform.libc_ver()[0] != "glibc":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    mallopt.argtypes, mallopt.restype = (ctypes.c_int, ctypes.c_int), ctypes.c_int
    return all(mallopt(name, value) == 1 for name, value in _SETTINGS)
