"""The weights of a network as a file of its run: safetensors, each tensor once, never a pickle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from nextword.core.errors import DamagedError
from nextword.store.reading import RunFolder
from nextword.store.writing import NewRun

WEIGHTS = "model.safetensors"
Built = TypeVar("Built", bound=nn.Module)


def save_weights(network: nn.Module, folder: NewRun) -> None:
    """Save all weights and buffers in one file without pickle."""
    from safetensors.torch import save

    folder.write(WEIGHTS, save(distinct(network.state_dict())))


def load_weights(build: Callable[[], Built], folder: RunFolder) -> Built:
    """Build a network and fill in its weights; weights that do not fit mean a damaged run."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    with Unfilled():
        network = build()
    path = folder.file(WEIGHTS)
    try:
        _fill(network, load_file(path))
    except (RuntimeError, SafetensorError) as error:
        first = str(error).split("\n")[-1].strip()
        raise DamagedError(
            f"{path} does not fit the settings of its run ({first}); train the run again"
        ) from error
    _check_finite(network, path)
    return network


class Unfilled(TorchFunctionMode):
    """Skip random initial weights, which would be overwritten from a file at once."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Skip random initialization; call everything else as usual."""
        name = getattr(func, "__name__", "")
        if name in ("normal_", "uniform_"):
            return args[0] if args else kwargs["tensor"]
        if name == "linalg_qr":  # of orthogonal weights
            return args[0], args[0].new_zeros(args[0].shape[1], args[0].shape[1])
        return func(*args, **(kwargs or {}))


def distinct(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return every tensor once: what is shared (tied embeddings) has its first name."""
    found: dict[tuple[int, tuple[int, ...]], str] = {}
    for name, tensor in tensors.items():
        place = tensor.data_ptr() if tensor.numel() else id(tensor)
        found.setdefault((place, tuple(tensor.shape)), name)
    return {name: tensors[name].detach().cpu().contiguous() for name in found.values()}


def _check_finite(network: nn.Module, path: Path) -> None:
    """Raise a `DamagedError` for weights that are NaN or infinite: every score would be NaN."""
    for name, weight in network.named_parameters():
        if not torch.isfinite(weight).all():
            count = int((~torch.isfinite(weight)).sum())
            raise DamagedError(
                f"{path}: {count:,} of the {weight.numel():,} numbers of '{name}' are NaN or infinite, so "
                "the model cannot score anything; train the run again, with a lower train.rate if it diverged"
            )


def _fill(network: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Load the tensors of a file into a network; what is missing must be shared with one that is there."""
    expected = network.state_dict()
    missing, unexpected = network.load_state_dict(tensors, strict=False)
    lost = [name for name in missing if name in distinct(expected)]
    if lost or unexpected:
        raise RuntimeError(f"'{(lost + unexpected)[0]}' is {'missing' if lost else 'unexpected'}")
