"""Arrays of a model as ``.npy`` files of its run: read back only with the type and shape they must have."""

from __future__ import annotations

from typing import Any

import numpy as np

from nextword.core.errors import DamagedError
from nextword.store.reading import RunFolder

Array = np.ndarray[Any, np.dtype[Any]]


def load_array(folder: RunFolder, name: str, kind: Any, shape: tuple[int | None, ...]) -> Array:
    """Memory-map an array; None in ``shape`` is any length. Anything unexpected is a `DamagedError`."""
    path = folder.file(name)
    try:
        found: Array = np.load(path, mmap_mode="c", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise DamagedError(f"{path} is not a valid array file ({error}); train the run again") from error
    fits = len(found.shape) == len(shape) and all(
        want is None or have == want for have, want in zip(found.shape, shape, strict=True)
    )
    if found.dtype != np.dtype(kind) or not fits:
        wanted = " x ".join("any" if each is None else f"{each:,}" for each in shape)
        raise DamagedError(
            f"{path} holds {found.dtype} of shape {found.shape}, expected {np.dtype(kind)} of shape "
            f"{wanted}; train the run again"
        )
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise DamagedError(f"{path} holds numbers that are NaN or infinite; train the run again")
    return np.asarray(found)
