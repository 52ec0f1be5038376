"""The root of all settings: frozen, and an unknown key is an error, never a silent default."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """A group of settings. Default, help and limits sit on one line, next to what they set."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)
