"""Alignment: which source token a translation attends to; language models have none.

[PENN "Attention Mechanism: A Solution to the Bottleneck Problem": soft alignment]
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from nextword.core.errors import ConfigError
from nextword.probe.result import ProbeResult
from nextword.probe.settings import ProbeSettings
from nextword.probe.subject import Subject


@runtime_checkable
class Aligned(Protocol):
    """A model that reads a source and knows how much of it each token uses."""

    alignment: Any


class Alignment:
    """Source tokens against target tokens."""

    about = "soft alignment of a translation with its source"
    needs = "translation runs"

    def fits(self, subject: Subject) -> bool:
        """Accept models that read a source and know how much of it each token uses."""
        return isinstance(subject.model, Aligned)

    def look(self, subject: Subject, settings: ProbeSettings, against: Subject | None = None) -> ProbeResult:
        """Refuse: a language model reads no source."""
        raise ConfigError(
            f"'alignment' is for translation runs, and '{subject.name}' is a {subject.described}"
        )
