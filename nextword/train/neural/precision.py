"""Where products are computed in bf16, and on which device: decided by settings and flags, never measured.

Sums, softmax and losses stay in fp32: a bf16 softmax misses 1 by a thousandth.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import torch

from nextword.core.errors import ConfigError

DEVICES = ("auto", "cpu", "cuda", "mps")


def find_device(name: str) -> torch.device:
    """The device of this name; auto takes the fastest kind there is."""
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return torch.device(next(kind for kind in ("cuda", "mps", "cpu") if there[kind]))
    if not there.get(name, False):
        usable = ", ".join(kind for kind, is_there in there.items() if is_there)
        raise ConfigError(f"'--device {name}' is not to be had on this machine; use auto or one of: {usable}")
    return torch.device(name)


def choose_type(precision: str, device: torch.device) -> torch.dtype:
    """The type of products: bf16 if asked for, or where the processor multiplies it natively."""
    if precision == "auto":
        precision = "bf16" if has_bf16(device) else "fp32"
    return {"fp32": torch.float32, "bf16": torch.bfloat16}[precision]


def has_bf16(device: torch.device) -> bool:
    """Whether bf16 products are native here; emulated ones are a hundred times slower."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    return device.type == "cpu" and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def products_in(dtype: torch.dtype, device: torch.device) -> Callable[[], AbstractContextManager[None]]:
    """Makes the block within which products are of this type."""
    if dtype == torch.float32:
        return nullcontext
    return partial(torch.autocast, device.type, dtype)
