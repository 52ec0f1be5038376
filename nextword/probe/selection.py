"""Which probes fit a model, and one look through one of them.

The error for a probe that does not fit names those that do.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

from nextword.core import catalog
from nextword.core.errors import ConfigError, MissingPart
from nextword.probe.result import ProbeResult
from nextword.probe.settings import ProbeSettings
from nextword.probe.subject import Subject


class Probe(Protocol):
    """The slot "probe": a way to look inside a model. Its module does not import torch by itself."""

    about: ClassVar[str]  # what is seen, in a phrase
    needs: ClassVar[str]  # what it fits, in a phrase: "networks with gates (lstm, gru, …)"

    def fits(self, subject: Subject) -> bool:
        """Tell whether there is anything to see in this model."""
        ...

    def look(self, subject: Subject, settings: ProbeSettings, against: Subject | None = None) -> ProbeResult:
        """Look at it, or at two models side by side."""
        ...


def find(name: str) -> Probe:
    """Find a probe by its name."""
    made: Probe = catalog.find("probe", name)()
    return made


def subject_for(probe: Probe, subject: Subject) -> Subject | None:
    """Return the model itself, or the first component of a mixture that the probe fits."""
    return next((each for each in subject.everything() if probe.fits(each)), None)


def fitting(subject: Subject) -> list[str]:
    """Return the names of all probes that fit."""
    found = []
    for name in catalog.names("probe"):
        try:
            if subject_for(find(name), subject) is not None:
                found.append(name)
        except MissingPart:  # a plug-in whose packages are not installed
            continue
    return found


def look(
    name: str, subject: Subject, settings: ProbeSettings | None = None, against: Subject | None = None
) -> ProbeResult:
    """Look through one probe; a ConfigError where it does not fit."""
    probe = find(name)
    other = None if against is None else subject_for(probe, against)
    own = subject_for(probe, subject)
    if own is None:
        raise unfit(name, probe, subject)
    if against is not None and other is None:
        raise unfit(name, probe, against)
    return probe.look(own, settings or ProbeSettings(), other)


def unfit(name: str, probe: Probe, subject: Subject) -> ConfigError:
    """Say in one sentence what the probe is for, what this model is, and what fits it."""
    article = "an" if subject.described[0] in "aeiouRLn" and subject.kind != "network" else "a"
    return ConfigError(
        f"'{name}' is for {probe.needs}, and '{subject.name}' is {article} {subject.described}; "
        f"what fits it: {', '.join(fitting(subject))}"
    )


def check_layer(asked: int, layers: int, what: str = "layer") -> int:
    """Return the number of a layer or head, from 0; a ConfigError where there are fewer."""
    if asked > layers:
        which = f"one from 1 to {layers}" if layers > 1 else "1"
        raise ConfigError(f"'{what}' is {asked}, and the model has {layers}; choose {which}")
    return asked - 1
