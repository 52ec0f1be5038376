"""What every training may use: the settings ``train`` of count models, and the first of all others."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator

from nextword.core.settings import Settings
from nextword.core.sizes import parse_size, show_size

LEAST_MEMORY = 300_000_000


class TrainSettings(Settings):
    """What training may use."""

    seed: int = Field(0, ge=0, lt=2**63, description="seed of everything random")
    memory: Annotated[int, BeforeValidator(parse_size)] = Field(
        0, ge=0, description="most memory of all processes together, as in 500M; 0: as much as is needed"
    )

    @field_validator("memory")
    @classmethod
    def _enough(cls, memory: int) -> int:
        if 0 < memory < LEAST_MEMORY:
            raise ValueError(f"it must be at least {show_size(LEAST_MEMORY)}, or 0 for no limit")
        return memory


class SpreadSettings(TrainSettings):
    """What a family may use whose counting can be spread over a cluster."""

    engine: Literal["local", "spark"] = Field(
        "local", description="who counts: this machine, or a Spark cluster (then memory is that of a task)"
    )
    master: str = Field(
        "",
        max_length=500,
        description="Spark's master, as in local[2] or spark://host:7077; empty: as spark-submit says",
    )
