"""Alignment: which source word a translation attends to; for language models there is none to see.

[PENN "Attention Mechanism: A Solution to the Bottleneck Problem": soft alignment],
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from nextword.core.errors import ConfigError
from nextword.probe.result import ProbeResult
from nextword.probe.settings import ProbeSettings
from nextword.probe.subject import Subject


@runtime_checkable
class Aligned(Protocol):
    """A model that reads a source and can tell how much of it each word takes."""

    alignment: Any


class Alignment:
    """Source words against target words."""

    about = "soft alignment of a translation with its source"
    needs = "translation runs"

    def fits(self, subject: Subject) -> bool:
        """Accept models that read a source and can tell how much of it each token takes."""
        return isinstance(subject.model, Aligned)

    def look(self, subject: Subject, settings: ProbeSettings, against: Subject | None = None) -> ProbeResult:
        """Refuse: a language model reads no source."""
        raise ConfigError(
            f"'alignment' is for translation runs, and '{subject.name}' is a {subject.described}"
        )
