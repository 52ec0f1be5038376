"""Report running out of memory in one sentence: torch prints a paragraph about its allocator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from nextword.core.errors import TrainingError

_SIGNS = ("not enough memory", "can't allocate memory", "out of memory", "bad_alloc")


@contextmanager
def enough_memory(doing: str) -> Iterator[None]:
    """Turn an allocation that fails within the block into a `TrainingError`."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and not any(sign in str(error) for sign in _SIGNS):
            raise
        raise TrainingError(
            f"out of memory while trying to {doing}; set a smaller train.batch, train.length or model.hidden "
            "(--estimate shows how much a training run needs)"
        ) from error


def serialized(tensors: Mapping[str, Any]) -> bytes:
    """Serialize tensors as a safetensors file; running out of memory is a MemoryError, as usual in Python."""
    from safetensors.torch import save

    try:
        return save(dict(tensors))
    except BaseException as error:
        if type(error).__name__ == "PanicException":  # a panic of the Rust library
            raise MemoryError("out of memory while copying the state") from error
        raise
