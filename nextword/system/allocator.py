"""Keep large arrays in the process, or return them: by default glibc returns them at every step.

Training allocates the same large tensors again and again. glibc maps and unmaps each one separately, and
the page faults cost up to a third of the time. Three allocator settings prevent that.
"""

from __future__ import annotations

import sys

# Names and numbers of <malloc.h>.
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3
_SETTINGS = (
    (M_MMAP_THRESHOLD, 1 << 30),  # only arrays above 1 GiB are mapped separately
    (M_TRIM_THRESHOLD, (1 << 31) - 1),  # freed memory stays with the process, up to 2 GiB
    (M_TOP_PAD, 256 << 20),  # grow by 256 MiB at a time; untouched memory costs nothing
)


def keep_big_arrays() -> bool:
    """Tell glibc to keep freed memory; return whether it agreed (False on other systems).

    Only programs call this, before they load numpy or torch; a library must not decide it for its importers.
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


def return_free_memory() -> None:
    """Return memory that was freed to the system: glibc keeps it otherwise, and it counts as ours."""
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc
    if trim is not None:
        trim(0)
