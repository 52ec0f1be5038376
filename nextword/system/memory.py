"""Memory that is not there, as one sentence: torch says it in a paragraph about its allocator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from nextword.core.errors import TrainingError

_SIGNS = ("not enough memory", "can't allocate memory", "out of memory", "bad_alloc")


@contextmanager
def enough_memory(doing: str) -> Iterator[None]:
    """Within the block an allocation that the system refuses is a `TrainingError`."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and not any(sign in str(error) for sign in _SIGNS):
            raise
        raise TrainingError(
            f"the memory is not enough to {doing}; set a smaller train.batch, train.length or model.hidden "
            "(--estimate says what a training takes)"
        ) from error


def serialized(tensors: Mapping[str, Any]) -> bytes:
    """Tensors as a safetensors file; without memory for it this is a MemoryError, as elsewhere in Python."""
    from safetensors.torch import save

    try:
        return save(dict(tensors))
    except BaseException as error:
        if type(error).__name__ == "PanicException":  # what the library's own language throws
            raise MemoryError("there is no memory for a copy of the state") from error
        raise
