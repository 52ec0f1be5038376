"""A neural family as training and loading see it: settings, a network to build, one file of weights.

Training is the same for all (`training`): the families differ only in their networks. The file is in the
format safetensors, with each tensor once, never a pickle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from nextword.blocks.clusters import ClusterSettings
from nextword.blocks.cost import Cost
from nextword.blocks.embeddings import FactorSettings
from nextword.blocks.softmaxes import SoftmaxesSettings
from nextword.core.contracts import LanguageModel, NetworkModel, Tokenizer
from nextword.core.errors import DamagedError
from nextword.core.settings import ComposedSettings, Slot
from nextword.models.ladders import ladder
from nextword.models.network import Network
from nextword.models.training import NeuralTrainSettings
from nextword.store.reading import RunFolder
from nextword.store.writing import NewRun

WEIGHTS = "model.safetensors"
Built = TypeVar("Built", bound=nn.Module)


class NeuralSettings(ComposedSettings):
    """What every neural family has; each adds its own."""

    carry: bool = Field(True, description="the state is carried from line to line within a document")
    head: Slot["head"] = Field("softmax", description="output layer")
    embedding_kind: Slot["embedding"] = Field("table", description="tokens as vectors: slot embedding")
    tied: bool = Field(True, description="input and output share one embedding matrix")
    dropout: float = Field(0.0, ge=0, lt=1, description="share of the features dropped between layers")
    factors: FactorSettings = Field(FactorSettings(), description="factorized embeddings")
    clusters: ClusterSettings = Field(ClusterSettings(), description="adaptive input embeddings")
    softmaxes: SoftmaxesSettings = Field(SoftmaxesSettings(), description="a mixture of softmaxes")


class ScaledSettings(NeuralSettings):
    """Families whose embeddings and features are scaled, so that they learn in few steps of AdamW.

    Input scale √E: Vaswani et al. 2017. Output scale: a step of AdamW has the same size for small and large
    numbers, so features within [-1, 1] before small vectors would need many steps to change the scores.
    """

    scaling: Literal["quick", "none"] = Field(
        "quick", description="quick: embeddings and features scaled for few steps of adamw; none: for sgd"
    )
    feature_scale: ClassVar[float] = 45.0  # of "quick", where a token's vector is a single number

    def scales(self, embedding: int) -> tuple[float, float]:
        """Return the scales of embeddings and features; longer vectors need less."""
        if self.scaling == "none":
            return 1.0, 1.0
        return math.sqrt(embedding), self.feature_scale / math.sqrt(embedding)


class NeuralFamily:
    """One neural family; ``defaults`` are settings below the user's, such as the learning rate."""

    task = "lm"
    Training = NeuralTrainSettings
    holds_text = False
    measures = True
    default_tokenizer = "bpe"

    def __init__(
        self,
        name: str,
        settings: type[NeuralSettings],
        network: Callable[..., Network],
        defaults: Mapping[str, Any] | None = None,
        row_length: int = 64,
        formula: Callable[..., Cost | None] | None = None,
    ) -> None:
        self.name, self.Settings, self._network = name, settings, network
        self.defaults: Mapping[str, Any] = dict(defaults or {})
        self.ladder, self.row_length, self._formula = ladder(name), row_length, formula

    def build(self, settings: Any, vocab_size: int, closed: bool) -> Network:
        """Build a new network with random weights; ``closed``: UNKNOWN never occurs and has probability 0."""
        return self._network(settings, vocab_size, closed)

    def count_parameters(self, settings: Any, vocab_size: int) -> float:
        """Return the number of parameters; tensors of torch's device "meta" take no memory.

        Where there is a formula, nothing is built. Else layers after the first are alike, so that the second
        is counted for all of them.
        """
        if self._formula is not None:
            try:
                cost = self._formula(settings, vocab_size)
            except AttributeError:  # a part from outside, without a formula
                cost = None
            return self._count(settings, vocab_size) if cost is None else cost.weights
        layers = dict(settings).get("layers", 0)
        if layers <= 2:
            return self._count(settings, vocab_size)
        first, second = (self._count(settings.model_copy(update={"layers": n}), vocab_size) for n in (1, 2))
        return first + (layers - 1) * (second - first)

    def _count(self, settings: Any, vocab_size: int) -> int:
        with torch.device("meta"), Unfilled():
            network = self.build(settings, vocab_size, True)
        return sum(weight.numel() for weight in network.parameters())

    def save(self, model: LanguageModel, folder: NewRun) -> None:
        """Save all weights and buffers in one file without pickle."""
        assert isinstance(model, NetworkModel)
        save_weights(model.network, folder)

    def load(self, folder: RunFolder, settings: Any, tokenizer: Tokenizer) -> Any:
        """Build the network and fill in its weights; weights that do not fit mean a damaged run."""
        self._check_size(settings, tokenizer.vocab_size, folder.file(WEIGHTS))
        network = load_weights(lambda: self.build(settings, tokenizer.vocab_size, tokenizer.closed), folder)
        network.fixed = True
        return network.model()

    def _check_size(self, settings: Any, vocab_size: int, path: Path) -> None:
        """Refuse settings of a far larger model than the file holds, before it is built."""
        sizes, size = dict(settings), path.stat().st_size
        hidden, embedding = sizes.get("hidden", 0), sizes.get("embedding", 0)
        at_least = sizes.get("layers", 1) * hidden**2 + embedding * max(vocab_size, sizes.get("context", 0))
        if 4 * at_least <= size:  # weights are float32
            return
        count = self.count_parameters(settings, vocab_size)
        if 2 * count > size + 1_000_000:
            raise DamagedError(
                f"{path} has {size:,} bytes, but the settings of its run are those of a model of "
                f"{count:,.0f} parameters; train the run again"
            )


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
