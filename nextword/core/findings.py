"""Findings of a check, one line each: fine, worth knowing, or a problem with its remedy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Finding:
    """One finding; ``text`` says what was found and, unless all is well, what to do."""

    level: Literal["ok", "note", "problem"]
    about: str  # machine, memory, disk, a run …
    text: str

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return f"{self.level:<7}  {self.about}: {self.text}"


def ok(about: str, text: str) -> Finding:
    """Report that all is well."""
    return Finding("ok", about, text)


def note(about: str, text: str) -> Finding:
    """Report something worth knowing; everything works."""
    return Finding("note", about, text)


def problem(about: str, text: str) -> Finding:
    """Report something that does not work, or will fail."""
    return Finding("problem", about, text)
