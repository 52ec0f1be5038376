"""Which experiments accept a run of the user's, and which models they fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nextword.core import catalog
from nextword.core.errors import ConfigError
from nextword.core.family import NetworkFamily
from nextword.runs import saved
from nextword.runs.saved import Trained

if TYPE_CHECKING:
    from nextword.models.network import NeuralLanguageModel

# Experiments that accept a run, and what they need of it.
TAKES = {
    "sums-to-one": "any model",
    "smoothing": "the text of a run",
    "sparsity": "the text of a run",
    "stopping": "any model",
    "vanishing": "networks",
    "initial-state": "recurrent networks",
    "reach": "any model",
    "greedy-or-beam": "any model",
    "exposure-bias": "any model",
}


class DoesNotFit(ConfigError):  # noqa: N818 - it says what is wrong
    """An experiment cannot use this run."""


def refuse(lab: str, run: str | None) -> None:
    """Refuse a run for experiments that train their own models, rather than ignore it."""
    if run is not None:
        others = ", ".join(name for name in TAKES)
        raise DoesNotFit(
            f"the experiment '{lab}' trains its own models; leave out --run, or choose an experiment that "
            f"accepts a run: {others}"
        )


def open_network(lab: str, run: str, recurrent: bool = False) -> tuple[Trained, NeuralLanguageModel]:
    """Open a run whose model is a network, and a recurrent one if that is needed."""
    from nextword.models.network import NeuralLanguageModel, is_recurrent

    trained = saved.load(run)
    model = trained.model
    if isinstance(model, NeuralLanguageModel) and (not recurrent or is_recurrent(model.network)):
        return trained, model
    lacks = "carries no state from word to word" if recurrent else "is not a network trained by gradients"
    raise DoesNotFit(
        f"'{run}' is a model of the family {trained.settings.family}, which {lacks}; '{lab}' fits: "
        f"{', '.join(_families(recurrent))}"
    )


def _families(recurrent: bool) -> list[str]:
    """List families of networks, or the recurrent ones among them."""
    found = [
        name for name in catalog.names("model") if isinstance(catalog.find("model", name), NetworkFamily)
    ]
    cells = catalog.names("cell")
    return [name for name in found if name in cells] if recurrent else found
