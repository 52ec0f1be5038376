"""A neural family as training and loading see it: settings, a network to build, one file of weights.

How it learns is the trainer's affair (`train.neural`): the families differ in their networks alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from pydantic import Field

from nextword.core.contracts import LanguageModel, Tokenizer
from nextword.core.errors import DamagedError
from nextword.core.runfolder import NewRun, RunFolder
from nextword.core.settings import Settings
from nextword.models.network import NeuralLanguageModel, Network

WEIGHTS = "model.safetensors"


class NeuralSettings(Settings):
    """What every neural family has; each adds its own."""

    carry: bool = Field(True, description="the state goes on from line to line within a document")
    head: Literal["softmax", "adaptive"] = Field("softmax", description="output layer")
    tied: bool = Field(True, description="input and output share one embedding matrix")
    dropout: float = Field(0.0, ge=0, lt=1, description="share of the features dropped between layers")


class NeuralFamily:
    """One neural family; ``defaults`` are settings below the user's, such as the learning rate."""

    holds_text = False
    is_neural = True
    default_tokenizer = "bpe"

    def __init__(
        self,
        name: str,
        settings: type[NeuralSettings],
        network: Callable[..., Network],
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        self.name, self.Settings, self._network = name, settings, network
        self.defaults = dict(defaults or {})

    def build(self, settings: Any, vocab_size: int, closed: bool) -> Network:
        """A new network with random weights; ``closed``: UNKNOWN never comes, so it has no probability."""
        return self._network(settings, vocab_size, closed)

    def save(self, model: LanguageModel, folder: NewRun) -> None:
        """All weights and buffers in one file without pickle."""
        from safetensors.torch import save

        assert isinstance(model, NeuralLanguageModel)
        tensors = {name: tensor.detach().contiguous() for name, tensor in model.network.state_dict().items()}
        folder.write(WEIGHTS, save(tensors))

    def load(self, folder: RunFolder, settings: Any, tokenizer: Tokenizer) -> NeuralLanguageModel:
        """Build the network and fill in its weights; what does not fit is a damaged run."""
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        network = self.build(settings, tokenizer.vocab_size, tokenizer.closed)
        path = folder.file(WEIGHTS)
        try:
            network.load_state_dict(load_file(path))
        except (RuntimeError, SafetensorError) as error:
            first = str(error).split("\n")[-1].strip()
            raise DamagedError(
                f"{path} does not fit the settings of its run ({first}); train the run again"
            ) from error
        return NeuralLanguageModel(network)
