"""Autocast, where there is any: tensors of the device "meta", which have sizes only, know none."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor


def is_autocast(x: Tensor) -> bool:
    """Tell whether products of this tensor are computed in another type."""
    return x.device.type != "meta" and torch.is_autocast_enabled(x.device.type)


def exact(x: Tensor) -> AbstractContextManager[Any]:
    """Compute products in the type of their inputs, while it lasts."""
    return torch.autocast(x.device.type, enabled=False) if is_autocast(x) else nullcontext()
