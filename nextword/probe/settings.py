"""The settings of the probes, each with its limits."""

from __future__ import annotations

from pydantic import Field

from nextword.core.settings import Settings


class ProbeSettings(Settings):
    """How much is shown; a probe uses the settings that concern it."""

    layer: int = Field(0, ge=0, description="which layer, from 1; 0: all, or the one that shows most")
    head: int = Field(0, ge=0, description="which head of attention, from 1; 0: all")
    unit: int = Field(0, ge=0, description="which hidden unit, from 1; 0: the one that tracks a feature best")
    set_gate: str = Field("", description="gates set by hand, as in forget=1,input=0")
    distance: int = Field(100, ge=1, le=10_000, description="gradients: tokens back, at most")
    places: int = Field(16, ge=1, le=1000, description="gradients: places of the text that are averaged")
    tokens: int = Field(0, ge=0, le=1_000_000, description="tokens of the text; 0: what suits the probe")
    powers: int = Field(100, ge=1, le=10_000, description="eigenvalues: the highest power of the matrix")
    neighbours: int = Field(5, ge=1, le=100, description="embeddings: neighbours of a token")
    words: int = Field(12, ge=1, le=1000, description="embeddings: tokens whose neighbours are shown")
    beam_size: int = Field(3, ge=1, le=64, description="beam: hypotheses kept")
    max_tokens: int = Field(8, ge=1, le=200, description="beam: maximum number of tokens")
    seed: int = Field(
        0, ge=0, lt=2**63, description="seed of the text that the model generates if none is given"
    )
