"""A mixture as a run: its members, their weights, and the folders that saving copies them from.

`nextword mix`, `compare` and `train --model mixture` find members and weights in different ways and combine
them here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nextword.core.contracts import Tokenizer
from nextword.core.settings import TrainSettings
from nextword.mixtures.family import SavedMixture
from nextword.mixtures.members import Attached, Member
from nextword.mixtures.mixture import MixtureSettings
from nextword.runs.facts import Facts
from nextword.runs.saved import Trained
from nextword.runs.settings import RunSettings
from nextword.store.reading import RunFolder


@dataclass
class Component:
    """A member of a mixture with its name and the folder it is saved in."""

    name: str
    member: Member
    folder: RunFolder

    @property
    def of(self) -> int:
        """Return the number, from 1, of the member whose features a memory reads; 0: none."""
        found = self.member.of if isinstance(self.member, Attached) else None
        return 0 if found is None else found + 1


def settings_like(member: RunSettings, name: str = "mixture") -> RunSettings:
    """Make settings for a mixture of saved runs: text and data as in ``member``, nothing to train."""
    own = {"model": MixtureSettings(), "train": TrainSettings()}
    return RunSettings(name, "mixture", {**member.groups, **own})


def mixed(
    settings: RunSettings,
    components: Sequence[Component],
    weights: Sequence[float],
    tokenizer: Tokenizer,
    facts: Facts,
    metrics: list[dict[str, Any]],
) -> Trained:
    """Combine the members; ``settings`` are the mixture's, to which members and weights are added."""
    of = tuple(each.of for each in components)
    model = MixtureSettings(
        **{
            **settings.model.model_dump(),
            "runs": tuple(each.name for each in components),
            "weights": tuple(weights),
            "of": of if any(of) else (),
        }
    )
    mixture = SavedMixture(
        [each.member for each in components], weights, [each.folder for each in components]
    )
    return Trained(settings.with_group("model", model), mixture, tokenizer, facts, metrics)
