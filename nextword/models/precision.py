"""The precision of products (bf16 or fp32) and the device: set by the user, else whatever is faster here.

What works and what is faster is measured once for the machine (`system.processor`), so that two training runs
on it choose alike; the choice is then a setting of the run. Sums, softmax and losses stay in fp32: a bf16
softmax misses 1 by a thousandth.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import torch
from torch import nn

from nextword.blocks.recurrent import LSTM
from nextword.core.catalog import find
from nextword.core.errors import ConfigError
from nextword.core.task import Ranks
from nextword.models.network import Network, device_of
from nextword.system import processor

_WIDTH = 128  # of a network without a declared width
DEVICES = ("auto", "cpu", "cuda", "mps")


def find_device(name: str) -> torch.device:
    """Return the device of this name; auto takes the fastest kind there is."""
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return torch.device(next(kind for kind in ("cuda", "mps", "cpu") if there[kind]))
    if not there.get(name, False):
        usable = ", ".join(kind for kind, is_there in there.items() if is_there)
        raise ConfigError(f"'--device {name}' is not available on this machine; use auto or one of: {usable}")
    return torch.device(name)


def choose(precision: str, network: nn.Module, ranks: Ranks) -> str:
    """Return the type of products by name, "fp32" or "bf16"; auto: the faster one, the same on all ranks."""
    if precision != "auto":
        if device_of(network).type == "cpu":
            _check(precision)
        return precision
    is_faster = faster_type(network) == "bf16"
    return "bf16" if all(each for (each,) in ranks.all_gather(float(is_faster))) else "fp32"


def faster_type(network: nn.Module) -> str:
    """Return the type with which this machine computes such a network faster."""
    device = device_of(network)
    if device.type == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported() else "fp32"
    if device.type != "cpu":
        return "fp32"
    found = processor.find_out()
    _check("fp32")
    kind = "lstm" if any(isinstance(part, LSTM) for part in network.modules()) else "linear"
    return (
        "fp32"
        if found.refusal
        else found.faster(kind, network.width if isinstance(network, Network) else _WIDTH)
    )


def dtype_of(name: str) -> torch.dtype:
    """Return torch's type for a name returned by `choose`."""
    dtype: torch.dtype = find("precision", name)
    return dtype


def _check(name: str) -> None:
    """Refuse products that would kill the process; slow ones are the user's choice."""
    found = processor.find_out()
    if not found.has_float32:
        raise ConfigError(f"networks cannot be used here: {found.why}; try another version of torch")
    if name == "bf16" and found.bf16 != "missing" and found.refusal:
        raise ConfigError(f"'train.precision' is bf16, but {found.refusal}; set it to auto or fp32")


def products_in(dtype: torch.dtype, device: torch.device) -> Callable[[], AbstractContextManager[None]]:
    """Return a context manager within which products are of this type."""
    if dtype == torch.float32:
        return nullcontext
    return partial(torch.autocast, device.type, dtype)
