"""Settings ``train`` common to all families, and the whole of it for count models."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator

from nextword.core.settings import Settings, parse_size, show_size

LEAST_MEMORY = 300_000_000


class TrainSettings(Settings):
    """Resources of every training run."""

    seed: int = Field(0, ge=0, lt=2**63, description="random seed")
    memory: Annotated[int, BeforeValidator(parse_size)] = Field(
        0, ge=0, description="memory limit for all processes together, as in 500M; 0: no limit"
    )

    @field_validator("memory")
    @classmethod
    def _at_least(cls, memory: int) -> int:
        if 0 < memory < LEAST_MEMORY:
            raise ValueError(f"it must be at least {show_size(LEAST_MEMORY)}, or 0 for no limit")
        return memory


class SpreadSettings(TrainSettings):
    """Resources of a family whose counting can be distributed over a cluster."""

    engine: Literal["local", "spark"] = Field(
        "local", description="where counting runs: this machine or a Spark cluster (memory is then per task)"
    )
    master: str = Field(
        "",
        max_length=500,
        description="Spark's master, as in local[2] or spark://host:7077; empty: the one spark-submit sets",
    )
