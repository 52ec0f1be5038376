"""The family ``ensemble``: several classifiers of the same texts, and a weight for each.

z = Σ_m λ_m z_m / T_m: the calibrated log-probabilities of the members (of several labels their log odds),
with weights λ that make the labels of held-out texts most likely: a product of experts (Hinton 1999), which
is logistic regression on the members' scores (stacking, Wolpert 1992). Linear models, language models and
networks make different mistakes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from pydantic import Field, field_validator

from nextword.core import catalog, config
from nextword.core.errors import ConfigError, DamagedError
from nextword.core.family import CompositeFamily, Family
from nextword.core.settings import Settings, TrainSettings
from nextword.core.suggestions import suggestion
from nextword.data.classes import ClassVocabulary
from nextword.models import calibration
from nextword.models.calibration import Calibration
from nextword.models.selection import Logits
from nextword.store.manifest import Manifest
from nextword.store.reading import RunFolder
from nextword.store.writing import NewRun

_FACTS, _CONFIG = "ensemble.json", "config.toml"
_FACTORS = (0.0, 0.5, 0.8, 0.95, 1.05, 1.25, 2.0)  # by which a weight is changed in a round
_ROUNDS = 12
_FROM_NOTHING = 0.1  # the weight that is tried instead of 0
_CELLS = 2_000_000  # scores of held-out texts that are looked at
Floats = npt.NDArray[np.float64]


class EnsembleSettings(Settings):
    """What an ensemble is made of."""

    models: tuple[str, ...] = Field(
        ("linear", "generative"), min_length=1, description="models that are trained; networks need --minutes"
    )

    @field_validator("models")
    @classmethod
    def _known(cls, models: tuple[str, ...]) -> tuple[str, ...]:
        for name in models:
            if catalog.spelled("classifier", name) is None or name == "ensemble":
                others = [each for each in catalog.names("classifier") if each != "ensemble"]
                raise ValueError(suggestion(name, others, "nextword list classifier"))
        return models


@dataclass
class Member:
    """A trained classifier with its settings as TOML."""

    family: str
    model: Any
    config: str


@dataclass
class EnsembleClassifier:
    """Members and their weights."""

    vocabulary: ClassVocabulary
    members: list[Member]
    weights: tuple[float, ...]
    calibration: Calibration = field(default_factory=Calibration)
    held_out_logits: Logits | None = None  # of held-out texts, before members were fitted to them too
    is_probability = True

    @property
    def parameters(self) -> int:
        """Return the number of learned weights of all members."""
        return sum(int(member.model.parameters) for member in self.members)

    def logits(self, texts: list[str]) -> Logits:
        """Return the weighted scores of texts."""
        return combined([calibrated(member.model, texts) for member in self.members], self.weights)


def calibrated(model: Any, texts: list[str]) -> Logits:
    """Return the scores of texts divided by the temperature of their model."""
    return np.asarray(model.logits(texts), np.float64) / model.calibration.temperature


def combined(members: Sequence[Logits], weights: Sequence[float]) -> Logits:
    """Return Σ λ z."""
    return np.asarray(
        sum(weight * logits_NK for weight, logits_NK in zip(weights, members, strict=True)), np.float64
    )


def find_weights(members: Sequence[Logits], targets: npt.NDArray[Any], several: bool) -> tuple[float, ...]:
    """Return the weights that make the labels of held-out texts most likely.

    The cost is convex in the weights; one after another is changed as long as that makes it smaller.
    """
    every = max(1, members[0].size // _CELLS)
    members, targets = [each[::every] for each in members], targets[::every]

    def cost(weights: Sequence[float]) -> float:
        return calibration.nats(combined(members, weights), targets, several, Calibration())

    found = [1.0 / len(members)] * len(members)
    best = cost(found)
    for _ in range(_ROUNDS):
        before = best
        for at, weight in enumerate(found):
            tried = [[*found[:at], (weight or _FROM_NOTHING) * each, *found[at + 1 :]] for each in _FACTORS]
            nats, number = min((cost(each), number) for number, each in enumerate(tried))
            if nats < best:
                best, found = nats, tried[number]
        if before - best < 1e-6:
            break
    return tuple(found)


def shares(members: Sequence[Logits], weights: Sequence[float], several: bool) -> tuple[float, ...]:
    """Return how much each member decides: its weight times the spread of its scores, of 1 in all.

    The weight alone says little: that of a network which has learned nothing may be large, since its scores
    are all near 0. What all labels of a text have in common, such as log p(text), decides nothing.
    """

    def spread(logits_NK: Logits) -> float:
        own_NK = logits_NK if several else logits_NK - logits_NK.mean(axis=1, keepdims=True)
        return float((own_NK - own_NK.mean(axis=0)).std())

    spreads = [weight * spread(each) for weight, each in zip(weights, members, strict=True)]
    total = sum(spreads)
    return tuple(spread / total if total > 0 else 1.0 / len(spreads) for spread in spreads)


class EnsembleFamily:
    """Several classifiers together."""

    name = "ensemble"
    task = "classify"
    Settings = EnsembleSettings
    Training = TrainSettings
    defaults: Mapping[str, Any] = {}
    default_tokenizer = ""
    holds_text = False
    measures = True  # weights are tuned on held-out texts
    needs_minutes = False
    made_by = "nextword train FILE --task classify --model ensemble"

    def parts(self, settings: EnsembleSettings) -> tuple[str, ...]:
        """Return the models that are trained."""
        return settings.models

    def save(self, model: EnsembleClassifier, folder: NewRun) -> None:
        """Write the files of each member to a folder of its own."""
        for number, member in enumerate(model.members, start=1):
            part = _NewPart(folder, f"part-{number}/")
            _family(member.family).save(member.model, part)
            part.write(_CONFIG, member.config)
        families = [member.family for member in model.members]
        folder.write_json(_FACTS, {"families": families, "weights": list(model.weights)})
        model.calibration.save(folder)

    def load(
        self, folder: RunFolder, settings: EnsembleSettings, vocabulary: ClassVocabulary
    ) -> EnsembleClassifier:
        """Load each member by its own family."""
        place = folder.path / _FACTS
        try:
            facts = folder.read_json(_FACTS)
            families = [str(each) for each in facts["families"]]
            weights = tuple(float(each) for each in facts["weights"])
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedError(f"{place} is damaged ({error}); train the run again") from error
        if not families or len(families) != len(weights) or not np.isfinite(weights).all():
            raise DamagedError(f"{place} does not have a weight for each member; train the run again")
        members = [
            _load(_part(folder, number), family, vocabulary)
            for number, family in enumerate(families, start=1)
        ]
        return EnsembleClassifier(vocabulary, members, weights, Calibration.load(folder))


class _NewPart(NewRun):
    """A folder within a run that is being written, as a member writes into it."""

    def __init__(self, whole: NewRun, prefix: str) -> None:
        super().__init__(whole.path / prefix, whole.target / prefix)
        self._whole, self._prefix = whole, prefix

    def write(self, name: str, *pieces: Any) -> None:
        """Write a file of the member."""
        self._whole.write(self._prefix + name, *pieces)

    def later(self, name: str, *pieces: Any) -> None:
        """Write it in the background."""
        self._whole.later(self._prefix + name, *pieces)


def _part(folder: RunFolder, number: int) -> RunFolder:
    """Return the files of a member as a run folder of their own."""
    prefix = f"part-{number}/"
    files = {
        name.removeprefix(prefix): record
        for name, record in folder.manifest.files.items()
        if name.startswith(prefix)
    }
    return RunFolder(folder.path / prefix.rstrip("/"), Manifest(files, folder.manifest.created))


def _load(part: RunFolder, name: str, vocabulary: ClassVocabulary) -> Member:
    place = str(part.path / _CONFIG)
    try:
        family = _family(name)
        text = part.read_text(_CONFIG)
        given = config.flatten({"model": config.parse_toml(text, place).get("model", {})})
        settings = config.build({"model": family.Settings}, given)["model"]
    except ConfigError as error:
        raise DamagedError(f"{place}: {error}") from error
    return Member(name, family.load(part, settings, vocabulary), text)


def _family(name: str) -> Family:
    found = catalog.find("classifier", name)
    if isinstance(found, CompositeFamily):
        raise ConfigError(f"an ensemble cannot be a member ('{name}')")
    return cast(Family, found)


FAMILY = EnsembleFamily()
